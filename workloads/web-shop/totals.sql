SELECT o.id, o.total, coalesce(i.total, 0)
FROM orders o
LEFT JOIN (SELECT order_id, sum(quantity * price) AS total FROM order_items GROUP BY order_id) i
  ON i.order_id = o.id
WHERE o.total <> coalesce(i.total, 0)
