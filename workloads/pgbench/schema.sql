CREATE TABLE pgbench_branches (
  bid integer PRIMARY KEY, bbalance bigint NOT NULL, filler char(88)
);
CREATE TABLE pgbench_tellers (
  tid integer PRIMARY KEY, bid integer NOT NULL, tbalance bigint NOT NULL, filler char(84)
);
CREATE TABLE pgbench_accounts (
  aid integer PRIMARY KEY, bid integer NOT NULL, abalance bigint NOT NULL, filler char(84)
);
CREATE TABLE pgbench_history (
  tid integer, bid integer, aid integer, delta bigint, mtime timestamp, filler char(22)
);
