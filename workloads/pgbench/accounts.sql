SELECT a.balance, h.delta
FROM (SELECT coalesce(sum(abalance), 0) AS balance FROM pgbench_accounts) a,
  (SELECT coalesce(sum(delta), 0) AS delta FROM pgbench_history) h
WHERE a.balance <> h.delta
