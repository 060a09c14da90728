SELECT b.bid, b.bbalance, coalesce(h.delta, 0)
FROM pgbench_branches b
LEFT JOIN (SELECT bid, sum(delta) AS delta FROM pgbench_history GROUP BY bid) h ON h.bid = b.bid
WHERE b.bbalance <> coalesce(h.delta, 0)
