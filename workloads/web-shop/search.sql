SELECT id, name, price FROM products WHERE category = :category ORDER BY sold DESC LIMIT 20;
