CREATE TABLE usertable (
  ycsb_key bigint PRIMARY KEY,
  field0 varchar(100), field1 varchar(100), field2 varchar(100), field3 varchar(100),
  field4 varchar(100), field5 varchar(100), field6 varchar(100), field7 varchar(100),
  field8 varchar(100), field9 varchar(100)
);
