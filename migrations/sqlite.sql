-- revision 0029
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE sessions (
	id TEXT NOT NULL, 
	team TEXT NOT NULL, 
	channel TEXT NOT NULL, 
	thread_ts TEXT NOT NULL, 
	name TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	active_at BIGINT NOT NULL, closed_at BIGINT, resumed_at BIGINT, resumed_by TEXT, summary TEXT DEFAULT '' NOT NULL, summary_ts TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_sessions PRIMARY KEY (id)
);
CREATE TABLE turns (
	id TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	ts TEXT NOT NULL, 
	asker_team TEXT NOT NULL, 
	asker_user TEXT NOT NULL, 
	state TEXT NOT NULL, 
	started_at BIGINT NOT NULL, 
	answer_ts TEXT, 
	ended_at BIGINT, provider TEXT, messages_dropped BOOLEAN DEFAULT 0 NOT NULL, results_dropped BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_turns PRIMARY KEY (id), 
	CONSTRAINT fk_turns_session_id FOREIGN KEY(session_id) REFERENCES sessions (id)
);
CREATE INDEX ix_turns_answer_ts ON turns (answer_ts);
CREATE TABLE messages (
	turn_id TEXT NOT NULL, 
	n INTEGER NOT NULL, 
	body TEXT NOT NULL, blocks TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_messages PRIMARY KEY (turn_id, n), 
	CONSTRAINT fk_messages_turn_id FOREIGN KEY(turn_id) REFERENCES turns (id)
);
CREATE TABLE evidence (
	turn_id TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	tool_call_id TEXT NOT NULL, 
	tool TEXT NOT NULL, 
	summary TEXT NOT NULL, 
	ok BOOLEAN NOT NULL, 
	latency_ms BIGINT NOT NULL, 
	truncated BOOLEAN NOT NULL, 
	content TEXT NOT NULL, 
	CONSTRAINT pk_evidence PRIMARY KEY (turn_id, number), 
	CONSTRAINT fk_evidence_turn_id FOREIGN KEY(turn_id) REFERENCES turns (id)
);
CREATE TABLE proposals (
	id TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	turn_id TEXT NOT NULL, 
	team TEXT NOT NULL, 
	channel TEXT NOT NULL, 
	thread_ts TEXT NOT NULL, 
	asker_team TEXT NOT NULL, 
	asker_user TEXT NOT NULL, 
	action TEXT NOT NULL, 
	product TEXT NOT NULL, 
	params TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	rationale TEXT NOT NULL, 
	model_blast_radius TEXT NOT NULL, 
	blast_radius TEXT NOT NULL, 
	reversible BOOLEAN NOT NULL, 
	untrusted_read BOOLEAN NOT NULL, 
	confirm_roles TEXT NOT NULL, 
	four_eyes BOOLEAN NOT NULL, 
	state TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT NOT NULL, 
	card_ts TEXT, 
	decided_by TEXT, 
	decided_at BIGINT, 
	decision_key TEXT, 
	reason TEXT DEFAULT '' NOT NULL, 
	dispatched_at BIGINT, 
	outcome TEXT DEFAULT '' NOT NULL, approvals INTEGER DEFAULT 1 NOT NULL, votes TEXT DEFAULT '[]' NOT NULL, action_roles TEXT DEFAULT '[]' NOT NULL, supersedes TEXT DEFAULT '' NOT NULL, confirm_dialog BOOLEAN DEFAULT 0 NOT NULL, preview TEXT DEFAULT '' NOT NULL, object_names TEXT DEFAULT '[]' NOT NULL, fingerprint TEXT DEFAULT '' NOT NULL, objects INTEGER, channel_name TEXT DEFAULT '' NOT NULL, card_wanted INTEGER DEFAULT 0 NOT NULL, card_shown INTEGER DEFAULT 0 NOT NULL, card_tries INTEGER DEFAULT 0 NOT NULL, card_due_at BIGINT, 
	CONSTRAINT pk_proposals PRIMARY KEY (id)
);
CREATE INDEX ix_proposals_pending ON proposals (expires_at) WHERE state = 'pending';
CREATE INDEX ix_proposals_session_id_state ON proposals (session_id, state);
CREATE INDEX ix_proposals_action_product_dispatched_at ON proposals (action, product, dispatched_at);
CREATE TABLE audit (
	seq INTEGER NOT NULL, 
	at BIGINT NOT NULL, 
	kind TEXT NOT NULL, 
	actor TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	body TEXT NOT NULL, 
	"key" TEXT, 
	prev TEXT, 
	mac TEXT, 
	key_id TEXT, salt TEXT, body_hash TEXT, erased_by BIGINT, tip TEXT, 
	CONSTRAINT pk_audit PRIMARY KEY (seq)
);
CREATE UNIQUE INDEX ix_audit_key ON audit ("key");
CREATE INDEX ix_audit_session_id ON audit (session_id);
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;
CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE seq = NEW.seq OR key = NEW.key) BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;
CREATE TABLE spending (
	turn_id TEXT NOT NULL, 
	round INTEGER NOT NULL, 
	provider TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	user_id TEXT NOT NULL, 
	channel TEXT NOT NULL, 
	model TEXT NOT NULL, 
	purpose TEXT NOT NULL, 
	input_uncached BIGINT NOT NULL, 
	cache_read BIGINT NOT NULL, 
	cache_write BIGINT NOT NULL, 
	output BIGINT NOT NULL, 
	cost_usd_micros BIGINT, 
	duration_ms BIGINT NOT NULL, 
	at BIGINT NOT NULL, counted_usd_micros BIGINT, channel_id TEXT DEFAULT '' NOT NULL, tenant TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_spending PRIMARY KEY (turn_id, round, provider)
);
CREATE INDEX ix_spending_at ON spending (at);
CREATE TABLE events (
	source TEXT NOT NULL, 
	external_id TEXT NOT NULL, 
	type TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	product TEXT NOT NULL, 
	at BIGINT NOT NULL, 
	data TEXT NOT NULL, 
	received_at BIGINT NOT NULL, 
	CONSTRAINT pk_events PRIMARY KEY (source, external_id)
);
CREATE INDEX ix_events_kind_product_at ON events (kind, product, at);
CREATE INDEX ix_events_kind_at ON events (kind, at);
CREATE TABLE tickets (
	id TEXT NOT NULL, 
	thread TEXT NOT NULL, 
	ts TEXT NOT NULL, 
	state TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	stop_by TEXT, deaths INTEGER, steps INTEGER, 
	CONSTRAINT pk_tickets PRIMARY KEY (id)
);
CREATE INDEX ix_tickets_thread_ts_id ON tickets (thread, ts, id);
CREATE UNIQUE INDEX ix_tickets_running ON tickets (thread) WHERE state = 'running';
CREATE TABLE replicas (
	id TEXT NOT NULL, 
	beat BIGINT NOT NULL, 
	started_at BIGINT NOT NULL, version TEXT, 
	CONSTRAINT pk_replicas PRIMARY KEY (id)
);
CREATE INDEX ix_spending_session_id ON spending (session_id);
CREATE TABLE reservations (
	id TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	turn_id TEXT NOT NULL, 
	user_id TEXT NOT NULL, 
	channel_id TEXT NOT NULL, 
	usd_micros BIGINT NOT NULL, 
	tokens BIGINT NOT NULL, 
	at BIGINT NOT NULL, tenant TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_reservations PRIMARY KEY (id)
);
CREATE TABLE budget_alerts (
	day TEXT NOT NULL, 
	claimed_at BIGINT NOT NULL, 
	told BOOLEAN NOT NULL, 
	CONSTRAINT pk_budget_alerts PRIMARY KEY (day)
);
CREATE INDEX ix_audit_actor ON audit (actor);
CREATE INDEX ix_audit_at ON audit (at);
CREATE TABLE audit_checkpoints (
	seq INTEGER NOT NULL, 
	at BIGINT NOT NULL, 
	line TEXT NOT NULL, 
	CONSTRAINT pk_audit_checkpoints PRIMARY KEY (seq)
);
CREATE TABLE audit_sinks (
	name TEXT NOT NULL, 
	seq BIGINT NOT NULL, 
	claimed_until BIGINT NOT NULL, 
	CONSTRAINT pk_audit_sinks PRIMARY KEY (name)
);
CREATE TRIGGER audit_checkpoints_no_update BEFORE UPDATE ON audit_checkpoints BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;
CREATE TRIGGER audit_checkpoints_no_delete BEFORE DELETE ON audit_checkpoints BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;
CREATE TABLE incidents (
	number INTEGER NOT NULL, 
	source TEXT NOT NULL, 
	external_id TEXT NOT NULL, 
	scope TEXT DEFAULT '' NOT NULL, 
	product TEXT DEFAULT '' NOT NULL, 
	title TEXT DEFAULT '' NOT NULL, 
	severity TEXT DEFAULT '' NOT NULL, 
	opened_at BIGINT NOT NULL, 
	closed_at BIGINT, 
	resolution TEXT DEFAULT '' NOT NULL, 
	words TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_incidents PRIMARY KEY (number)
);
CREATE UNIQUE INDEX ix_incidents_source_external_id ON incidents (source, external_id);
CREATE VIRTUAL TABLE incidents_fts USING fts5(words, content='incidents', content_rowid='number', detail=none, columnsize=0, tokenize="unicode61 remove_diacritics 0 tokenchars '_'");
CREATE TRIGGER incidents_insert AFTER INSERT ON incidents BEGIN INSERT INTO incidents_fts(rowid, words) VALUES (new.number, new.words); END;
CREATE TRIGGER incidents_delete AFTER DELETE ON incidents BEGIN INSERT INTO incidents_fts(incidents_fts, rowid, words) VALUES ('delete', old.number, old.words); END;
CREATE TRIGGER incidents_update AFTER UPDATE OF words ON incidents BEGIN INSERT INTO incidents_fts(incidents_fts, rowid, words) VALUES ('delete', old.number, old.words); INSERT INTO incidents_fts(rowid, words) VALUES (new.number, new.words); END;
CREATE TABLE switches (
	name TEXT NOT NULL, 
	is_on BOOLEAN NOT NULL, 
	by_user TEXT DEFAULT '' NOT NULL, 
	reason TEXT DEFAULT '' NOT NULL, 
	at BIGINT NOT NULL, 
	CONSTRAINT pk_switches PRIMARY KEY (name)
);
CREATE TABLE watches (
	proposal_id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	due_at BIGINT NOT NULL, 
	until_at BIGINT NOT NULL, 
	CONSTRAINT pk_watches PRIMARY KEY (proposal_id, kind)
);
CREATE INDEX ix_watches_due_at ON watches (due_at);
CREATE TABLE schema_served (
	revision TEXT NOT NULL, 
	CONSTRAINT pk_schema_served PRIMARY KEY (revision)
);
CREATE TABLE channel_names (
	team TEXT NOT NULL, 
	channel TEXT NOT NULL, 
	name TEXT NOT NULL, 
	read_at BIGINT NOT NULL, 
	CONSTRAINT pk_channel_names PRIMARY KEY (team, channel)
);
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit WHEN ((NEW.seq IS OLD.seq AND NEW.at IS OLD.at AND NEW.kind IS OLD.kind AND NEW.session_id IS OLD.session_id AND NEW.key IS OLD.key AND NEW.prev IS OLD.prev AND NEW.mac IS OLD.mac AND NEW.key_id IS OLD.key_id AND NEW.body_hash IS OLD.body_hash AND NEW.tip IS OLD.tip AND OLD.erased_by IS NULL AND OLD.kind <> 'audit.erased' AND NEW.actor = '' AND NEW.salt = '' AND NEW.body = '' AND NEW.erased_by > OLD.seq AND EXISTS (SELECT 1 FROM audit AS said WHERE said.seq = NEW.erased_by AND said.kind = 'audit.erased')) OR (NEW.seq IS OLD.seq AND NEW.at IS OLD.at AND NEW.kind IS OLD.kind AND NEW.session_id IS OLD.session_id AND NEW.key IS OLD.key AND NEW.prev IS OLD.prev AND NEW.mac IS OLD.mac AND NEW.key_id IS OLD.key_id AND NEW.body_hash IS OLD.body_hash AND NEW.actor IS OLD.actor AND NEW.salt IS OLD.salt AND NEW.body IS OLD.body AND NEW.erased_by IS OLD.erased_by AND OLD.tip IS NOT NULL AND NEW.tip IS NULL AND EXISTS (SELECT 1 FROM audit AS later WHERE later.seq > OLD.seq))) IS NOT TRUE BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;
CREATE TRIGGER audit_tip AFTER INSERT ON audit BEGIN UPDATE audit SET tip = NULL WHERE seq = NEW.seq - 1 AND tip IS NOT NULL; END;
CREATE INDEX ix_turns_running ON turns (id) WHERE state = 'running';
CREATE INDEX ix_proposals_card_differs ON proposals (card_due_at) WHERE card_shown < card_wanted;
CREATE TABLE undelivered (
	turn_id TEXT NOT NULL, 
	ask TEXT NOT NULL, 
	final TEXT NOT NULL, 
	since BIGINT NOT NULL, 
	due_at BIGINT NOT NULL, 
	tries INTEGER DEFAULT 0 NOT NULL, 
	PRIMARY KEY (turn_id)
);
CREATE TABLE feedback (
	turn_id TEXT NOT NULL, 
	team TEXT NOT NULL, 
	user_id TEXT NOT NULL, 
	vote TEXT NOT NULL, 
	reason TEXT DEFAULT '' NOT NULL, 
	at BIGINT NOT NULL, 
	PRIMARY KEY (turn_id, team, user_id), 
	FOREIGN KEY(turn_id) REFERENCES turns (id)
);
CREATE INDEX ix_feedback_at ON feedback (at);
CREATE TABLE alert_threads (
	id TEXT NOT NULL, 
	rule TEXT NOT NULL, 
	product TEXT NOT NULL, 
	channel TEXT NOT NULL, 
	question TEXT NOT NULL, 
	thread_ts TEXT, 
	note_ts TEXT, 
	opened_at BIGINT NOT NULL, 
	heard_at BIGINT NOT NULL, 
	resolved_at BIGINT, 
	ends INTEGER NOT NULL, 
	is_overflow BOOLEAN NOT NULL, 
	investigation TEXT NOT NULL, 
	left_out TEXT NOT NULL, 
	wanted INTEGER NOT NULL, 
	shown INTEGER NOT NULL, 
	tries INTEGER NOT NULL, 
	due_at BIGINT, 
	PRIMARY KEY (id)
);
CREATE INDEX ix_alert_threads_rule_heard_at ON alert_threads (rule, heard_at);
CREATE INDEX ix_alert_threads_opened_at ON alert_threads (opened_at);
CREATE INDEX ix_alert_threads_channel_thread_ts ON alert_threads (channel, thread_ts);
CREATE INDEX ix_alert_threads_differs ON alert_threads (due_at) WHERE shown < wanted;
CREATE TABLE alerts (
	thread_id TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	group_key TEXT NOT NULL, 
	source TEXT NOT NULL, 
	state TEXT NOT NULL, 
	title TEXT NOT NULL, 
	labels TEXT NOT NULL, 
	began_at BIGINT NOT NULL, 
	changed_at BIGINT NOT NULL, 
	fires INTEGER NOT NULL, 
	repeats INTEGER NOT NULL, 
	CONSTRAINT pk_alerts PRIMARY KEY (thread_id, "key"), 
	CONSTRAINT fk_alerts_thread_id FOREIGN KEY(thread_id) REFERENCES alert_threads (id)
);
CREATE TABLE callers (
	user_id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	roles TEXT NOT NULL, 
	account TEXT DEFAULT '' NOT NULL, 
	known_until BIGINT, 
	PRIMARY KEY (user_id)
);
CREATE TABLE caller_tokens (
	id TEXT NOT NULL, 
	user_id TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT, 
	revoked_at BIGINT, 
	last_used_at BIGINT, 
	PRIMARY KEY (id), 
	CONSTRAINT fk_caller_tokens_user_id FOREIGN KEY(user_id) REFERENCES callers (user_id)
);
CREATE UNIQUE INDEX ix_caller_tokens_digest ON caller_tokens (digest);
CREATE INDEX ix_caller_tokens_user_id ON caller_tokens (user_id);
CREATE TABLE origin (
	name TEXT NOT NULL, 
	written_by TEXT DEFAULT '' NOT NULL, 
	timeline TEXT DEFAULT '' NOT NULL, 
	copied_at BIGINT, 
	PRIMARY KEY (name)
);
CREATE TABLE installations (
	team TEXT NOT NULL, 
	enterprise TEXT NOT NULL, 
	app_id TEXT NOT NULL, 
	bot_user TEXT NOT NULL, 
	bot_id TEXT NOT NULL, 
	site TEXT NOT NULL, 
	sealed TEXT NOT NULL, 
	revision BIGINT NOT NULL, 
	changed_at BIGINT NOT NULL, 
	PRIMARY KEY (team)
);
CREATE TABLE oauth_states (
	digest TEXT NOT NULL, 
	issued_at BIGINT NOT NULL, 
	PRIMARY KEY (digest)
);
CREATE TABLE chat_sessions (
	id TEXT NOT NULL, 
	channel TEXT NOT NULL, 
	thread TEXT NOT NULL, 
	owner_team TEXT NOT NULL, 
	owner_user TEXT NOT NULL, 
	owner_name TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	last_seq BIGINT DEFAULT 0 NOT NULL, 
	PRIMARY KEY (id)
);
CREATE UNIQUE INDEX ix_chat_sessions_channel_thread ON chat_sessions (channel, thread);
CREATE INDEX ix_chat_sessions_owner_user_created_at ON chat_sessions (owner_user, created_at);
CREATE INDEX ix_chat_sessions_created_at ON chat_sessions (created_at);
CREATE TABLE chat_messages (
	session_id TEXT NOT NULL, 
	ts TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	writer TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (session_id, ts), 
	CONSTRAINT fk_chat_messages_session_id FOREIGN KEY(session_id) REFERENCES chat_sessions (id)
);
CREATE UNIQUE INDEX ix_chat_messages_session_id_key ON chat_messages (session_id, "key");
CREATE TABLE chat_events (
	session_id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	data TEXT NOT NULL, 
	message TEXT DEFAULT '' NOT NULL, 
	"key" TEXT, 
	to_user TEXT DEFAULT '' NOT NULL, 
	at BIGINT NOT NULL, 
	PRIMARY KEY (session_id, seq), 
	CONSTRAINT fk_chat_events_session_id FOREIGN KEY(session_id) REFERENCES chat_sessions (id)
);
CREATE INDEX ix_chat_events_session_id_message ON chat_events (session_id, message);
CREATE UNIQUE INDEX ix_chat_events_session_id_key ON chat_events (session_id, "key");
CREATE INDEX ix_chat_events_at ON chat_events (at);
CREATE TABLE accepted (
	id TEXT NOT NULL, 
	ask TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE turn_steps (
	turn_id TEXT NOT NULL, 
	n INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (turn_id, n)
);
CREATE INDEX ix_sessions_active_at_id ON sessions (active_at, id);
CREATE INDEX ix_sessions_created_at ON sessions (created_at);
CREATE INDEX ix_turns_ended_at ON turns (ended_at);
CREATE INDEX ix_spending_user_id_at ON spending (user_id, at);
CREATE INDEX ix_sessions_open ON sessions (active_at) WHERE closed_at IS NULL;
CREATE INDEX ix_sessions_summed_up ON sessions (id) WHERE summary <> '';
CREATE INDEX ix_turns_with_messages ON turns (ended_at) WHERE NOT messages_dropped;
CREATE INDEX ix_turns_with_results ON turns (ended_at) WHERE NOT results_dropped;
CREATE INDEX ix_proposals_under_way ON proposals (decided_at) WHERE state IN ('confirmed', 'dispatching');
CREATE INDEX ix_feedback_reasons ON feedback (at) WHERE reason <> '';
CREATE INDEX ix_alerts_with_words ON alerts (thread_id) WHERE title <> '' OR labels <> '{}';
CREATE INDEX ix_audit_sealed ON audit (seq) WHERE kind = 'audit.sealed';
CREATE UNIQUE INDEX ix_turns_session_id_ts_id ON turns (session_id, ts, id);
CREATE TABLE spent_days (
	day BIGINT NOT NULL, 
	tenant TEXT NOT NULL, 
	channel_id TEXT NOT NULL, 
	cost_usd_micros BIGINT NOT NULL, 
	counted_usd_micros BIGINT NOT NULL, 
	CONSTRAINT pk_spent_days PRIMARY KEY (day, tenant, channel_id)
);
CREATE TRIGGER spending_day_added AFTER INSERT ON spending BEGIN INSERT INTO spent_days (day, tenant, channel_id, cost_usd_micros, counted_usd_micros) VALUES (NEW.at / 86400000000 * 86400000000, NEW.tenant, NEW.channel_id, coalesce(NEW.cost_usd_micros, 0), coalesce(NEW.counted_usd_micros, NEW.cost_usd_micros, 0)) ON CONFLICT (day, tenant, channel_id) DO UPDATE SET cost_usd_micros = spent_days.cost_usd_micros + excluded.cost_usd_micros, counted_usd_micros = spent_days.counted_usd_micros + excluded.counted_usd_micros; END;
CREATE TRIGGER spending_day_removed AFTER DELETE ON spending BEGIN UPDATE spent_days SET cost_usd_micros = cost_usd_micros - coalesce(OLD.cost_usd_micros, 0), counted_usd_micros = counted_usd_micros - coalesce(OLD.counted_usd_micros, OLD.cost_usd_micros, 0) WHERE day = OLD.at / 86400000000 * 86400000000 AND tenant = OLD.tenant AND channel_id = OLD.channel_id; END;
CREATE TRIGGER spending_day_changed AFTER UPDATE OF at, tenant, channel_id, cost_usd_micros, counted_usd_micros ON spending BEGIN UPDATE spent_days SET cost_usd_micros = cost_usd_micros - coalesce(OLD.cost_usd_micros, 0), counted_usd_micros = counted_usd_micros - coalesce(OLD.counted_usd_micros, OLD.cost_usd_micros, 0) WHERE day = OLD.at / 86400000000 * 86400000000 AND tenant = OLD.tenant AND channel_id = OLD.channel_id; INSERT INTO spent_days (day, tenant, channel_id, cost_usd_micros, counted_usd_micros) VALUES (NEW.at / 86400000000 * 86400000000, NEW.tenant, NEW.channel_id, coalesce(NEW.cost_usd_micros, 0), coalesce(NEW.counted_usd_micros, NEW.cost_usd_micros, 0)) ON CONFLICT (day, tenant, channel_id) DO UPDATE SET cost_usd_micros = spent_days.cost_usd_micros + excluded.cost_usd_micros, counted_usd_micros = spent_days.counted_usd_micros + excluded.counted_usd_micros; END;
CREATE INDEX ix_proposals_dispatched_at ON proposals (dispatched_at) WHERE dispatched_at IS NOT NULL;
CREATE TABLE session_tokens (
	session_id TEXT NOT NULL, 
	tokens BIGINT NOT NULL, 
	CONSTRAINT pk_session_tokens PRIMARY KEY (session_id)
);
CREATE TRIGGER spending_tokens_added AFTER INSERT ON spending BEGIN INSERT INTO session_tokens (session_id, tokens) SELECT NEW.session_id, NEW.input_uncached + NEW.cache_read + NEW.cache_write + NEW.output WHERE NEW.session_id <> '' ON CONFLICT (session_id) DO UPDATE SET tokens = session_tokens.tokens + excluded.tokens; END;
CREATE TRIGGER spending_tokens_removed AFTER DELETE ON spending BEGIN UPDATE session_tokens SET tokens = tokens - (OLD.input_uncached + OLD.cache_read + OLD.cache_write + OLD.output) WHERE session_id = OLD.session_id; END;
CREATE TRIGGER spending_tokens_changed AFTER UPDATE OF session_id, input_uncached, cache_read, cache_write, output ON spending BEGIN UPDATE session_tokens SET tokens = tokens - (OLD.input_uncached + OLD.cache_read + OLD.cache_write + OLD.output) WHERE session_id = OLD.session_id; INSERT INTO session_tokens (session_id, tokens) SELECT NEW.session_id, NEW.input_uncached + NEW.cache_read + NEW.cache_write + NEW.output WHERE NEW.session_id <> '' ON CONFLICT (session_id) DO UPDATE SET tokens = session_tokens.tokens + excluded.tokens; END;
INSERT INTO alembic_version (version_num) VALUES ('0029');
INSERT INTO schema_served (revision) VALUES ('0029');
INSERT INTO schema_served (revision) VALUES ('0028');
INSERT INTO schema_served (revision) VALUES ('0027');
INSERT INTO schema_served (revision) VALUES ('0026');
INSERT INTO schema_served (revision) VALUES ('0025');
INSERT INTO schema_served (revision) VALUES ('0024');
INSERT INTO schema_served (revision) VALUES ('0023');
INSERT INTO schema_served (revision) VALUES ('0022');
INSERT INTO schema_served (revision) VALUES ('0021');
INSERT INTO schema_served (revision) VALUES ('0020');
INSERT INTO schema_served (revision) VALUES ('0019');
INSERT INTO schema_served (revision) VALUES ('0018');
INSERT INTO schema_served (revision) VALUES ('0017');
INSERT INTO schema_served (revision) VALUES ('0016');
INSERT INTO schema_served (revision) VALUES ('0015');
INSERT INTO schema_served (revision) VALUES ('0014');
INSERT INTO schema_served (revision) VALUES ('0013');
INSERT INTO schema_served (revision) VALUES ('0012');
INSERT INTO schema_served (revision) VALUES ('0011');
INSERT INTO schema_served (revision) VALUES ('0010');
INSERT INTO schema_served (revision) VALUES ('0009');
INSERT INTO schema_served (revision) VALUES ('0008');
INSERT INTO schema_served (revision) VALUES ('0007');
INSERT INTO schema_served (revision) VALUES ('0006');
INSERT INTO schema_served (revision) VALUES ('0005');
INSERT INTO schema_served (revision) VALUES ('0004');
INSERT INTO schema_served (revision) VALUES ('0002');
INSERT INTO schema_served (revision) VALUES ('0001');
