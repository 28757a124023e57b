"""Tests: what they are, what is known of their runs, and what people have said of them."""

from collections.abc import Mapping

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

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
    "test_repository": """
        repository_id:id! org_id:id names:text last_no:int revision:id clock:time?
    """,
    "test_case": """
        repository_id:id! no:int! org_id:id id:string named_under:int name:string
        classname:string parent:string file:string line:int? variant:string owners:text
        is_known:bool first_run_at:time last_run_at:time last_failed_at:time? ever_passed:bool
        status:string status_since:time impact_rank:int
    """,
    "alias": "repository_id:id! id:string! org_id:id no:int",
    "test_state": """
        repository_id:id! no:int! org_id:id value:string reason:string since:time is_stale:bool
        numbers:text settled:text? flag:string flag_reason:string flagged_by:string flagged_at:time?
    """,
    "test_state_event": """
        id:id! org_id:id repository_id:id no:int at:time written_at:time kind:string
        previous:string value:string reason:string actor_kind:string actor_login:string
    """,
    "test_override": """
        id:id! org_id:id repository_id:id no:int override:string reason:string at:time
        expires_at:time? actor_kind:string actor_login:string is_open:bool
    """,
    "ticket": "repository_id:id! no:int! org_id:id html_url:text at:time",
    "test_settings": """
        repository_id:id! org_id:id quarantine_enabled:bool auto_quarantine_enabled:bool
        auto_quarantine_statuses:text sensitivity:string stable_branches:text?
        ticket_url_template:string? collect_artifacts:bool artifact_patterns:text
        name_masks:text ticket_issues:bool quarantine_since:time? auto_since:time?
    """,
    "upload": """
        id:string! org_id:id repository_id:id digest:string kind:string code_id:string sha:string
        tree_sha:string? branch:string? pr_number:id? prs:text run_id:string? run_attempt:int
        run_url:text? job:string variant:string machine:string? ran_at:time received_at:time
        command_exit_code:int counts:text files:text warnings:text refusal:string?
        is_complete:bool is_eligible:bool is_mass:bool is_partial:bool passed:string?
        skipped:string?
    """,
    "outcome_set": "repository_id:id! hash:string! org_id:id nos:bytes used_at:time",
    "attempt": """
        upload:string! no:int! n:int! org_id:id repository_id:id ran_at:time outcome:string
        failure:string? headline:text? stack:text? duration_ms:int? is_quarantined:bool
        is_eligible:bool is_comparable:bool
    """,
    "code_group": """
        repository_id:id! no:int! job_key:string! code_id:string! org_id:id attempts:text
        last_at:time
    """,
    "daily": """
        repository_id:id! no:int! day:int! org_id:id results:int passing_results:int passed:int
        failed:int skipped:int quarantined:int duration_ms:id
    """,
    "noise": "repository_id:id! day:int! org_id:id totals:text eps_a:float eps_b:float",
    "failure_group": """
        repository_id:id! key:string! org_id:id headline:text sample:text last_at:time
    """,
    "failure_daily": "repository_id:id! no:int! key:string! day:int! org_id:id count:int",
    "pr_impact": "repository_id:id! no:int! pr:id! org_id:id last_at:time is_counted:bool",
}
"""Table → its columns, `name:kind`; `!` stands in the primary key, `?` may be NULL."""

COUNTED = ("test_state_event", "test_override")
"""Tables whose ids the database counts up."""

UNIQUE = {"test_case": ("repository_id", "id"), "upload": ("repository_id", "digest")}

INDEXES = {
    "ix_test_case_by_impact": "test_case repository_id status impact_rank id",
    "ix_test_case_by_time": "test_case repository_id status status_since no",
    "ix_alias_repository_id_no": "alias repository_id no",
    "ix_test_state_event_repository_id_no_id": "test_state_event repository_id no id",
    "ix_test_override_repository_id_no_id": "test_override repository_id no id",
    "ix_upload_ran_at": "upload ran_at",
    "ix_upload_repository_id_received_at": "upload repository_id received_at",
    "ix_upload_repository_id_run_id": "upload repository_id run_id run_attempt",
    "ix_outcome_set_used_at": "outcome_set used_at",
    "ix_attempt_ran_at": "attempt ran_at",
    "ix_code_group_last_at": "code_group last_at",
    "ix_daily_day": "daily day",
    "ix_noise_day": "noise day",
    "ix_failure_group_last_at": "failure_group last_at",
    "ix_failure_daily_day": "failure_daily day",
    "ix_pr_impact_last_at": "pr_impact last_at",
}
"""Index → its table and columns."""

PARTIAL = {
    "ix_test_case_open_strangers": "test_case !is_known last_run_at",
    "ux_test_override_open": "test_override is_open repository_id no",
    "ix_test_override_open_by_time": "test_override is_open repository_id override at no",
    "ix_test_override_open_expires_at": "test_override is_open expires_at",
    "ix_upload_eligible": "upload is_eligible repository_id ran_at passed",
    "ix_attempt_eligible_by_time": "attempt is_eligible repository_id outcome ran_at no",
    "ix_attempt_eligible_by_test": "attempt is_eligible repository_id no ran_at outcome failure",
    "ix_pr_impact_open_last_at": "pr_impact is_counted last_at",
}
"""Index → its table, the flag that its rows have or (`!`) lack, and its columns."""


def upgrade() -> None:
    for table, columns in TABLES.items():
        make(table, columns.split())
    for name, words in INDEXES.items():
        table, *over = words.split()
        op.create_index(name, table, over)
    truths = ("0", "1") if op.get_bind().dialect.name == "sqlite" else ("false", "true")
    for name, words in PARTIAL.items():
        table, flag, *over = words.split()
        truth = truths[not flag.startswith("!")]
        where = sa.text(f"{flag.removeprefix('!')} IS {truth}")
        op.create_index(
            name,
            table,
            over,
            unique=name.startswith("ux_"),
            sqlite_where=where,
            postgresql_where=where,
        )


def make(table: str, columns: list[str]) -> None:
    """One table with its key and what is unique in it."""
    keys = [each.partition(":")[0] for each in columns if each.endswith("!")]
    more: list[sa.Constraint] = [sa.PrimaryKeyConstraint(*keys, name=f"pk_{table}")]
    if table in UNIQUE:
        same = UNIQUE[table]
        more.append(sa.UniqueConstraint(*same, name=f"uq_{table}_{'_'.join(same)}"))
    op.create_table(table, *(column(table, each) for each in columns), *more)


def column(table: str, word: str) -> sa.Column[object]:
    """One column."""
    name, _, kind = word.partition(":")
    return sa.Column(
        name,
        KINDS[kind.rstrip("!?")],
        nullable=kind.endswith("?"),
        autoincrement="auto" if table in COUNTED else False,
    )
