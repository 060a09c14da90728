SELECT p.id, p.sold, coalesce(i.sold, 0)
FROM products p
LEFT JOIN (SELECT product, sum(quantity) AS sold FROM order_items GROUP BY product) i
  ON i.product = p.id
WHERE p.sold <> coalesce(i.sold, 0)
