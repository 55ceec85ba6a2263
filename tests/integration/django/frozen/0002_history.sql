-- mariadb+pymysql
CREATE TABLE IF NOT EXISTS effectonce_history (
	id BIGINT NOT NULL AUTO_INCREMENT, 
	at BIGINT NOT NULL, 
	fence BIGINT NOT NULL, 
	times INTEGER NOT NULL, 
	digest BINARY(16) NOT NULL, 
	name VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	cause VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	task MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	task_id MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	attempt MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	facts MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	PRIMARY KEY (id)
)ENGINE=InnoDB;
CREATE INDEX IF NOT EXISTS effectonce_history_of ON effectonce_history (digest, id);
CREATE TABLE IF NOT EXISTS effectonce_minutes (
	number BIGINT NOT NULL, 
	minute BIGINT NOT NULL, 
	name VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	cause VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	PRIMARY KEY (minute, name, cause)
)ENGINE=InnoDB;

-- postgresql+psycopg
CREATE TABLE IF NOT EXISTS effectonce_history (
	id BIGSERIAL NOT NULL, 
	at BIGINT NOT NULL, 
	fence BIGINT NOT NULL, 
	times INTEGER NOT NULL, 
	digest BYTEA NOT NULL, 
	name VARCHAR(190) NOT NULL, 
	cause VARCHAR(190) NOT NULL, 
	task TEXT NOT NULL, 
	task_id TEXT NOT NULL, 
	attempt TEXT NOT NULL, 
	facts TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE INDEX IF NOT EXISTS effectonce_history_of ON effectonce_history (digest, id);
CREATE TABLE IF NOT EXISTS effectonce_minutes (
	number BIGINT NOT NULL, 
	minute BIGINT NOT NULL, 
	name VARCHAR(190) NOT NULL, 
	cause VARCHAR(190) NOT NULL, 
	PRIMARY KEY (minute, name, cause)
);

-- sqlite
CREATE TABLE IF NOT EXISTS effectonce_history (
	id INTEGER NOT NULL, 
	at BIGINT NOT NULL, 
	fence BIGINT NOT NULL, 
	times INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	name VARCHAR(190) NOT NULL, 
	cause VARCHAR(190) NOT NULL, 
	task TEXT NOT NULL, 
	task_id TEXT NOT NULL, 
	attempt TEXT NOT NULL, 
	facts TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE INDEX IF NOT EXISTS effectonce_history_of ON effectonce_history (digest, id);
CREATE TABLE IF NOT EXISTS effectonce_minutes (
	number BIGINT NOT NULL, 
	minute BIGINT NOT NULL, 
	name VARCHAR(190) NOT NULL, 
	cause VARCHAR(190) NOT NULL, 
	PRIMARY KEY (minute, name, cause)
);
