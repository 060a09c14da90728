CREATE INDEX products_of_category ON products (category, sold);
CREATE INDEX orders_of_customer ON orders (customer, id);
CREATE INDEX items_of_order ON order_items (order_id);
