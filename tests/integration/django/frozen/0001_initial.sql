-- mariadb+pymysql
CREATE TABLE IF NOT EXISTS effectonce_entries (
	fence BIGINT NOT NULL, 
	since BIGINT NOT NULL, 
	lease_until BIGINT NOT NULL, 
	keep_until BIGINT, 
	keep_us BIGINT, 
	lease_ms INTEGER NOT NULL, 
	attempts INTEGER NOT NULL, 
	retries INTEGER NOT NULL, 
	state SMALLINT NOT NULL, 
	flags SMALLINT NOT NULL, 
	deaths SMALLINT NOT NULL, 
	digest BINARY(16) NOT NULL, 
	identity VARBINARY(16) NOT NULL, 
	attempt VARBINARY(8) NOT NULL, 
	fingerprint LONGBLOB NOT NULL, 
	task_id MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	`key` MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	follower VARBINARY(16), 
	result LONGBLOB, 
	PRIMARY KEY (digest)
)ENGINE=InnoDB;
CREATE INDEX IF NOT EXISTS effectonce_claimed ON effectonce_entries (state, lease_until);
CREATE TABLE IF NOT EXISTS effectonce_held (
	id BIGINT NOT NULL AUTO_INCREMENT, 
	digest BINARY(16) NOT NULL, 
	mark BINARY(16) NOT NULL, 
	at BIGINT NOT NULL, 
	message LONGBLOB NOT NULL, 
	PRIMARY KEY (id)
)ENGINE=InnoDB;
CREATE UNIQUE INDEX IF NOT EXISTS effectonce_held_once ON effectonce_held (digest, mark);
CREATE TABLE IF NOT EXISTS effectonce_meta (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
)ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS effectonce_observed (
	seen_first BIGINT NOT NULL, 
	seen_last BIGINT NOT NULL, 
	times BIGINT NOT NULL, 
	again SMALLINT NOT NULL, 
	mark BINARY(16) NOT NULL, 
	digest BINARY(16) NOT NULL, 
	would MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	task_id MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	task MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	`key` MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	PRIMARY KEY (mark)
)ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS effectonce_outbox (
	id BIGINT NOT NULL AUTO_INCREMENT, 
	due BIGINT NOT NULL, 
	since BIGINT NOT NULL, 
	tries INTEGER NOT NULL, 
	stage SMALLINT NOT NULL, 
	effect BINARY(16), 
	task MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	task_id MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	in_order VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin, 
	exchange MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	routing_key MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	content_type MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	content_encoding MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	headers MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	properties MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	declares MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	`body` LONGBLOB NOT NULL, 
	error MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin, 
	PRIMARY KEY (id)
)ENGINE=InnoDB;
CREATE INDEX IF NOT EXISTS effectonce_outbox_due ON effectonce_outbox (due);
CREATE INDEX IF NOT EXISTS effectonce_outbox_effect ON effectonce_outbox (effect);
CREATE INDEX IF NOT EXISTS effectonce_outbox_order ON effectonce_outbox (in_order, id);
CREATE TABLE IF NOT EXISTS effectonce_relays (
	until BIGINT NOT NULL, 
	seat SMALLINT NOT NULL, 
	holder VARBINARY(16) NOT NULL, 
	PRIMARY KEY (seat)
)ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS effectonce_reservations (
	ends BIGINT NOT NULL, 
	name BINARY(16) NOT NULL, 
	holder MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	PRIMARY KEY (name)
)ENGINE=InnoDB;
CREATE INDEX IF NOT EXISTS effectonce_reserved_until ON effectonce_reservations (ends);
CREATE TABLE IF NOT EXISTS effectonce_steps (
	fence BIGINT NOT NULL, 
	began BIGINT NOT NULL, 
	ended BIGINT, 
	flags SMALLINT NOT NULL, 
	digest BINARY(16) NOT NULL, 
	mark BINARY(16) NOT NULL, 
	attempt VARBINARY(8) NOT NULL, 
	name MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	result LONGBLOB, 
	PRIMARY KEY (digest, mark)
)ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS effectonce_terms (
	fence BIGINT NOT NULL, 
	since BIGINT NOT NULL, 
	ends BIGINT NOT NULL, 
	holder VARBINARY(16) NOT NULL, 
	digest BINARY(16) NOT NULL, 
	name MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	who MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	PRIMARY KEY (digest)
)ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS effectonce_ticks (
	id BIGINT NOT NULL AUTO_INCREMENT, 
	instant BIGINT NOT NULL, 
	fence BIGINT NOT NULL, 
	at BIGINT NOT NULL, 
	following BIGINT, 
	missed INTEGER NOT NULL, 
	state SMALLINT NOT NULL, 
	entry BINARY(16) NOT NULL, 
	term BINARY(16) NOT NULL, 
	name MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, 
	PRIMARY KEY (id)
)ENGINE=InnoDB;
CREATE UNIQUE INDEX IF NOT EXISTS effectonce_ticks_once ON effectonce_ticks (entry, instant);
CREATE INDEX IF NOT EXISTS effectonce_unmarked ON effectonce_ticks (term, state);
insert into effectonce_meta (version) select 1 where not exists (select 1 from effectonce_meta);

-- postgresql+psycopg
CREATE TABLE IF NOT EXISTS effectonce_entries (
	fence BIGINT NOT NULL, 
	since BIGINT NOT NULL, 
	lease_until BIGINT NOT NULL, 
	keep_until BIGINT, 
	keep_us BIGINT, 
	lease_ms INTEGER NOT NULL, 
	attempts INTEGER NOT NULL, 
	retries INTEGER NOT NULL, 
	state SMALLINT NOT NULL, 
	flags SMALLINT NOT NULL, 
	deaths SMALLINT NOT NULL, 
	digest BYTEA NOT NULL, 
	identity BYTEA NOT NULL, 
	attempt BYTEA NOT NULL, 
	fingerprint BYTEA NOT NULL, 
	task_id TEXT NOT NULL, 
	key TEXT NOT NULL, 
	follower BYTEA, 
	result BYTEA, 
	PRIMARY KEY (digest)
);
CREATE INDEX IF NOT EXISTS effectonce_claimed ON effectonce_entries (state, lease_until) WHERE state = 1;
CREATE TABLE IF NOT EXISTS effectonce_held (
	id BIGSERIAL NOT NULL, 
	digest BYTEA NOT NULL, 
	mark BYTEA NOT NULL, 
	at BIGINT NOT NULL, 
	message BYTEA NOT NULL, 
	PRIMARY KEY (id)
);
CREATE UNIQUE INDEX IF NOT EXISTS effectonce_held_once ON effectonce_held (digest, mark);
CREATE TABLE IF NOT EXISTS effectonce_meta (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
);
CREATE TABLE IF NOT EXISTS effectonce_observed (
	seen_first BIGINT NOT NULL, 
	seen_last BIGINT NOT NULL, 
	times BIGINT NOT NULL, 
	again SMALLINT NOT NULL, 
	mark BYTEA NOT NULL, 
	digest BYTEA NOT NULL, 
	would TEXT NOT NULL, 
	task_id TEXT NOT NULL, 
	task TEXT NOT NULL, 
	key TEXT NOT NULL, 
	PRIMARY KEY (mark)
);
CREATE TABLE IF NOT EXISTS effectonce_outbox (
	id BIGSERIAL NOT NULL, 
	due BIGINT NOT NULL, 
	since BIGINT NOT NULL, 
	tries INTEGER NOT NULL, 
	stage SMALLINT NOT NULL, 
	effect BYTEA, 
	task TEXT NOT NULL, 
	task_id TEXT NOT NULL, 
	in_order VARCHAR(190), 
	exchange TEXT NOT NULL, 
	routing_key TEXT NOT NULL, 
	content_type TEXT NOT NULL, 
	content_encoding TEXT NOT NULL, 
	headers TEXT NOT NULL, 
	properties TEXT NOT NULL, 
	declares TEXT NOT NULL, 
	body BYTEA NOT NULL, 
	error TEXT, 
	PRIMARY KEY (id)
);
CREATE INDEX IF NOT EXISTS effectonce_outbox_due ON effectonce_outbox (due);
CREATE INDEX IF NOT EXISTS effectonce_outbox_effect ON effectonce_outbox (effect);
CREATE INDEX IF NOT EXISTS effectonce_outbox_order ON effectonce_outbox (in_order, id) WHERE in_order is not null;
CREATE TABLE IF NOT EXISTS effectonce_relays (
	until BIGINT NOT NULL, 
	seat SMALLINT NOT NULL, 
	holder BYTEA NOT NULL, 
	PRIMARY KEY (seat)
);
CREATE TABLE IF NOT EXISTS effectonce_reservations (
	ends BIGINT NOT NULL, 
	name BYTEA NOT NULL, 
	holder TEXT NOT NULL, 
	PRIMARY KEY (name)
);
CREATE INDEX IF NOT EXISTS effectonce_reserved_until ON effectonce_reservations (ends);
CREATE TABLE IF NOT EXISTS effectonce_steps (
	fence BIGINT NOT NULL, 
	began BIGINT NOT NULL, 
	ended BIGINT, 
	flags SMALLINT NOT NULL, 
	digest BYTEA NOT NULL, 
	mark BYTEA NOT NULL, 
	attempt BYTEA NOT NULL, 
	name TEXT NOT NULL, 
	result BYTEA, 
	PRIMARY KEY (digest, mark)
);
CREATE TABLE IF NOT EXISTS effectonce_terms (
	fence BIGINT NOT NULL, 
	since BIGINT NOT NULL, 
	ends BIGINT NOT NULL, 
	holder BYTEA NOT NULL, 
	digest BYTEA NOT NULL, 
	name TEXT NOT NULL, 
	who TEXT NOT NULL, 
	PRIMARY KEY (digest)
);
CREATE TABLE IF NOT EXISTS effectonce_ticks (
	id BIGSERIAL NOT NULL, 
	instant BIGINT NOT NULL, 
	fence BIGINT NOT NULL, 
	at BIGINT NOT NULL, 
	following BIGINT, 
	missed INTEGER NOT NULL, 
	state SMALLINT NOT NULL, 
	entry BYTEA NOT NULL, 
	term BYTEA NOT NULL, 
	name TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE UNIQUE INDEX IF NOT EXISTS effectonce_ticks_once ON effectonce_ticks (entry, instant);
CREATE INDEX IF NOT EXISTS effectonce_unmarked ON effectonce_ticks (term, state) WHERE state in (2, 5);
insert into effectonce_meta (version) select 1 where not exists (select 1 from effectonce_meta);

-- sqlite
CREATE TABLE IF NOT EXISTS effectonce_entries (
	fence BIGINT NOT NULL, 
	since BIGINT NOT NULL, 
	lease_until BIGINT NOT NULL, 
	keep_until BIGINT, 
	keep_us BIGINT, 
	lease_ms INTEGER NOT NULL, 
	attempts INTEGER NOT NULL, 
	retries INTEGER NOT NULL, 
	state SMALLINT NOT NULL, 
	flags SMALLINT NOT NULL, 
	deaths SMALLINT NOT NULL, 
	digest BLOB NOT NULL, 
	identity BLOB NOT NULL, 
	attempt BLOB NOT NULL, 
	fingerprint BLOB NOT NULL, 
	task_id TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	follower BLOB, 
	result BLOB, 
	PRIMARY KEY (digest)
);
CREATE INDEX IF NOT EXISTS effectonce_claimed ON effectonce_entries (state, lease_until) WHERE state = 1;
CREATE TABLE IF NOT EXISTS effectonce_held (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	mark BLOB NOT NULL, 
	at BIGINT NOT NULL, 
	message BLOB NOT NULL, 
	PRIMARY KEY (id)
);
CREATE UNIQUE INDEX IF NOT EXISTS effectonce_held_once ON effectonce_held (digest, mark);
CREATE TABLE IF NOT EXISTS effectonce_meta (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
);
CREATE TABLE IF NOT EXISTS effectonce_observed (
	seen_first BIGINT NOT NULL, 
	seen_last BIGINT NOT NULL, 
	times BIGINT NOT NULL, 
	again SMALLINT NOT NULL, 
	mark BLOB NOT NULL, 
	digest BLOB NOT NULL, 
	would TEXT NOT NULL, 
	task_id TEXT NOT NULL, 
	task TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	PRIMARY KEY (mark)
);
CREATE TABLE IF NOT EXISTS effectonce_outbox (
	id INTEGER NOT NULL, 
	due BIGINT NOT NULL, 
	since BIGINT NOT NULL, 
	tries INTEGER NOT NULL, 
	stage SMALLINT NOT NULL, 
	effect BLOB, 
	task TEXT NOT NULL, 
	task_id TEXT NOT NULL, 
	in_order VARCHAR(190), 
	exchange TEXT NOT NULL, 
	routing_key TEXT NOT NULL, 
	content_type TEXT NOT NULL, 
	content_encoding TEXT NOT NULL, 
	headers TEXT NOT NULL, 
	properties TEXT NOT NULL, 
	declares TEXT NOT NULL, 
	body BLOB NOT NULL, 
	error TEXT, 
	PRIMARY KEY (id)
);
CREATE INDEX IF NOT EXISTS effectonce_outbox_due ON effectonce_outbox (due);
CREATE INDEX IF NOT EXISTS effectonce_outbox_effect ON effectonce_outbox (effect);
CREATE INDEX IF NOT EXISTS effectonce_outbox_order ON effectonce_outbox (in_order, id) WHERE in_order is not null;
CREATE TABLE IF NOT EXISTS effectonce_relays (
	until BIGINT NOT NULL, 
	seat SMALLINT NOT NULL, 
	holder BLOB NOT NULL, 
	PRIMARY KEY (seat)
);
CREATE TABLE IF NOT EXISTS effectonce_reservations (
	ends BIGINT NOT NULL, 
	name BLOB NOT NULL, 
	holder TEXT NOT NULL, 
	PRIMARY KEY (name)
);
CREATE INDEX IF NOT EXISTS effectonce_reserved_until ON effectonce_reservations (ends);
CREATE TABLE IF NOT EXISTS effectonce_steps (
	fence BIGINT NOT NULL, 
	began BIGINT NOT NULL, 
	ended BIGINT, 
	flags SMALLINT NOT NULL, 
	digest BLOB NOT NULL, 
	mark BLOB NOT NULL, 
	attempt BLOB NOT NULL, 
	name TEXT NOT NULL, 
	result BLOB, 
	PRIMARY KEY (digest, mark)
);
CREATE TABLE IF NOT EXISTS effectonce_terms (
	fence BIGINT NOT NULL, 
	since BIGINT NOT NULL, 
	ends BIGINT NOT NULL, 
	holder BLOB NOT NULL, 
	digest BLOB NOT NULL, 
	name TEXT NOT NULL, 
	who TEXT NOT NULL, 
	PRIMARY KEY (digest)
);
CREATE TABLE IF NOT EXISTS effectonce_ticks (
	id INTEGER NOT NULL, 
	instant BIGINT NOT NULL, 
	fence BIGINT NOT NULL, 
	at BIGINT NOT NULL, 
	following BIGINT, 
	missed INTEGER NOT NULL, 
	state SMALLINT NOT NULL, 
	entry BLOB NOT NULL, 
	term BLOB NOT NULL, 
	name TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE UNIQUE INDEX IF NOT EXISTS effectonce_ticks_once ON effectonce_ticks (entry, instant);
CREATE INDEX IF NOT EXISTS effectonce_unmarked ON effectonce_ticks (term, state) WHERE state in (2, 5);
insert into effectonce_meta (version) select 1 where not exists (select 1 from effectonce_meta);
