-- rows: 1
INSERT INTO usertable VALUES
  (:key, :value, :value, :value, :value, :value, :value, :value, :value, :value, :value);
