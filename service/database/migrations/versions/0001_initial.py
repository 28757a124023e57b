"""The whole schema: tables, indexes and triggers.

The models say what each table holds; a test compares both.
"""

from collections.abc import Mapping

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

Kind = (
    sa.BigInteger
    | sa.DateTime
    | sa.Integer
    | sa.Boolean
    | sa.Float[float]
    | sa.String
    | sa.LargeBinary
)

KINDS: Mapping[str, Kind] = {
    "id": sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
    "time": sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite"),
    "int": sa.Integer(),
    "bool": sa.Boolean(),
    "float": sa.Float(),
    "string": sa.String(),
    "text": sa.Text(),
    "bytes": sa.LargeBinary(),
}

TABLES = {
    "alias": "repository_id:id! id:string! org_id:id no:int",
    "artifact": "repository_id:id! id:string! org_id:id upload:string at:time",
    "attempt": """
        upload:string! no:int! n:int! org_id:id repository_id:id ran_at:time outcome:string
        failure:string? headline:text? stack:text? duration_ms:int? cost_ms:id
        is_quarantined:bool is_eligible:bool is_comparable:bool
    """,
    "audit": """
        id:id! at:time org_id:id? actor_kind:string actor_id:string actor_login:string
        channel:string action:string subject:string decision:string reason:string
        request_id:string data:text
    """,
    "code_owners": """
        repository_id:id! org_id:id path:string blob:string text:text read_at:time?
        owned_no:int stale_at:time due_at:time
    """,
    "daily": """
        repository_id:id! day:int! no:int! org_id:id results:int passing_results:int
        passed:int failed:int skipped:int quarantined:int last_at:time
    """,
    "deployment": "id:id! uuid:string access_version:int",
    "failure_daily": """
        repository_id:id! day:int! no:int! key:string! org_id:id failed:int last_at:time
    """,
    "failure_group": """
        repository_id:id! key:string! org_id:id headline:text sample:text last_at:time
    """,
    "figure": "queue_id:id! kind:string! labels:string! cell:int! org_id:id count:id ms:id",
    "fork_authorization": "repository_id:id! number:id! head:string! org_id:id actor:text at:time",
    "heard_command": """
        repository_id:id! source:string! source_id:string! org_id:id topic:string
        said_at:time heard_at:time
    """,
    "idempotency": """
        token_id:string! path:string! key:string! org_id:id digest:bytes claim:string
        claimed_until:time at:time status:int? content_type:string? body:bytes?
    """,
    "impacted_targets": "repository_id:id! number:id! head:string! org_id:id targets:text at:time",
    "inbox": """
        id:id! host:string delivery_id:string event:string action:string?
        repository_id:string? lane:string state:string is_open:bool attempts:int
        received_at:time next_at:time claimed_until:time? claimed_by:string? note:string?
    """,
    "instance": "id:string! version:string fingerprint:string started_at:time heartbeat:time",
    "journal": """
        id:id! org_id:id queue_id:id at:time actor:text event:string number:id?
        entry:string? run:string? reason:string? data:text
    """,
    "landing": """
        id:id! org_id:id repository_id:id queue_id:id run:string number:int position:int
        pr:id entry:string head:string mode:string expected_parent:string
        expected_tree:string state:string permit_until:time? landed_sha:string?
        landed_tree:string? evidence:string?
    """,
    "noise": "repository_id:id! day:int! org_id:id totals:text eps_a:float eps_b:float",
    "notice": """
        queue_id:id! pr:id! surface:string! entry:string! org_id:id provider_id:string
        digest:string
    """,
    "notification": "id:string! org_id:id event:string at:time body:text",
    "notification_attempt": """
        id:id! org_id:id endpoint:string message:string n:int tries:int event:string
        made_at:time state:string is_open:bool is_newest:bool next_at:time
        claimed_until:time? claimed_by:string? at:time? status_code:int? duration_ms:int?
        error:string?
    """,
    "organization": "id:id! host:string provider_id:string? slug:string slug_key:string?",
    "outbox": """
        id:id! org_id:id repository_id:id queue_id:id? epoch:id lane:string idem_key:string
        supersede_key:string? run:string? kind:string effect_type:string effect:text
        state:string is_open:bool attempts:int next_at:time sent_at:time? claimed_by:string?
        note:string?
    """,
    "outcome_set": "repository_id:id! hash:string! org_id:id bits:bytes used_at:time",
    "pr_impact": "repository_id:id! no:int! pr:id! org_id:id last_at:time is_counted:bool",
    "pull_request": "repository_id:id! number:id! org_id:id head:string seen_at:time",
    "recent_fact": "id:id! org_id:id queue_id:id at:time kind:string labels:string cell:int ms:id",
    "sweep_cursor": "name:string! at:time",
    "target_set": "word:string! names:text",
    "test_case": """
        repository_id:id! no:int! org_id:id id:string named_under:int name:string
        classname:string parent:string file:string line:int? variant:string owners:text
        is_known:bool first_run_at:time last_failed_at:time? ever_passed:bool status:string
        status_since:time impact_rank:int cost_rank:id costs_since:time?
    """,
    "test_day": """
        repository_id:id! day:int! org_id:id version:int is_counted:bool changed_at:time
        failed:bytes
    """,
    "test_override": """
        id:id! org_id:id repository_id:id no:int override:string reason:string at:time
        expires_at:time? actor_kind:string actor_login:string is_open:bool
    """,
    "test_repository": """
        repository_id:id! org_id:id names:text last_no:int revision:id removal:id
        clock:time? is_behind:bool
    """,
    "test_settings": """
        repository_id:id! org_id:id quarantine_enabled:bool auto_quarantine_enabled:bool
        auto_quarantine_statuses:text sensitivity:string stable_branches:text?
        ticket_url_template:string? collect_artifacts:bool artifact_patterns:text
        name_masks:text ticket_issues:bool quarantine_since:time? auto_since:time?
        quarantine_forgives:string
    """,
    "test_state": """
        repository_id:id! no:int! org_id:id value:string reason:string since:time
        is_stale:bool numbers:text settled:text? flag:string flag_reason:string
        flagged_by:string flagged_at:time?
    """,
    "test_state_event": """
        id:id! org_id:id repository_id:id no:int at:time written_at:time kind:string
        previous:string value:string reason:string actor_kind:string actor_login:string
    """,
    "ticket": "repository_id:id! no:int! org_id:id html_url:text at:time",
    "ticket_issue": """
        repository_id:id! no:int! org_id:id asked_at:time told:string number:id?
        html_url:text? reopens:bool look_at:time?
    """,
    "upload": """
        id:string! org_id:id repository_id:id digest:string kind:string code_id:string
        sha:string tree_sha:string? branch:string? pr_number:id? prs:text run_id:string?
        run_attempt:int run_url:text? job:string variant:string machine:string? ran_at:time
        received_at:time is_eligible:bool is_mass:bool is_noted:bool passed:string?
        skipped:string? failed:bytes command_exit_code:int counts:text files:text
        warnings:text refusal:string? is_complete:bool is_partial:bool account:text
        position:int?
    """,
    "api_token": """
        id:string! org_id:id name:string role:string digest:bytes repositories:text?
        created_at:time expires_at:time? last_used_at:time? revoked_at:time?
        granted_until:time?
    """,
    "web_session": """
        digest:bytes! host:string person_id:string login:string created_at:time seen_at:time
    """,
    "endpoint": """
        id:string! org_id:id url:string events:text repositories:text? description:string
        secret:bytes previous_secret:bytes? previous_until:time? state:string
        disabled_reason:string? created_at:time last_success_at:time? last_failure_at:time?
        failing_since:time? failed_messages:int
    """,
    "inbox_body": "inbox_id:id! body:bytes",
    "repository": """
        id:id! org_id:id host:string provider_id:string owner:string name:string
        owner_key:string? name_key:string? default_branch:string merge_methods:text
        archived:bool available:bool url:string
    """,
    "merge_queue": """
        id:id! org_id:id repository_id:id epoch:id wake_at:time? deleted_at:time? uid:string
        branch:string config:text own_config:text? chosen:text file:text? tip:text?
        state:string state_reason:string?
        state_since:time? state_by:text? test_branch_reason:string? target_mode:string?
        sends_results:bool rates:text bisections:text landing:text? holds:text landed:text
        breaker:text records:text required:text? kept_move:text? advance_refused_at:time?
        land_after:time? unexplained:text next_seq:int next_run:int next_bisection:int
        next_entry:int next_landing:int next_hold:int deleted:bool revision:id version:id
    """,
    "repository_alias": """
        host:string! owner_key:string! name_key:string! org_id:id repository_id:id
    """,
    "entry": """
        no:id! org_id:id queue_id:id live:bool id:string pr:id facts:text head:string
        submitted_by:text submitted_at:time priority:int no_batch:bool state:string
        state_since:time reason:string detail:text seq:int? rank:id? run:string?
        verified_by:string? bisection:string? held_by:text unmet:text barred:text
        unready_since:time? p_fail:float cancel:string? cancel_detail:text canceller:text?
        retries:int build_tries:int build_after:time? taken_apart:bool fresh:bool
        restarts:text losses:int landed_sha:string? targets:string? wide:string? batch:int?
        failed_batches:int kept:bool screened:bool stops:text refusals:int refusal:text?
        rested_on:string?
    """,
    "green_tree": """
        queue_id:id! key:string! org_id:id tree:string required:string run:string sha:string
        at:time
    """,
    "run": """
        no:id! org_id:id repository_id:id queue_id:id live:bool vehicle_number:id?
        vehicle_url:string? restored:bool id:string number:int kind:string base_tip:text
        status:string phase:string required:text required_source:string? config:text
        created_at:time steps:text sha:string? branch:string? attempt:int
        checks_complete:bool built_at:time? start_clock:time? last_report_at:time?
        failed_at:time? finished_at:time? cause:string? excused:text asked_evidence:time?
        evidence:text? rerun_at:time? rerun_ids:text revoked:text is_flaky:bool fresh:bool
        published:bool reused_from:string? deadline:time? contained:bool bisection:string?
        without:text witness_of:string?
    """,
    "run_check": """
        run_id:string! position:int! org_id:id kind:string name:string source_id:string?
        group:string id:string outcome:string raw:string url:string started_at:time?
        completed_at:time?
    """,
    "run_entry": """
        run_id:string! role:string! position:int! org_id:id pr:id entry:string head:string
    """,
}
"""Table → its columns, `name:kind`; `!` is part of the primary key, `?` may be NULL."""

COUNTED = (
    "audit",
    "entry",
    "inbox",
    "journal",
    "landing",
    "merge_queue",
    "notification_attempt",
    "organization",
    "outbox",
    "recent_fact",
    "repository",
    "run",
    "test_override",
    "test_state_event",
)
"""Tables whose ids the database counts up."""

BY_KEY = ("daily", "failure_daily")
"""Tables whose rows SQLite stores in the order of their key."""

DEFAULTS = {("deployment", "access_version"): "0", ("run", "revoked"): "[]"}

REFERENCES = {
    ("api_token", "org_id"): "organization.id",
    ("endpoint", "org_id"): "organization.id",
    ("inbox_body", "inbox_id"): "inbox.id",
    ("repository", "org_id"): "organization.id",
    ("merge_queue", "repository_id"): "repository.id",
    ("repository_alias", "repository_id"): "repository.id",
    ("entry", "queue_id"): "merge_queue.id",
    ("green_tree", "queue_id"): "merge_queue.id",
    ("run", "queue_id"): "merge_queue.id",
    ("run_check", "run_id"): "run.id",
    ("run_entry", "run_id"): "run.id",
}
"""Column → the column of another table that it refers to."""

UNIQUE = {
    "inbox": ("host delivery_id",),
    "organization": ("host provider_id", "host slug_key"),
    "outbox": ("idem_key",),
    "test_case": ("repository_id id",),
    "upload": ("repository_id digest",),
    "repository": ("host provider_id", "host owner_key name_key"),
    "entry": ("id",),
    "run": ("id",),
}
"""Table → columns that are unique together."""

INDEXES = {
    "ix_alias_repository_id_no": "alias repository_id no",
    "ix_artifact_at": "artifact at",
    "ix_attempt_by_test": "attempt repository_id no ran_at outcome failure is_eligible",
    "ix_attempt_ran_at": "attempt ran_at",
    "ix_audit_org_id_id": "audit org_id id",
    "ix_code_owners_due_at": "code_owners due_at",
    "ix_failure_group_last_at": "failure_group last_at",
    "ix_heard_command_heard_at": "heard_command heard_at",
    "ix_heard_command_topic": "heard_command repository_id topic said_at",
    "ix_idempotency_at": "idempotency at",
    "ix_impacted_targets_at": "impacted_targets at",
    "ix_impacted_targets_targets": "impacted_targets targets",
    "ix_inbox_received_at": "inbox received_at",
    "ix_journal_at": "journal at",
    "ix_journal_queue_id_id": "journal queue_id id",
    "ix_journal_queue_id_number_id": "journal queue_id number id",
    "ix_journal_run_id": "journal run id",
    "ix_landing_run": "landing run",
    "ix_noise_day": "noise day",
    "ix_notification_at": "notification at",
    "ix_notification_attempt_made_at": "notification_attempt made_at",
    "ix_notification_attempt_message": "notification_attempt message",
    "ux_notification_attempt_endpoint": "notification_attempt endpoint message n",
    "ix_outbox_next_at": "outbox next_at",
    "ix_outcome_set_used_at": "outcome_set used_at",
    "ix_pr_impact_last_at": "pr_impact last_at",
    "ix_pull_request_repository_id_head": "pull_request repository_id head",
    "ix_recent_fact_queue_id_at": "recent_fact queue_id at",
    "ix_test_case_by_harm": "test_case repository_id impact_rank no",
    "ix_test_case_by_impact": "test_case repository_id status impact_rank no",
    "ix_test_case_by_time": "test_case repository_id status status_since no",
    "ix_test_day_day": "test_day day",
    "ix_test_override_repository_id_no_id": "test_override repository_id no id",
    "ix_test_state_event_repository_id_no_id": "test_state_event repository_id no id",
    "ix_test_state_event_repository_id_written_at": "test_state_event repository_id written_at",
    "ix_ticket_issue_repository_id_asked_at": "ticket_issue repository_id asked_at",
    "ix_upload_ran_at": "upload ran_at",
    "ix_upload_repository_id_kind_job": "upload repository_id kind job ran_at",
    "ix_upload_repository_id_received_at": "upload repository_id received_at",
    "ix_upload_repository_id_run_id": "upload repository_id run_id run_attempt",
    "ix_upload_repository_id_sha": "upload repository_id sha",
    "ix_api_token_org_id": "api_token org_id",
    "ix_endpoint_org_id": "endpoint org_id",
    "ix_repository_org_id": "repository org_id",
    "ix_merge_queue_repository_id": "merge_queue repository_id",
    "ix_repository_alias_repository_id": "repository_alias repository_id",
    "ix_entry_queue_id_no": "entry queue_id no",
    "ix_entry_queue_id_pr_no": "entry queue_id pr no",
    "ix_green_tree_queue_id_at": "green_tree queue_id at",
    "ix_run_queue_id_status_no": "run queue_id status no",
    "ix_run_repository_id_branch": "run repository_id branch",
    "ix_run_entry_entry": "run_entry entry",
}
"""Index → its table and columns; unique if its name begins with ux."""

PARTIAL = {
    "ix_inbox_lane": ("inbox lane id", "is_open IS {true}"),
    "ix_inbox_poisoned": ("inbox id", "state = 'poisoned'"),
    "ix_journal_changes_of_queue": (
        "journal queue_id at id",
        "event = 'QueueStateChanged'",
    ),
    "ix_landing_open_permit": ("landing queue_id", "state IN ('permitted', 'unknown')"),
    "ux_landing_landed": ("landing repository_id pr head", "state = 'landed'"),
    "ix_notification_attempt_newest": (
        "notification_attempt endpoint made_at message",
        "is_newest IS {true}",
    ),
    "ix_notification_attempt_open": (
        "notification_attempt endpoint next_at id",
        "is_open IS {true}",
    ),
    "ix_notification_attempt_open_claimed": (
        "notification_attempt endpoint",
        "claimed_until IS NOT NULL",
    ),
    "ix_notification_attempt_open_next_at": ("notification_attempt next_at", "is_open IS {true}"),
    "ix_outbox_open": ("outbox queue_id lane id", "is_open IS {true}"),
    "ix_outbox_open_next_at": ("outbox lane next_at", "is_open IS {true}"),
    "ix_outbox_open_run": ("outbox run id", "is_open IS {true}"),
    "ix_outbox_open_supersede_key": ("outbox supersede_key id", "is_open IS {true}"),
    "ix_pr_impact_open_last_at": ("pr_impact last_at", "is_counted IS {true}"),
    "ix_test_case_by_all_cost": ("test_case repository_id cost_rank no", "is_known IS {true}"),
    "ix_test_case_by_cost": (
        "test_case repository_id status cost_rank no",
        "is_known IS {true}",
    ),
    "ix_test_case_costs_since": ("test_case costs_since", "costs_since IS NOT NULL"),
    "ix_test_case_open_strangers": ("test_case first_run_at", "is_known IS {false}"),
    "ix_test_day_open": ("test_day day repository_id", "is_counted IS {false}"),
    "ix_test_override_open_by_time": (
        "test_override repository_id override at no",
        "is_open IS {true}",
    ),
    "ix_test_override_open_expires_at": ("test_override expires_at", "is_open IS {true}"),
    "ux_test_override_open": ("test_override repository_id no", "is_open IS {true}"),
    "ix_test_settings_open_ticket_issues": (
        "test_settings repository_id org_id",
        "ticket_issues IS {true}",
    ),
    "ix_ticket_issue_look_at": ("ticket_issue repository_id look_at", "look_at IS NOT NULL"),
    "ix_upload_eligible": ("upload repository_id ran_at passed skipped", "is_eligible IS {true}"),
    "ix_upload_open_notes": ("upload id", "is_noted IS {false}"),
    "ix_merge_queue_wake_at": ("merge_queue wake_at", "wake_at IS NOT NULL"),
    "ux_merge_queue_branch": ("merge_queue repository_id branch", "deleted IS {false}"),
    "ix_entry_ended": ("entry queue_id state state_since no", "live IS {false}"),
    "ix_entry_targets": ("entry targets", "targets IS NOT NULL"),
    "ix_entry_wide": ("entry wide", "wide IS NOT NULL"),
    "ux_entry_live": ("entry queue_id pr", "live IS {true}"),
    "ix_run_built": ("run queue_id no status", "sha IS NOT NULL"),
    "ix_run_live": ("run queue_id", "live IS {true}"),
    "ix_run_live_sha": ("run repository_id sha", "live IS {true}"),
}
"""Index → the same, and which rows it has."""

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


def _access_triggers(*, is_sqlite: bool) -> list[str]:
    made = [] if is_sqlite else [POSTGRESQL_COUNTER]
    for number, (table, change) in enumerate(ACCESS):
        head = f"CREATE TRIGGER access_changes_{number} AFTER {change} ON {table}"
        each = "FOR EACH STATEMENT EXECUTE FUNCTION count_access_change()"
        made.append(f"{head} BEGIN {COUNT_ACCESS}; END" if is_sqlite else f"{head} {each}")
    return made


def upgrade() -> None:
    connection = op.get_bind()
    is_sqlite = connection.dialect.name == "sqlite"
    for table in TABLES:
        make(table)
    for name, words in INDEXES.items():
        of, *over = words.split()
        op.create_index(name, of, over, unique=name.startswith("ux_"))
    truths = {"true": "1", "false": "0"} if is_sqlite else {"true": "true", "false": "false"}
    for name, (words, condition) in PARTIAL.items():
        of, *over = words.split()
        where = sa.text(condition.format(**truths))
        op.create_index(
            name,
            of,
            over,
            unique=name.startswith("ux_"),
            sqlite_where=where,
            postgresql_where=where,
        )
    kept = SQLITE_TRIGGERS if is_sqlite else POSTGRESQL_TRIGGERS
    for trigger in (*kept, *_access_triggers(is_sqlite=is_sqlite)):
        connection.execute(sa.text(trigger))


def make(table: str) -> None:
    """Create a table with its keys."""
    words = TABLES[table].split()
    keys = [word.partition(":")[0] for word in words if word.endswith("!")]
    more: list[sa.Constraint] = [sa.PrimaryKeyConstraint(*keys, name=f"pk_{table}")]
    for together in UNIQUE.get(table, ()):
        names = together.split()
        more.append(sa.UniqueConstraint(*names, name=f"uq_{table}_{'_'.join(names)}"))
    for (of, name), target in REFERENCES.items():
        if of == table:
            more.append(sa.ForeignKeyConstraint([name], [target], name=f"fk_{table}_{name}"))
    columns = (column(table, word) for word in words)
    op.create_table(table, *columns, *more, sqlite_with_rowid=table not in BY_KEY)


def column(table: str, word: str) -> sa.Column[object]:
    """Describe a column."""
    name, _, kind = word.partition(":")
    return sa.Column(
        name,
        KINDS[kind.rstrip("!?")],
        nullable=kind.endswith("?"),
        autoincrement="auto" if table in COUNTED else False,
        server_default=DEFAULTS.get((table, name)),
    )
