"""The whole schema: tables, indexes and triggers.

The models say what each table holds; a test compares both.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")

# An audit row is written once. TRUNCATE is no DELETE to PostgreSQL, so it is refused apart.
SQLITE_TRIGGERS = (
    """CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END""",
    """CREATE TRIGGER audit_is_final BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END""",
)
POSTGRESQL_TRIGGERS = (
    """CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'audit is append-only'; END $$""",
    """CREATE TRIGGER audit_is_final BEFORE UPDATE OR DELETE ON audit
    FOR EACH ROW EXECUTE FUNCTION refuse_audit_change()""",
    """CREATE TRIGGER audit_is_kept BEFORE TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change()""",
)

# What decides who sees what. A queue's own turns and a token's last use are left out.
ACCESS = (
    ("api_token", "INSERT"),
    ("api_token", "UPDATE OF expires_at, revoked_at"),
    ("repository", "INSERT"),
    ("repository", "UPDATE"),
    ("repository_alias", "INSERT"),
    ("repository_alias", "DELETE"),
    ("merge_queue", "INSERT"),
    ("merge_queue", "UPDATE OF branch, deleted"),
)
COUNT_ACCESS = "UPDATE deployment SET access_version = access_version + 1"
POSTGRESQL_COUNTER = f"""CREATE FUNCTION count_access_change() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN {COUNT_ACCESS}; RETURN NULL; END $$"""


def upgrade() -> None:
    _create_tables_of_tenants()
    _create_tables_of_deliveries()
    _create_tables_of_queues()
    _create_tables_of_evidence()
    _create_tables_of_tests()
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    audit_triggers = SQLITE_TRIGGERS if is_sqlite else POSTGRESQL_TRIGGERS
    for trigger in (*audit_triggers, *_access_triggers(is_sqlite=is_sqlite)):
        op.execute(trigger)


def _create_tables_of_tenants() -> None:
    op.create_table(
        "deployment",
        sa.Column("id", BIG, nullable=False, autoincrement=False),
        sa.Column("uuid", sa.String(), nullable=False),
        sa.Column("access_version", sa.Integer(), nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("id", name="pk_deployment"),
    )
    op.create_table(
        "organization",
        sa.Column("id", BIG, nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("provider_id", sa.String(), nullable=True),
        sa.Column("slug", sa.String(), nullable=False),
        sa.Column("slug_key", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_organization"),
        sa.UniqueConstraint("host", "provider_id", name="uq_organization_host_provider_id"),
        sa.UniqueConstraint("host", "slug_key", name="uq_organization_host_slug_key"),
    )
    op.create_table(
        "repository",
        sa.Column("id", BIG, nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("provider_id", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("owner_key", sa.String(), nullable=True),
        sa.Column("name_key", sa.String(), nullable=True),
        sa.Column("default_branch", sa.String(), nullable=False),
        sa.Column("merge_methods", sa.Text(), nullable=False),
        sa.Column("archived", sa.Boolean(), nullable=False),
        sa.Column("available", sa.Boolean(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_repository"),
        sa.UniqueConstraint("host", "provider_id", name="uq_repository_host_provider_id"),
        sa.UniqueConstraint(
            "host", "owner_key", "name_key", name="uq_repository_host_owner_key_name_key"
        ),
        sa.ForeignKeyConstraint(["org_id"], ["organization.id"], name="fk_repository_org_id"),
    )
    op.create_index("ix_repository_org_id", "repository", ["org_id"])
    op.create_table(
        "repository_alias",
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("owner_key", sa.String(), nullable=False),
        sa.Column("name_key", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("repository_id", BIG, nullable=False),
        sa.PrimaryKeyConstraint("host", "owner_key", "name_key", name="pk_repository_alias"),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repository.id"], name="fk_repository_alias_repository_id"
        ),
    )
    op.create_index("ix_repository_alias_repository_id", "repository_alias", ["repository_id"])
    op.create_table(
        "api_token",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("repositories", sa.Text(), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=True),
        sa.Column("last_used_at", TIME, nullable=True),
        sa.Column("revoked_at", TIME, nullable=True),
        sa.Column("granted_until", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_api_token"),
        sa.ForeignKeyConstraint(["org_id"], ["organization.id"], name="fk_api_token_org_id"),
    )
    op.create_index("ix_api_token_org_id", "api_token", ["org_id"])
    op.create_table(
        "web_session",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("person_id", sa.String(), nullable=False),
        sa.Column("login", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_web_session"),
    )
    op.create_table(
        "audit",
        sa.Column("id", BIG, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("org_id", BIG, nullable=True),
        sa.Column("actor_kind", sa.String(), nullable=False),
        sa.Column("actor_id", sa.String(), nullable=False),
        sa.Column("actor_login", sa.String(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("decision", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("request_id", sa.String(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
    )
    op.create_index("ix_audit_org_id_id", "audit", ["org_id", "id"])
    op.create_table(
        "idempotency",
        sa.Column("token_id", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("claim", sa.String(), nullable=False),
        sa.Column("claimed_until", TIME, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("content_type", sa.String(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("token_id", "path", "key", name="pk_idempotency"),
    )
    op.create_index("ix_idempotency_at", "idempotency", ["at"])


def _create_tables_of_deliveries() -> None:
    op.create_table(
        "inbox",
        sa.Column("id", BIG, nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("delivery_id", sa.String(), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=True),
        sa.Column("repository_id", sa.String(), nullable=True),
        sa.Column("lane", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("is_open", sa.Boolean(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("received_at", TIME, nullable=False),
        sa.Column("next_at", TIME, nullable=False),
        sa.Column("claimed_until", TIME, nullable=True),
        sa.Column("claimed_by", sa.String(), nullable=True),
        sa.Column("note", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_inbox"),
        sa.UniqueConstraint("host", "delivery_id", name="uq_inbox_host_delivery_id"),
    )
    _partial_index("ix_inbox_lane", "inbox", ["lane", "id"], "is_open IS true")
    _partial_index("ix_inbox_poisoned", "inbox", ["id"], "state = 'poisoned'")
    op.create_index("ix_inbox_received_at", "inbox", ["received_at"])
    op.create_table(
        "inbox_body",
        sa.Column("inbox_id", BIG, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("inbox_id", name="pk_inbox_body"),
        sa.ForeignKeyConstraint(["inbox_id"], ["inbox.id"], name="fk_inbox_body_inbox_id"),
    )
    op.create_table(
        "heard_command",
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("source_id", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("said_at", TIME, nullable=False),
        sa.Column("heard_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "source", "source_id", name="pk_heard_command"),
    )
    op.create_index("ix_heard_command_heard_at", "heard_command", ["heard_at"])
    op.create_index(
        "ix_heard_command_topic", "heard_command", ["repository_id", "topic", "said_at"]
    )
    op.create_table(
        "sweep_cursor",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_sweep_cursor"),
    )
    op.create_table(
        "outbox",
        sa.Column("id", BIG, nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("queue_id", BIG, nullable=True),
        sa.Column("epoch", BIG, nullable=False),
        sa.Column("lane", sa.String(), nullable=False),
        sa.Column("idem_key", sa.String(), nullable=False),
        sa.Column("supersede_key", sa.String(), nullable=True),
        sa.Column("run", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("effect_type", sa.String(), nullable=False),
        sa.Column("effect", sa.Text(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("is_open", sa.Boolean(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at", TIME, nullable=False),
        sa.Column("sent_at", TIME, nullable=True),
        sa.Column("claimed_by", sa.String(), nullable=True),
        sa.Column("note", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
        sa.UniqueConstraint("idem_key", name="uq_outbox_idem_key"),
    )
    op.create_index("ix_outbox_next_at", "outbox", ["next_at"])
    _partial_index("ix_outbox_open", "outbox", ["queue_id", "lane", "id"], "is_open IS true")
    _partial_index("ix_outbox_open_next_at", "outbox", ["lane", "next_at"], "is_open IS true")
    _partial_index("ix_outbox_open_run", "outbox", ["run", "id"], "is_open IS true")
    _partial_index(
        "ix_outbox_open_supersede_key", "outbox", ["supersede_key", "id"], "is_open IS true"
    )
    op.create_table(
        "journal",
        sa.Column("id", BIG, nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("queue_id", BIG, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("number", BIG, nullable=True),
        sa.Column("entry", sa.String(), nullable=True),
        sa.Column("run", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_journal"),
    )
    op.create_index("ix_journal_at", "journal", ["at"])
    _partial_index(
        "ix_journal_changes_of_queue",
        "journal",
        ["queue_id", "at", "id"],
        "event = 'QueueStateChanged'",
    )
    op.create_index("ix_journal_queue_id_id", "journal", ["queue_id", "id"])
    op.create_index("ix_journal_queue_id_number_id", "journal", ["queue_id", "number", "id"])
    op.create_index("ix_journal_run_id", "journal", ["run", "id"])
    op.create_table(
        "instance",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("heartbeat", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_instance"),
    )
    op.create_table(
        "endpoint",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("events", sa.Text(), nullable=False),
        sa.Column("repositories", sa.Text(), nullable=True),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("previous_secret", sa.LargeBinary(), nullable=True),
        sa.Column("previous_until", TIME, nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("disabled_reason", sa.String(), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("last_success_at", TIME, nullable=True),
        sa.Column("last_failure_at", TIME, nullable=True),
        sa.Column("failing_since", TIME, nullable=True),
        sa.Column("failed_messages", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_endpoint"),
        sa.ForeignKeyConstraint(["org_id"], ["organization.id"], name="fk_endpoint_org_id"),
    )
    op.create_index("ix_endpoint_org_id", "endpoint", ["org_id"])
    op.create_table(
        "notification",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_notification"),
    )
    op.create_index("ix_notification_at", "notification", ["at"])
    op.create_table(
        "notification_attempt",
        sa.Column("id", BIG, nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("endpoint", sa.String(), nullable=False),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("made_at", TIME, nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("is_open", sa.Boolean(), nullable=False),
        sa.Column("is_newest", sa.Boolean(), nullable=False),
        sa.Column("next_at", TIME, nullable=False),
        sa.Column("claimed_until", TIME, nullable=True),
        sa.Column("claimed_by", sa.String(), nullable=True),
        sa.Column("at", TIME, nullable=True),
        sa.Column("status_code", sa.Integer(), nullable=True),
        sa.Column("duration_ms", sa.Integer(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_notification_attempt"),
    )
    op.create_index("ix_notification_attempt_made_at", "notification_attempt", ["made_at"])
    op.create_index("ix_notification_attempt_message", "notification_attempt", ["message"])
    _partial_index(
        "ix_notification_attempt_newest",
        "notification_attempt",
        ["endpoint", "made_at", "message"],
        "is_newest IS true",
    )
    _partial_index(
        "ix_notification_attempt_open",
        "notification_attempt",
        ["endpoint", "next_at", "id"],
        "is_open IS true",
    )
    _partial_index(
        "ix_notification_attempt_open_claimed",
        "notification_attempt",
        ["endpoint"],
        "claimed_until IS NOT NULL",
    )
    _partial_index(
        "ix_notification_attempt_open_next_at",
        "notification_attempt",
        ["next_at"],
        "is_open IS true",
    )
    op.create_index(
        "ux_notification_attempt_endpoint",
        "notification_attempt",
        ["endpoint", "message", "n"],
        unique=True,
    )


def _create_tables_of_queues() -> None:
    op.create_table(
        "merge_queue",
        sa.Column("id", BIG, nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("epoch", BIG, nullable=False),
        sa.Column("wake_at", TIME, nullable=True),
        sa.Column("deleted_at", TIME, nullable=True),
        sa.Column("uid", sa.String(), nullable=False),
        sa.Column("branch", sa.String(), nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("own_config", sa.Text(), nullable=True),
        sa.Column("chosen", sa.Text(), nullable=False),
        sa.Column("file", sa.Text(), nullable=True),
        sa.Column("tip", sa.Text(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("state_reason", sa.String(), nullable=True),
        sa.Column("state_since", TIME, nullable=True),
        sa.Column("state_by", sa.Text(), nullable=True),
        sa.Column("test_branch_reason", sa.String(), nullable=True),
        sa.Column("target_mode", sa.String(), nullable=True),
        sa.Column("sends_results", sa.Boolean(), nullable=False),
        sa.Column("rates", sa.Text(), nullable=False),
        sa.Column("bisections", sa.Text(), nullable=False),
        sa.Column("landing", sa.Text(), nullable=True),
        sa.Column("holds", sa.Text(), nullable=False),
        sa.Column("landed", sa.Text(), nullable=False),
        sa.Column("breaker", sa.Text(), nullable=False),
        sa.Column("records", sa.Text(), nullable=False),
        sa.Column("required", sa.Text(), nullable=True),
        sa.Column("kept_move", sa.Text(), nullable=True),
        sa.Column("advance_refused_at", TIME, nullable=True),
        sa.Column("land_after", TIME, nullable=True),
        sa.Column("unexplained", sa.Text(), nullable=False),
        sa.Column("next_seq", sa.Integer(), nullable=False),
        sa.Column("next_run", sa.Integer(), nullable=False),
        sa.Column("next_bisection", sa.Integer(), nullable=False),
        sa.Column("next_entry", sa.Integer(), nullable=False),
        sa.Column("next_landing", sa.Integer(), nullable=False),
        sa.Column("next_hold", sa.Integer(), nullable=False),
        sa.Column("deleted", sa.Boolean(), nullable=False),
        sa.Column("revision", BIG, nullable=False),
        sa.Column("version", BIG, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_merge_queue"),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repository.id"], name="fk_merge_queue_repository_id"
        ),
    )
    op.create_index("ix_merge_queue_repository_id", "merge_queue", ["repository_id"])
    _partial_index("ix_merge_queue_wake_at", "merge_queue", ["wake_at"], "wake_at IS NOT NULL")
    _partial_index(
        "ux_merge_queue_branch",
        "merge_queue",
        ["repository_id", "branch"],
        "deleted IS false",
        unique=True,
    )
    op.create_table(
        "entry",
        sa.Column("no", BIG, nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("queue_id", BIG, nullable=False),
        sa.Column("live", sa.Boolean(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("pr", BIG, nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.Column("head", sa.String(), nullable=False),
        sa.Column("submitted_by", sa.Text(), nullable=False),
        sa.Column("submitted_at", TIME, nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("no_batch", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("state_since", TIME, nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=True),
        sa.Column("rank", BIG, nullable=True),
        sa.Column("run", sa.String(), nullable=True),
        sa.Column("verified_by", sa.String(), nullable=True),
        sa.Column("bisection", sa.String(), nullable=True),
        sa.Column("held_by", sa.Text(), nullable=False),
        sa.Column("unmet", sa.Text(), nullable=False),
        sa.Column("barred", sa.Text(), nullable=False),
        sa.Column("unready_since", TIME, nullable=True),
        sa.Column("p_fail", sa.Float(), nullable=False),
        sa.Column("cancel", sa.String(), nullable=True),
        sa.Column("cancel_detail", sa.Text(), nullable=False),
        sa.Column("canceller", sa.Text(), nullable=True),
        sa.Column("retries", sa.Integer(), nullable=False),
        sa.Column("build_tries", sa.Integer(), nullable=False),
        sa.Column("build_after", TIME, nullable=True),
        sa.Column("taken_apart", sa.Boolean(), nullable=False),
        sa.Column("fresh", sa.Boolean(), nullable=False),
        sa.Column("restarts", sa.Text(), nullable=False),
        sa.Column("losses", sa.Integer(), nullable=False),
        sa.Column("landed_sha", sa.String(), nullable=True),
        sa.Column("targets", sa.String(), nullable=True),
        sa.Column("wide", sa.String(), nullable=True),
        sa.Column("batch", sa.Integer(), nullable=True),
        sa.Column("failed_batches", sa.Integer(), nullable=False),
        sa.Column("kept", sa.Boolean(), nullable=False),
        sa.Column("screened", sa.Boolean(), nullable=False),
        sa.Column("stops", sa.Text(), nullable=False),
        sa.Column("refusals", sa.Integer(), nullable=False),
        sa.Column("refusal", sa.Text(), nullable=True),
        sa.Column("rested_on", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("no", name="pk_entry"),
        sa.UniqueConstraint("id", name="uq_entry_id"),
        sa.ForeignKeyConstraint(["queue_id"], ["merge_queue.id"], name="fk_entry_queue_id"),
    )
    _partial_index(
        "ix_entry_ended", "entry", ["queue_id", "state", "state_since", "no"], "live IS false"
    )
    op.create_index("ix_entry_queue_id_no", "entry", ["queue_id", "no"])
    op.create_index("ix_entry_queue_id_pr_no", "entry", ["queue_id", "pr", "no"])
    _partial_index("ix_entry_targets", "entry", ["targets"], "targets IS NOT NULL")
    _partial_index("ix_entry_wide", "entry", ["wide"], "wide IS NOT NULL")
    _partial_index("ux_entry_live", "entry", ["queue_id", "pr"], "live IS true", unique=True)
    op.create_table(
        "run",
        sa.Column("no", BIG, nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("queue_id", BIG, nullable=False),
        sa.Column("live", sa.Boolean(), nullable=False),
        sa.Column("vehicle_number", BIG, nullable=True),
        sa.Column("vehicle_url", sa.String(), nullable=True),
        sa.Column("restored", sa.Boolean(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("base_tip", sa.Text(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("phase", sa.String(), nullable=False),
        sa.Column("required", sa.Text(), nullable=False),
        sa.Column("required_source", sa.String(), nullable=True),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("steps", sa.Text(), nullable=False),
        sa.Column("sha", sa.String(), nullable=True),
        sa.Column("branch", sa.String(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("checks_complete", sa.Boolean(), nullable=False),
        sa.Column("built_at", TIME, nullable=True),
        sa.Column("start_clock", TIME, nullable=True),
        sa.Column("last_report_at", TIME, nullable=True),
        sa.Column("failed_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("cause", sa.String(), nullable=True),
        sa.Column("excused", sa.Text(), nullable=False),
        sa.Column("asked_evidence", TIME, nullable=True),
        sa.Column("evidence", sa.Text(), nullable=True),
        sa.Column("rerun_at", TIME, nullable=True),
        sa.Column("rerun_ids", sa.Text(), nullable=False),
        sa.Column("revoked", sa.Text(), nullable=False, server_default="[]"),
        sa.Column("is_flaky", sa.Boolean(), nullable=False),
        sa.Column("fresh", sa.Boolean(), nullable=False),
        sa.Column("published", sa.Boolean(), nullable=False),
        sa.Column("reused_from", sa.String(), nullable=True),
        sa.Column("deadline", TIME, nullable=True),
        sa.Column("contained", sa.Boolean(), nullable=False),
        sa.Column("bisection", sa.String(), nullable=True),
        sa.Column("without", sa.Text(), nullable=False),
        sa.Column("witness_of", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("no", name="pk_run"),
        sa.UniqueConstraint("id", name="uq_run_id"),
        sa.ForeignKeyConstraint(["queue_id"], ["merge_queue.id"], name="fk_run_queue_id"),
    )
    _partial_index("ix_run_built", "run", ["queue_id", "no", "status"], "sha IS NOT NULL")
    _partial_index("ix_run_live", "run", ["queue_id"], "live IS true")
    _partial_index("ix_run_live_sha", "run", ["repository_id", "sha"], "live IS true")
    op.create_index("ix_run_queue_id_status_no", "run", ["queue_id", "status", "no"])
    op.create_index("ix_run_repository_id_branch", "run", ["repository_id", "branch"])
    op.create_table(
        "run_entry",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("pr", BIG, nullable=False),
        sa.Column("entry", sa.String(), nullable=False),
        sa.Column("head", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "role", "position", name="pk_run_entry"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_run_entry_run_id"),
    )
    op.create_index("ix_run_entry_entry", "run_entry", ["entry"])
    op.create_table(
        "run_check",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("source_id", sa.String(), nullable=True),
        sa.Column("group", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("raw", sa.String(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("completed_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("run_id", "position", name="pk_run_check"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_run_check_run_id"),
    )
    op.create_table(
        "green_tree",
        sa.Column("queue_id", BIG, nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("tree", sa.String(), nullable=False),
        sa.Column("required", sa.String(), nullable=False),
        sa.Column("run", sa.String(), nullable=False),
        sa.Column("sha", sa.String(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("queue_id", "key", name="pk_green_tree"),
        sa.ForeignKeyConstraint(["queue_id"], ["merge_queue.id"], name="fk_green_tree_queue_id"),
    )
    op.create_index("ix_green_tree_queue_id_at", "green_tree", ["queue_id", "at"])
    op.create_table(
        "landing",
        sa.Column("id", BIG, nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("queue_id", BIG, nullable=False),
        sa.Column("run", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("pr", BIG, nullable=False),
        sa.Column("entry", sa.String(), nullable=False),
        sa.Column("head", sa.String(), nullable=False),
        sa.Column("mode", sa.String(), nullable=False),
        sa.Column("expected_parent", sa.String(), nullable=False),
        sa.Column("expected_tree", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("permit_until", TIME, nullable=True),
        sa.Column("landed_sha", sa.String(), nullable=True),
        sa.Column("landed_tree", sa.String(), nullable=True),
        sa.Column("evidence", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_landing"),
    )
    _partial_index(
        "ix_landing_open_permit", "landing", ["queue_id"], "state IN ('permitted', 'unknown')"
    )
    op.create_index("ix_landing_run", "landing", ["run"])
    _partial_index(
        "ux_landing_landed",
        "landing",
        ["repository_id", "pr", "head"],
        "state = 'landed'",
        unique=True,
    )
    op.create_table(
        "pull_request",
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("number", BIG, nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("head", sa.String(), nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "number", name="pk_pull_request"),
    )
    op.create_index("ix_pull_request_repository_id_head", "pull_request", ["repository_id", "head"])
    op.create_table(
        "impacted_targets",
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("number", BIG, nullable=False),
        sa.Column("head", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("targets", sa.Text(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "number", "head", name="pk_impacted_targets"),
    )
    op.create_index("ix_impacted_targets_at", "impacted_targets", ["at"])
    op.create_index("ix_impacted_targets_targets", "impacted_targets", ["targets"])
    op.create_table(
        "target_set",
        sa.Column("word", sa.String(), nullable=False),
        sa.Column("names", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("word", name="pk_target_set"),
    )
    op.create_table(
        "notice",
        sa.Column("queue_id", BIG, nullable=False),
        sa.Column("pr", BIG, nullable=False),
        sa.Column("surface", sa.String(), nullable=False),
        sa.Column("entry", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("provider_id", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("queue_id", "pr", "surface", "entry", name="pk_notice"),
    )
    op.create_table(
        "figure",
        sa.Column("queue_id", BIG, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("labels", sa.String(), nullable=False),
        sa.Column("cell", sa.Integer(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("count", BIG, nullable=False),
        sa.Column("ms", BIG, nullable=False),
        sa.PrimaryKeyConstraint("queue_id", "kind", "labels", "cell", name="pk_figure"),
    )
    op.create_table(
        "recent_fact",
        sa.Column("id", BIG, nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("queue_id", BIG, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("labels", sa.String(), nullable=False),
        sa.Column("cell", sa.Integer(), nullable=False),
        sa.Column("ms", BIG, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_recent_fact"),
    )
    op.create_index("ix_recent_fact_queue_id_at", "recent_fact", ["queue_id", "at"])
    op.create_table(
        "fork_authorization",
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("number", BIG, nullable=False),
        sa.Column("head", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "number", "head", name="pk_fork_authorization"),
    )


def _create_tables_of_evidence() -> None:
    op.create_table(
        "upload",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("code_id", sa.String(), nullable=False),
        sa.Column("sha", sa.String(), nullable=False),
        sa.Column("tree_sha", sa.String(), nullable=True),
        sa.Column("branch", sa.String(), nullable=True),
        sa.Column("pr_number", BIG, nullable=True),
        sa.Column("prs", sa.Text(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=True),
        sa.Column("run_attempt", sa.Integer(), nullable=False),
        sa.Column("run_url", sa.Text(), nullable=True),
        sa.Column("job", sa.String(), nullable=False),
        sa.Column("variant", sa.String(), nullable=False),
        sa.Column("machine", sa.String(), nullable=True),
        sa.Column("ran_at", TIME, nullable=False),
        sa.Column("received_at", TIME, nullable=False),
        sa.Column("is_eligible", sa.Boolean(), nullable=False),
        sa.Column("is_mass", sa.Boolean(), nullable=False),
        sa.Column("is_noted", sa.Boolean(), nullable=False),
        sa.Column("passed", sa.String(), nullable=True),
        sa.Column("skipped", sa.String(), nullable=True),
        sa.Column("failed", sa.LargeBinary(), nullable=False),
        sa.Column("command_exit_code", sa.Integer(), nullable=False),
        sa.Column("counts", sa.Text(), nullable=False),
        sa.Column("files", sa.Text(), nullable=False),
        sa.Column("warnings", sa.Text(), nullable=False),
        sa.Column("refusal", sa.String(), nullable=True),
        sa.Column("is_complete", sa.Boolean(), nullable=False),
        sa.Column("is_partial", sa.Boolean(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_upload"),
        sa.UniqueConstraint("repository_id", "digest", name="uq_upload_repository_id_digest"),
    )
    _partial_index(
        "ix_upload_eligible",
        "upload",
        ["repository_id", "ran_at", "passed", "skipped"],
        "is_eligible IS true",
    )
    _partial_index("ix_upload_open_notes", "upload", ["id"], "is_noted IS false")
    op.create_index("ix_upload_ran_at", "upload", ["ran_at"])
    op.create_index(
        "ix_upload_repository_id_kind_job", "upload", ["repository_id", "kind", "job", "ran_at"]
    )
    op.create_index(
        "ix_upload_repository_id_received_at", "upload", ["repository_id", "received_at"]
    )
    op.create_index(
        "ix_upload_repository_id_run_id", "upload", ["repository_id", "run_id", "run_attempt"]
    )
    op.create_index("ix_upload_repository_id_sha", "upload", ["repository_id", "sha"])
    op.create_table(
        "artifact",
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("upload", sa.String(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "id", name="pk_artifact"),
    )
    op.create_index("ix_artifact_at", "artifact", ["at"])
    op.create_table(
        "outcome_set",
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("bits", sa.LargeBinary(), nullable=False),
        sa.Column("used_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "hash", name="pk_outcome_set"),
    )
    op.create_index("ix_outcome_set_used_at", "outcome_set", ["used_at"])
    op.create_table(
        "attempt",
        sa.Column("upload", sa.String(), nullable=False),
        sa.Column("no", sa.Integer(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("ran_at", TIME, nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("failure", sa.String(), nullable=True),
        sa.Column("headline", sa.Text(), nullable=True),
        sa.Column("stack", sa.Text(), nullable=True),
        sa.Column("duration_ms", sa.Integer(), nullable=True),
        sa.Column("cost_ms", BIG, nullable=False),
        sa.Column("is_quarantined", sa.Boolean(), nullable=False),
        sa.Column("is_eligible", sa.Boolean(), nullable=False),
        sa.Column("is_comparable", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("upload", "no", "n", name="pk_attempt"),
    )
    op.create_index(
        "ix_attempt_by_test",
        "attempt",
        ["repository_id", "no", "ran_at", "outcome", "failure", "is_eligible"],
    )
    op.create_index("ix_attempt_ran_at", "attempt", ["ran_at"])
    op.create_table(
        "test_day",
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("is_counted", sa.Boolean(), nullable=False),
        sa.Column("changed_at", TIME, nullable=False),
        sa.Column("failed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "day", name="pk_test_day"),
    )
    op.create_index("ix_test_day_day", "test_day", ["day"])
    _partial_index("ix_test_day_open", "test_day", ["day", "repository_id"], "is_counted IS false")
    op.create_table(
        "daily",
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("no", sa.Integer(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("results", sa.Integer(), nullable=False),
        sa.Column("passing_results", sa.Integer(), nullable=False),
        sa.Column("passed", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("skipped", sa.Integer(), nullable=False),
        sa.Column("quarantined", sa.Integer(), nullable=False),
        sa.Column("last_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "day", "no", name="pk_daily"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "noise",
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("totals", sa.Text(), nullable=False),
        sa.Column("eps_a", sa.Float(), nullable=False),
        sa.Column("eps_b", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "day", name="pk_noise"),
    )
    op.create_index("ix_noise_day", "noise", ["day"])
    op.create_table(
        "failure_group",
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("headline", sa.Text(), nullable=False),
        sa.Column("sample", sa.Text(), nullable=False),
        sa.Column("last_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "key", name="pk_failure_group"),
    )
    op.create_index("ix_failure_group_last_at", "failure_group", ["last_at"])
    op.create_table(
        "failure_daily",
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("no", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("last_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "day", "no", "key", name="pk_failure_daily"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "pr_impact",
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("no", sa.Integer(), nullable=False),
        sa.Column("pr", BIG, nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("last_at", TIME, nullable=False),
        sa.Column("is_counted", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "no", "pr", name="pk_pr_impact"),
    )
    op.create_index("ix_pr_impact_last_at", "pr_impact", ["last_at"])
    _partial_index("ix_pr_impact_open_last_at", "pr_impact", ["last_at"], "is_counted IS true")


def _create_tables_of_tests() -> None:
    op.create_table(
        "test_repository",
        sa.Column("repository_id", BIG, nullable=False, autoincrement=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("names", sa.Text(), nullable=False),
        sa.Column("last_no", sa.Integer(), nullable=False),
        sa.Column("revision", BIG, nullable=False),
        sa.Column("removal", BIG, nullable=False),
        sa.Column("clock", TIME, nullable=True),
        sa.Column("is_behind", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("repository_id", name="pk_test_repository"),
    )
    op.create_table(
        "test_case",
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("no", sa.Integer(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("named_under", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("classname", sa.String(), nullable=False),
        sa.Column("parent", sa.String(), nullable=False),
        sa.Column("file", sa.String(), nullable=False),
        sa.Column("line", sa.Integer(), nullable=True),
        sa.Column("variant", sa.String(), nullable=False),
        sa.Column("owners", sa.Text(), nullable=False),
        sa.Column("is_known", sa.Boolean(), nullable=False),
        sa.Column("first_run_at", TIME, nullable=False),
        sa.Column("last_failed_at", TIME, nullable=True),
        sa.Column("ever_passed", sa.Boolean(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("status_since", TIME, nullable=False),
        sa.Column("impact_rank", sa.Integer(), nullable=False),
        sa.Column("cost_rank", BIG, nullable=False),
        sa.Column("costs_since", TIME, nullable=True),
        sa.PrimaryKeyConstraint("repository_id", "no", name="pk_test_case"),
        sa.UniqueConstraint("repository_id", "id", name="uq_test_case_repository_id_id"),
    )
    _partial_index(
        "ix_test_case_by_all_cost",
        "test_case",
        ["repository_id", "cost_rank", "no"],
        "is_known IS true",
    )
    _partial_index(
        "ix_test_case_by_cost",
        "test_case",
        ["repository_id", "status", "cost_rank", "no"],
        "is_known IS true",
    )
    op.create_index("ix_test_case_by_harm", "test_case", ["repository_id", "impact_rank", "no"])
    op.create_index(
        "ix_test_case_by_impact", "test_case", ["repository_id", "status", "impact_rank", "no"]
    )
    op.create_index(
        "ix_test_case_by_time", "test_case", ["repository_id", "status", "status_since", "no"]
    )
    _partial_index(
        "ix_test_case_costs_since", "test_case", ["costs_since"], "costs_since IS NOT NULL"
    )
    _partial_index(
        "ix_test_case_open_strangers", "test_case", ["first_run_at"], "is_known IS false"
    )
    op.create_table(
        "alias",
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("no", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "id", name="pk_alias"),
    )
    op.create_index("ix_alias_repository_id_no", "alias", ["repository_id", "no"])
    op.create_table(
        "test_state",
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("no", sa.Integer(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("since", TIME, nullable=False),
        sa.Column("is_stale", sa.Boolean(), nullable=False),
        sa.Column("numbers", sa.Text(), nullable=False),
        sa.Column("settled", sa.Text(), nullable=True),
        sa.Column("flag", sa.String(), nullable=False),
        sa.Column("flag_reason", sa.String(), nullable=False),
        sa.Column("flagged_by", sa.String(), nullable=False),
        sa.Column("flagged_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("repository_id", "no", name="pk_test_state"),
    )
    op.create_table(
        "test_state_event",
        sa.Column("id", BIG, nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("no", sa.Integer(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("written_at", TIME, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("previous", sa.String(), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("actor_kind", sa.String(), nullable=False),
        sa.Column("actor_login", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_test_state_event"),
    )
    op.create_index(
        "ix_test_state_event_repository_id_no_id", "test_state_event", ["repository_id", "no", "id"]
    )
    op.create_index(
        "ix_test_state_event_repository_id_written_at",
        "test_state_event",
        ["repository_id", "written_at"],
    )
    op.create_table(
        "test_override",
        sa.Column("id", BIG, nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("no", sa.Integer(), nullable=False),
        sa.Column("override", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=True),
        sa.Column("actor_kind", sa.String(), nullable=False),
        sa.Column("actor_login", sa.String(), nullable=False),
        sa.Column("is_open", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_test_override"),
    )
    _partial_index(
        "ix_test_override_open_by_time",
        "test_override",
        ["repository_id", "override", "at", "no"],
        "is_open IS true",
    )
    _partial_index(
        "ix_test_override_open_expires_at", "test_override", ["expires_at"], "is_open IS true"
    )
    op.create_index(
        "ix_test_override_repository_id_no_id", "test_override", ["repository_id", "no", "id"]
    )
    _partial_index(
        "ux_test_override_open",
        "test_override",
        ["repository_id", "no"],
        "is_open IS true",
        unique=True,
    )
    op.create_table(
        "ticket",
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("no", sa.Integer(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("html_url", sa.Text(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "no", name="pk_ticket"),
    )
    op.create_table(
        "ticket_issue",
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("no", sa.Integer(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("asked_at", TIME, nullable=False),
        sa.Column("told", sa.String(), nullable=False),
        sa.Column("number", BIG, nullable=True),
        sa.Column("html_url", sa.Text(), nullable=True),
        sa.Column("reopens", sa.Boolean(), nullable=False),
        sa.Column("look_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("repository_id", "no", name="pk_ticket_issue"),
    )
    _partial_index(
        "ix_ticket_issue_look_at",
        "ticket_issue",
        ["repository_id", "look_at"],
        "look_at IS NOT NULL",
    )
    op.create_index(
        "ix_ticket_issue_repository_id_asked_at", "ticket_issue", ["repository_id", "asked_at"]
    )
    op.create_table(
        "test_settings",
        sa.Column("repository_id", BIG, nullable=False, autoincrement=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("quarantine_enabled", sa.Boolean(), nullable=False),
        sa.Column("auto_quarantine_enabled", sa.Boolean(), nullable=False),
        sa.Column("auto_quarantine_statuses", sa.Text(), nullable=False),
        sa.Column("sensitivity", sa.String(), nullable=False),
        sa.Column("stable_branches", sa.Text(), nullable=True),
        sa.Column("ticket_url_template", sa.String(), nullable=True),
        sa.Column("collect_artifacts", sa.Boolean(), nullable=False),
        sa.Column("artifact_patterns", sa.Text(), nullable=False),
        sa.Column("name_masks", sa.Text(), nullable=False),
        sa.Column("ticket_issues", sa.Boolean(), nullable=False),
        sa.Column("quarantine_since", TIME, nullable=True),
        sa.Column("auto_since", TIME, nullable=True),
        sa.Column("quarantine_forgives", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("repository_id", name="pk_test_settings"),
    )
    _partial_index(
        "ix_test_settings_open_ticket_issues",
        "test_settings",
        ["repository_id", "org_id"],
        "ticket_issues IS true",
    )
    op.create_table(
        "code_owners",
        sa.Column("repository_id", BIG, nullable=False, autoincrement=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("blob", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("read_at", TIME, nullable=True),
        sa.Column("owned_no", sa.Integer(), nullable=False),
        sa.Column("stale_at", TIME, nullable=False),
        sa.Column("due_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("repository_id", name="pk_code_owners"),
    )
    op.create_index("ix_code_owners_due_at", "code_owners", ["due_at"])


def _access_triggers(*, is_sqlite: bool) -> list[str]:
    made = [] if is_sqlite else [POSTGRESQL_COUNTER]
    for number, (table, change) in enumerate(ACCESS):
        head = f"CREATE TRIGGER access_changes_{number} AFTER {change} ON {table}"
        each = "FOR EACH STATEMENT EXECUTE FUNCTION count_access_change()"
        made.append(f"{head} BEGIN {COUNT_ACCESS}; END" if is_sqlite else f"{head} {each}")
    return made


def _partial_index(
    name: str, table: str, columns: list[str], where: str, *, unique: bool = False
) -> None:
    if op.get_bind().dialect.name == "sqlite":
        where = where.replace("IS true", "IS 1").replace("IS false", "IS 0")
    rows = sa.text(where)
    op.create_index(name, table, columns, unique=unique, sqlite_where=rows, postgresql_where=rows)
