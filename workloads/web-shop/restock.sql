-- rows: 1
UPDATE products SET stock = stock + 100, received = received + 100 WHERE id = :product;
