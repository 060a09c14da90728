-- rows: 1
SELECT name, city FROM customers WHERE id = :customer;
SELECT id, total FROM orders WHERE customer = :customer ORDER BY id DESC LIMIT 10;
