-- rows: 1
SELECT * FROM usertable WHERE ycsb_key = :key;
-- rows: 1
UPDATE usertable SET field0 = :value WHERE ycsb_key = :key;
