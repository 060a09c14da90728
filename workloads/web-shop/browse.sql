-- rows: 1
SELECT name, description, price, stock FROM products WHERE id = :product;
