-- rows: 1
SELECT * FROM usertable WHERE ycsb_key = :key;
