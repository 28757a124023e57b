"""Everything there is at the beginning.

Columns stand grouped by type.
"""

from collections.abc import Mapping
from typing import TypeVar

import sqlalchemy as sa
from alembic import op

T = TypeVar("T")

revision = "0001"
down_revision = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")

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


def access_triggers(*, is_sqlite: bool) -> list[str]:
    made = [] if is_sqlite else [POSTGRESQL_COUNTER]
    for number, (table, change) in enumerate(ACCESS):
        head = f"CREATE TRIGGER access_changes_{number} AFTER {change} ON {table}"
        each = "FOR EACH STATEMENT EXECUTE FUNCTION count_access_change()"
        made.append(f"{head} BEGIN {COUNT_ACCESS}; END" if is_sqlite else f"{head} {each}")
    return made


def columns(
    kind: sa.types.TypeEngine[T],
    names: str,
    *,
    none: bool = False,
) -> list[sa.Column[T]]:
    return [sa.Column(name, kind, nullable=none) for name in names.split()]


def index(table: sa.Table, name: str, names: str, *, where: str = "", unique: bool = False) -> None:
    sa.Index(
        name,
        *(table.c[each] for each in names.split()),
        unique=unique,
        sqlite_where=sa.text(where.format(true=1, false=0)) if where else None,
        postgresql_where=sa.text(where.format(true="true", false="false")) if where else None,
    )


def upgrade() -> None:
    schema = sa.MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    sa.Table(
        "audit",
        schema,
        sa.Column("id", ID, primary_key=True),
        *columns(INSTANT, "at"),
        *columns(sa.Text(), "data"),
        *columns(ID, "org_id", none=True),
        *columns(
            sa.String(),
            "actor_kind actor_id actor_login channel action subject decision reason request_id",
        ),
    )
    sa.Table(
        "deployment",
        schema,
        sa.Column("id", ID, primary_key=True, autoincrement=False),
        *columns(sa.String(), "uuid"),
        sa.Column("access_version", sa.Integer(), nullable=False, server_default="0"),
    )
    sa.Table(
        "fork_authorization",
        schema,
        sa.Column("repository_id", ID, primary_key=True, autoincrement=False),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("head", sa.String(), primary_key=True),
        *columns(INSTANT, "at"),
        *columns(sa.Text(), "actor"),
        *columns(ID, "org_id"),
    )
    sa.Table(
        "impacted_targets",
        schema,
        sa.Column("repository_id", ID, primary_key=True, autoincrement=False),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("head", sa.String(), primary_key=True),
        *columns(INSTANT, "at"),
        *columns(sa.Text(), "targets", none=True),
        *columns(ID, "org_id"),
    )
    sa.Table(
        "inbox",
        schema,
        sa.Column("id", ID, primary_key=True),
        *columns(INSTANT, "received_at next_at"),
        *columns(INSTANT, "claimed_until", none=True),
        *columns(sa.Boolean(), "is_open"),
        *columns(sa.Integer(), "attempts"),
        *columns(sa.String(), "host delivery_id event lane state"),
        *columns(sa.String(), "action repository_id note", none=True),
        sa.UniqueConstraint("host", "delivery_id"),
    )
    sa.Table(
        "journal",
        schema,
        sa.Column("id", ID, primary_key=True),
        *columns(INSTANT, "at"),
        *columns(sa.Text(), "actor data"),
        *columns(ID, "org_id queue_id"),
        *columns(sa.Integer(), "number", none=True),
        *columns(sa.String(), "event"),
        *columns(sa.String(), "entry run reason", none=True),
    )
    sa.Table(
        "landing",
        schema,
        sa.Column("id", ID, primary_key=True),
        *columns(INSTANT, "permit_until", none=True),
        *columns(ID, "org_id repository_id queue_id"),
        *columns(sa.Integer(), "number position pr"),
        *columns(sa.String(), "run entry head mode expected_parent expected_tree state"),
        *columns(sa.String(), "landed_sha landed_tree evidence", none=True),
    )
    sa.Table(
        "notice",
        schema,
        sa.Column("queue_id", ID, primary_key=True, autoincrement=False),
        sa.Column("pr", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("surface", sa.String(), primary_key=True),
        sa.Column("entry", sa.String(), primary_key=True),
        *columns(ID, "org_id"),
        *columns(sa.String(), "provider_id digest"),
    )
    sa.Table(
        "organization",
        schema,
        sa.Column("id", ID, primary_key=True),
        *columns(sa.String(), "host slug"),
        *columns(sa.String(), "provider_id slug_key", none=True),
        sa.UniqueConstraint("host", "provider_id"),
        sa.UniqueConstraint("host", "slug_key"),
    )
    sa.Table(
        "outbox",
        schema,
        sa.Column("id", ID, primary_key=True),
        *columns(INSTANT, "next_at"),
        *columns(INSTANT, "sent_at", none=True),
        *columns(sa.Text(), "effect"),
        *columns(sa.Boolean(), "is_open"),
        *columns(ID, "org_id repository_id epoch"),
        *columns(ID, "queue_id", none=True),
        *columns(sa.Integer(), "attempts"),
        *columns(sa.String(), "lane idem_key kind effect_type state"),
        *columns(sa.String(), "supersede_key run note", none=True),
        sa.UniqueConstraint("idem_key"),
    )
    sa.Table(
        "pull_request",
        schema,
        sa.Column("repository_id", ID, primary_key=True, autoincrement=False),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        *columns(INSTANT, "seen_at"),
        *columns(ID, "org_id"),
        *columns(sa.String(), "head"),
    )
    sa.Table(
        "api_token",
        schema,
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("org_id", ID, sa.ForeignKey("organization.id"), nullable=False),
        *columns(INSTANT, "created_at"),
        *columns(INSTANT, "expires_at last_used_at revoked_at", none=True),
        *columns(sa.Text(), "repositories", none=True),
        *columns(sa.LargeBinary(), "digest"),
        *columns(sa.String(), "name role"),
    )
    sa.Table(
        "inbox_body",
        schema,
        sa.Column("inbox_id", ID, sa.ForeignKey("inbox.id"), primary_key=True, autoincrement=False),
        *columns(sa.LargeBinary(), "body"),
    )
    sa.Table(
        "repository",
        schema,
        sa.Column("id", ID, primary_key=True),
        sa.Column("org_id", ID, sa.ForeignKey("organization.id"), nullable=False),
        *columns(sa.Text(), "merge_methods"),
        *columns(sa.Boolean(), "archived available"),
        *columns(sa.String(), "host provider_id owner name default_branch url"),
        *columns(sa.String(), "owner_key name_key", none=True),
        sa.UniqueConstraint("host", "owner_key", "name_key"),
        sa.UniqueConstraint("host", "provider_id"),
    )
    sa.Table(
        "merge_queue",
        schema,
        sa.Column("id", ID, primary_key=True),
        sa.Column("repository_id", ID, sa.ForeignKey("repository.id"), nullable=False),
        *columns(
            INSTANT, "wake_at deleted_at state_since advance_refused_at land_after", none=True
        ),
        *columns(sa.Text(), "config holds landed breaker"),
        *columns(sa.Text(), "tip state_by landing required kept_move", none=True),
        *columns(sa.Boolean(), "sends_results deleted"),
        *columns(ID, "org_id epoch version"),
        *columns(sa.Integer(), "next_seq next_run next_entry next_landing next_hold"),
        *columns(sa.String(), "uid branch state"),
        *columns(sa.String(), "state_reason target_mode", none=True),
    )
    sa.Table(
        "repository_alias",
        schema,
        sa.Column("host", sa.String(), primary_key=True),
        sa.Column("owner_key", sa.String(), primary_key=True),
        sa.Column("name_key", sa.String(), primary_key=True),
        sa.Column("repository_id", ID, sa.ForeignKey("repository.id"), nullable=False),
        *columns(ID, "org_id"),
    )
    sa.Table(
        "entry",
        schema,
        sa.Column("no", ID, primary_key=True),
        sa.Column("queue_id", ID, sa.ForeignKey("merge_queue.id"), nullable=False),
        *columns(INSTANT, "submitted_at state_since"),
        *columns(INSTANT, "unready_since build_after", none=True),
        *columns(
            sa.Text(), "facts submitted_by detail held_by unmet barred cancel_detail restarts"
        ),
        *columns(sa.Text(), "canceller", none=True),
        *columns(sa.Boolean(), "live no_batch taken_apart fresh"),
        *columns(ID, "org_id"),
        *columns(ID, "rank", none=True),
        *columns(sa.Integer(), "pr priority retries build_tries losses"),
        *columns(sa.Integer(), "seq", none=True),
        *columns(sa.Float(), "p_fail"),
        *columns(sa.String(), "id head state reason"),
        *columns(sa.String(), "run verified_by bisection cancel landed_sha", none=True),
        sa.UniqueConstraint("id"),
    )
    sa.Table(
        "green_tree",
        schema,
        sa.Column(
            "queue_id", ID, sa.ForeignKey("merge_queue.id"), primary_key=True, autoincrement=False
        ),
        sa.Column("key", sa.String(), primary_key=True),
        *columns(INSTANT, "at"),
        *columns(ID, "org_id"),
        *columns(sa.String(), "tree required run sha"),
    )
    sa.Table(
        "run",
        schema,
        sa.Column("no", ID, primary_key=True),
        sa.Column("queue_id", ID, sa.ForeignKey("merge_queue.id"), nullable=False),
        *columns(INSTANT, "created_at"),
        *columns(
            INSTANT,
            "built_at start_clock last_report_at failed_at finished_at asked_evidence "
            "rerun_at deadline",
            none=True,
        ),
        *columns(sa.Text(), "base_tip required config steps excused rerun_ids"),
        *columns(sa.Text(), "evidence", none=True),
        *columns(sa.Boolean(), "live restored checks_complete fresh published contained"),
        *columns(ID, "org_id repository_id"),
        *columns(sa.Integer(), "number attempt"),
        *columns(sa.Integer(), "vehicle_number", none=True),
        *columns(sa.String(), "id kind status phase"),
        *columns(
            sa.String(), "vehicle_url required_source sha branch cause reused_from", none=True
        ),
        sa.UniqueConstraint("id"),
    )
    sa.Table(
        "run_check",
        schema,
        sa.Column("run_id", sa.String(), sa.ForeignKey("run.id"), primary_key=True),
        sa.Column("position", sa.Integer(), primary_key=True, autoincrement=False),
        *columns(INSTANT, "started_at completed_at", none=True),
        *columns(ID, "org_id"),
        *columns(sa.String(), "kind name group id outcome raw url"),
        *columns(sa.String(), "source_id", none=True),
    )
    sa.Table(
        "run_entry",
        schema,
        sa.Column("run_id", sa.String(), sa.ForeignKey("run.id"), primary_key=True),
        sa.Column("role", sa.String(), primary_key=True),
        sa.Column("position", sa.Integer(), primary_key=True, autoincrement=False),
        *columns(ID, "org_id"),
        *columns(sa.Integer(), "pr"),
        *columns(sa.String(), "entry head"),
    )
    add_indexes(schema.tables)
    connection = op.get_bind()
    schema.create_all(connection)
    is_sqlite = connection.dialect.name == "sqlite"
    kept = SQLITE_TRIGGERS if is_sqlite else POSTGRESQL_TRIGGERS
    for trigger in (*kept, *access_triggers(is_sqlite=is_sqlite)):
        connection.execute(sa.text(trigger))


def add_indexes(tables: Mapping[str, sa.Table]) -> None:
    index(tables["audit"], "ix_audit_org_id_id", "org_id id")
    index(tables["inbox"], "ix_inbox_lane", "lane id", where="is_open IS {true}")
    index(tables["inbox"], "ix_inbox_poisoned", "id", where="state = 'poisoned'")
    index(tables["inbox"], "ix_inbox_received_at", "received_at")
    index(tables["journal"], "ix_journal_at", "at")
    index(tables["journal"], "ix_journal_queue_id_number_id", "queue_id number id")
    index(tables["journal"], "ix_journal_run_id", "run id")
    index(
        tables["landing"],
        "ix_landing_open_permit",
        "queue_id",
        where="state IN ('permitted', 'unknown')",
    )
    index(tables["landing"], "ix_landing_run", "run")
    index(
        tables["landing"],
        "ux_landing_landed",
        "repository_id pr head",
        unique=True,
        where="state = 'landed'",
    )
    index(tables["outbox"], "ix_outbox_next_at", "next_at")
    index(tables["outbox"], "ix_outbox_open", "queue_id lane id", where="is_open IS {true}")
    index(tables["outbox"], "ix_outbox_open_next_at", "lane next_at", where="is_open IS {true}")
    index(tables["outbox"], "ix_outbox_open_run", "run id", where="is_open IS {true}")
    index(
        tables["outbox"],
        "ix_outbox_open_supersede_key",
        "supersede_key id",
        where="is_open IS {true}",
    )
    index(tables["api_token"], "ix_api_token_org_id", "org_id")
    index(tables["repository"], "ix_repository_org_id", "org_id")
    index(tables["merge_queue"], "ix_merge_queue_repository_id", "repository_id")
    index(tables["merge_queue"], "ix_merge_queue_wake_at", "wake_at", where="wake_at IS NOT NULL")
    index(
        tables["merge_queue"],
        "ux_merge_queue_branch",
        "repository_id branch",
        unique=True,
        where="deleted IS {false}",
    )
    index(tables["repository_alias"], "ix_repository_alias_repository_id", "repository_id")
    index(tables["entry"], "ix_entry_queue_id_pr_no", "queue_id pr no")
    index(tables["entry"], "ux_entry_live", "queue_id pr", unique=True, where="live IS {true}")
    index(tables["green_tree"], "ix_green_tree_queue_id_at", "queue_id at")
    index(tables["run"], "ix_run_live", "queue_id", where="live IS {true}")
    index(tables["run"], "ix_run_live_sha", "repository_id sha", where="live IS {true}")
    index(tables["run"], "ix_run_queue_id_status_no", "queue_id status no")
    index(tables["run"], "ix_run_repository_id_branch", "repository_id branch")
    index(tables["run_entry"], "ix_run_entry_entry", "entry")
