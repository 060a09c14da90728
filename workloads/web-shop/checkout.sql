-- rows: 1
-- into: first_price
SELECT price FROM products WHERE id = :first;
-- rows: 1
-- into: second_price
SELECT price FROM products WHERE id = :second;
-- rows: 1
UPDATE products SET stock = stock - :quantity, sold = sold + :quantity WHERE id = :first;
-- rows: 1
UPDATE products SET stock = stock - 1, sold = sold + 1 WHERE id = :second;
-- rows: 1
INSERT INTO order_items VALUES (:order, :first, :quantity, :first_price);
-- rows: 1
INSERT INTO order_items VALUES (:order, :second, 1, :second_price);
-- rows: 1
INSERT INTO orders VALUES (:order, :customer,
  CAST(:first_price AS integer) * CAST(:quantity AS integer) + CAST(:second_price AS integer));
