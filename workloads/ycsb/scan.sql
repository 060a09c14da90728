-- rows: some
SELECT * FROM usertable WHERE ycsb_key >= :first ORDER BY ycsb_key LIMIT :count;
