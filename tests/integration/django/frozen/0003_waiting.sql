-- mariadb+pymysql

-- postgresql+psycopg
CREATE INDEX IF NOT EXISTS effectonce_waiting ON effectonce_entries (state) WHERE state in (5, 6);

-- sqlite
CREATE INDEX IF NOT EXISTS effectonce_waiting ON effectonce_entries (state) WHERE state in (5, 6);
