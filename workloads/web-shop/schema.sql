CREATE TABLE products (
  id integer PRIMARY KEY,
  category integer NOT NULL,
  name varchar(40) NOT NULL,
  description varchar(600) NOT NULL,
  price integer NOT NULL,
  stock integer NOT NULL,
  sold integer NOT NULL,
  received integer NOT NULL
);
CREATE TABLE customers (
  id integer PRIMARY KEY,
  name varchar(30) NOT NULL,
  city varchar(20) NOT NULL
);
CREATE TABLE orders (
  id bigint PRIMARY KEY,
  customer integer NOT NULL,
  total bigint NOT NULL
);
CREATE TABLE order_items (
  order_id bigint NOT NULL,
  product integer NOT NULL,
  quantity integer NOT NULL,
  price integer NOT NULL
);
