"""No question of the store reads a whole table, however large it has become.

All tables are filled, each store function is asked once, and every statement that it sent is
explained by the database itself.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    Integer,
    LargeBinary,
    Table,
    event,
    text,
)

from service.accounts.store import access, audit, repeats
from service.accounts.store.repeats import Keyed
from service.database import inbox, outbox
from service.database.inbox import ClaimedLane
from service.database.outbox import Lane, OutboxState
from service.database.tables_base import METADATA
from service.database.types import Json, Utc
from service.mergequeue.breaks.search import Break
from service.mergequeue.conflict_pairs import ConflictPair
from service.mergequeue.early_rules import Ending, PartKind, Rule
from service.mergequeue.landing_records import LandingState
from service.mergequeue.store import (
    backlog,
    breaks,
    conflicts,
    consents,
    failed_parts,
    figures,
    history,
    history_lists,
    journal,
    landings,
    listings,
    notices,
    outcomes,
    overviews,
    pull_requests,
    queues,
    restored,
    runs,
    shadow,
    statistics,
    submissions,
)
from service.mergequeue.store.consents import ShownHead
from service.mergequeue.store.failed_parts import SeenPart
from service.mergequeue.store.listings import RunFilter
from service.mergequeue.store.notices import NoticeKey, Surface
from service.mergequeue.store.overviews import Scope
from service.mergequeue.store.pull_requests import PullRequestHead
from service.mergequeue.store.shadow import SeenMerge
from service.metrics.facts import MetricFact
from service.notifications.store import delivery_log, notifications, subscribers
from service.notifications.store.delivery_log import DeliveryFilter
from service.notifications.store.notifications import Attempt, Made, Message
from service.process.store import retention
from service.provenance import ProviderTime
from service.provider.ci import FailedPart
from service.vocabulary import QueueRef, RepoRef, RequiredName, Sha
from tests.harness import databases
from tests.store import tested
from tests.store.conftest import NOW, a_repository
from tests.store.test_inbox import a_delivery
from tests.store.test_landings import a_land
from tests.store.test_outbox import build, tell

# Rows of each table; together more than 100,000. Deployments and rare things stay few.
ROWS = {
    "organization": 500,
    "repository": 1000,
    "repository_alias": 1000,
    "api_token": 2000,
    "merge_queue": 2000,
    "entry": 20_000,
    "run": 20_000,
    "run_entry": 20_000,
    "run_check": 20_000,
    "green_tree": 5000,
    "landing": 10_000,
    "journal": 20_000,
    "inbox": 10_000,
    "inbox_body": 10_000,
    "outbox": 10_000,
    "audit": 5000,
    "pull_request": 5000,
    "consent": 5000,
    "impacted_targets": 5000,
    "notice": 5000,
    "shadow_merge": 5000,
    "target_break": 5000,
    "target_green": 2000,
    "failed_part": 5000,
    "conflict_pair": 5000,
    "idempotency": 5000,
    "figure": 20_000,
    "recent_fact": 20_000,
    "endpoint": 2000,
    "notification": 10_000,
    "notification_attempt": 20_000,
    **tested.ROWS,
}

ONE_IN_200 = "(i % 200 = 0)"

A_RULE = Rule("ci.yml", "v1", "unit", "unit", PartKind.JOB)
A_PART = SeenPart(
    *(A_RULE, "r7", 1, Sha("sha-7"), FailedPart("7", "unit"), "7", NOW), ending=Ending.HELD
)
A_BREAK = breaks.STATE.encode(Break("b7", RequiredName("slow"), "", (), 4, False))
A_BREAK = A_BREAK.replace('":', '": ')  # a colon before a letter would be a parameter

# Columns that cannot be the same in every row, or that questions choose by.
GIVEN = {
    "organization.slug_key": "'org-' || i",
    "repository.org_id": "1 + i % 500",
    "repository.owner_key": "'owner'",
    "repository.name_key": "'name-' || i",
    "repository_alias.owner_key": "'owner'",
    "repository_alias.name_key": "'former-' || i",
    "repository_alias.repository_id": "1 + i % 1000",
    "repository.merge_methods": "'[]'",
    "api_token.role": "'read'",
    "api_token.org_id": "1 + i % 500",
    "merge_queue.repository_id": "1 + i % 1000",
    "merge_queue.branch": "'branch-' || i",
    "merge_queue.deleted": "(i % 2 = 0)",
    "merge_queue.wake_at": "WHEN",
    "merge_queue.state": "'RUNNING'",
    "entry.queue_id": "1 + i % 2000",
    "entry.id": "'e' || i",
    "entry.live": ONE_IN_200,
    "run.id": "'r' || i",
    "run.repository_id": "1 + i % 1000",
    "run.queue_id": "1 + i % 2000",
    "run.live": ONE_IN_200,
    "run.sha": "'sha-' || i",
    "run.branch": "'hg/' || i",
    "run_entry.run_id": "'r' || i",
    "run_entry.role": "'tested'",
    "run_entry.entry": "'e' || i",
    "run_check.run_id": "'r' || i",
    "green_tree.queue_id": "1 + i % 2000",
    "green_tree.key": "'tree-' || i",
    "landing.queue_id": "1 + i % 2000",
    "landing.landed_sha": "'sha-' || i",
    "target_break.id": "'b' || i",
    "target_break.queue_id": "1 + i % 2000",
    "target_break.name": "'check-' || i",
    "target_break.is_open": ONE_IN_200,
    "target_break.state": f"'{A_BREAK}'",
    "target_green.queue_id": "i",
    "failed_part.queue_id": "1 + i % 2000",
    "failed_part.run": "'r' || i",
    "failed_part.kind": "'job'",
    "failed_part.ending": "CASE WHEN i % 200 = 0 THEN NULL ELSE 'held' END",
    "landing.state": "CASE i % 100 WHEN 0 THEN 'permitted' ELSE 'landed' END",
    "conflict_pair.queue_id": "1 + i % 2000",
    "conflict_pair.low": "i",
    "conflict_pair.high": "i + 1",
    "conflict_pair.paths": "'[]'",
    "journal.queue_id": "1 + i % 20",
    "journal.number": "CASE i % 2 WHEN 0 THEN i END",
    "journal.entry": "CASE i % 2 WHEN 0 THEN 'e' || i END",
    "journal.run": "'r' || i",
    "inbox.lane": "'lane-' || (i % 3000)",
    "inbox.is_open": ONE_IN_200,
    "inbox.state": "CASE i % 5000 WHEN 0 THEN 'poisoned' ELSE 'open' END",
    "inbox_body.inbox_id": "i",
    "outbox.queue_id": "1 + i % 2000",
    "outbox.is_open": ONE_IN_200,
    "outbox.lane": "CASE i % 2 WHEN 0 THEN 'control' ELSE 'notice' END",
    "outbox.run": "'r' || (i % 3000)",
    "outbox.supersede_key": "'tell/' || (i % 3000)",
    "outbox.state": "'ready'",
    "outbox.effect_type": "'Reaction'",
    "outbox.effect": """'{"number": 3, "comment_id": "7", "emoji": "eyes"}'""",
    "audit.org_id": "1 + i % 500",
    "figure.queue_id": "1 + i % 2000",
    "recent_fact.queue_id": "1 + i % 2000",
    "endpoint.id": "'endpoint-' || i",
    "endpoint.org_id": "1 + i % 500",
    "endpoint.events": """'["*"]'""",
    "endpoint.format": "'json'",
    "endpoint.state": "CASE i % 2 WHEN 0 THEN 'enabled' ELSE 'disabled' END",
    "notification.id": "'message-' || i",
    "notification_attempt.endpoint": "'endpoint-' || (i % 2000)",
    "notification_attempt.message": "'message-' || (i % 10000)",
    "notification_attempt.state": "'failed'",
    "notification_attempt.is_open": ONE_IN_200,
    "notification_attempt.is_newest": "(i % 2 = 0)",
    **tested.GIVEN,
}

SERIES = "WITH RECURSIVE series(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM series WHERE i < {n}) "
LATER = {
    "sqlite": {
        "WHEN": "strftime('%Y-%m-%dT%H:%M:%S.000000', '2026-03-02 13:00', '-' || i || ' minutes')",
        "BYTES": "x'0000000000000000'",
    },
    "postgresql": {
        "WHEN": "timestamptz '2026-03-02 13:00+00' - i * interval '1 minute'",
        "BYTES": "decode('0000000000000000', 'hex')",
    },
}


ARRAYS = frozenset(
    {
        "artifact_patterns",
        "auto_quarantine_statuses",
        "barred",
        "doomed",
        "events",
        "excused",
        "files",
        "held_by",
        "holds",
        "landed",
        "name_masks",
        "names",
        "owners",
        "prs",
        "records",
        "report_issuers",
        "required",
        "rerun_ids",
        "runner_ends",
        "revoked",
        "steps",
        "test_failure_exit_codes",
        "tests",
        "unexplained",
        "unmet",
        "warnings",
        "without",
    }
)
"""Columns of JSON that hold arrays; the others hold objects."""


def fill(session: Connection) -> None:
    """Many rows into every table."""
    for table in METADATA.sorted_tables:
        if table.name in ROWS:
            session.execute(text(filling(table, session.dialect.name)))
    # The trigger of the inbox has made its lanes; most of them have nothing open, some are claimed.
    session.execute(text("UPDATE inbox_lane SET due_at = NULL WHERE id % 20 <> 0"))
    session.execute(text("UPDATE inbox_lane SET claimed_by = 'me' WHERE id % 300 = 7"))
    assert sum(ROWS.values()) > 100_000
    session.exec_driver_sql("ANALYZE")


def filling(table: Table, dialect: str) -> str:
    """A statement that fills a table from a series of numbers."""
    wanted = {}
    for column in table.c:
        counted = column is table._autoincrement_column
        expression = GIVEN.get(f"{table.name}.{column.name}") or of_its_type(column)
        if not counted and not (column.nullable and f"{table.name}.{column.name}" not in GIVEN):
            wanted[f'"{column.name}"'] = LATER[dialect].get(expression, expression)
    series = SERIES.format(n=ROWS[table.name])
    select = f"SELECT {', '.join(wanted.values())} FROM series"
    return f'{series}INSERT INTO "{table.name}" ({", ".join(wanted)}) {select}'


def of_its_type(column: Column) -> str:
    """Some value that such a column can hold."""
    if isinstance(column.type, Utc):
        return "WHEN"
    if isinstance(column.type, Boolean):
        return "(i < 0)"
    if isinstance(column.type, BigInteger | Integer | Float):
        return "i"
    if isinstance(column.type, LargeBinary):
        return "BYTES"
    if isinstance(column.type, Json):
        return "'[]'" if column.name in ARRAYS else "'{}'"
    return "'text-' || i"


# Some 80 of 5000 rows were written before it.
OLD = NOW.replace(month=2, day=27, hour=3)
REF = RepoRef("text-7", "owner", "name-7")
PLACE = QueueRef(7, 7, 7, REF, "branch-7")
PAIR = ConflictPair(3, 9, Sha("one"), Sha("two"), ("t",), NOW)
HEAD = PullRequestHead(7, 7, Sha("text-7"))
AT = ProviderTime(NOW)
SHOWN = ShownHead(HEAD, "text-7", is_fork=True, is_closed=False, at=AT)
A_LANE = ClaimedLane(7, (), 4, has_more=False)
KEYED = Keyed("text-7", 7, "text-7", "text-7", b"")
PAIRS = [(number, Sha(f"text-{number}")) for number in range(50)]

A_MESSAGE = Message("message-new", 7, "queue.held", NOW, "{}")
AN_ATTEMPT = Attempt(7, 7, "endpoint-7", "message-7", 900, 0, "queue.held", NOW, "{}")
A_FAILURE = Made(NOW, 5, 500, "It answered 500.")

LEFT = history_lists.SubmissionFilter(ended=(NOW - timedelta(days=7), NOW), text="x")
THERE = history_lists.SubmissionFilter(at=NOW)
RAN = history_lists.RunSpan(finished=(NOW - timedelta(days=7), NOW))
RUNNING = history_lists.RunSpan(at=NOW)

QUESTIONS: dict[str, Callable[[Connection], object]] = {
    "access.organization_by_slug": lambda s: access.organization_by_slug(s, "text-7", "org-7"),
    "access.ensure_organization": lambda s: access.ensure_organization(s, "h", "text-7", "new"),
    "access.repository_by_ref": lambda s: access.repository_by_ref(s, None, REF),
    "access.repository_by_ref, former": lambda s: access.repository_by_ref(
        s, None, RepoRef("text-7", "owner", "former-7")
    ),
    "access.repository_by_provider_id": lambda s: access.repository_by_provider_id(
        s, "text-7", "text-7"
    ),
    "access.repository": lambda s: access.repositories_of(s, 7),
    "access.upsert_repository": lambda s: access.upsert_repository(s, 7, a_repository()),
    "access.tokens_of": lambda s: access.tokens_of(s, 99),
    "access.organization": lambda s: access.organization(s, 7),
    "access.lock_organization": lambda s: access.lock_organization(s, 7),
    "access.live_tokens_of": lambda s: access.live_tokens_of(s, 99, NOW),
    "access.live_token_count": lambda s: access.live_token_count(s, 99, NOW),
    "access.touch_token": lambda s: access.touch_token(s, "text-7", NOW),
    "queues.queue_ref": lambda s: queues.queue_ref(s, 7, 7, "branch-7"),
    "queues.ref_by_id": lambda s: queues.ref_by_id(s, 7),
    "queues.queues_of": lambda s: queues.queues_of(s, 7),
    "queues.head_of": lambda s: queues.head_of(s, 7, lock=True),
    "queues.due": lambda s: queues.due(s, NOW.replace(year=2025)),
    "queues.run_of_sha": lambda s: queues.run_of_sha(s, 201, Sha("sha-200")),
    "queues.mark_deleted": lambda s: queues.mark_deleted(s, 7, NOW),
    "runs.queue_of": lambda s: runs.queue_of(s, 8, "r7"),
    "runs.draft_pull_request_of": lambda s: runs.draft_pull_request_of(s, "r7"),
    "runs.note_restored": lambda s: runs.note_restored(s, 8, "r7"),
    "runs.succeeded_durations_s": lambda s: runs.succeeded_durations_s(s, 7),
    "runs.recorded_branches": lambda s: runs.recorded_branches(s, 7),
    "runs.left_by_ended": lambda s: runs.left_by_ended(s, 7, {"a branch": "run-1"}),
    "statistics.pauses": lambda s: list(statistics.pauses(s, 9, NOW - timedelta(days=7))),
    "conflicts.of_queue": lambda s: conflicts.of_queue(s, 9),
    "conflicts.put": lambda s: conflicts.put(s, PLACE, [PAIR]),
    "conflicts.remove": lambda s: conflicts.remove(s, PLACE, [PAIR]),
    "shadow.submissions": lambda s: list(
        s.execute(shadow.SELECT_SUBMISSIONS, {"of_queue": 9, "at_most": 200})
    ),
    "shadow.run_counts": lambda s: shadow.run_counts(s, 9, NOW - timedelta(days=7), NOW),
    "shadow.unread": lambda s: shadow.unread(s, 9, NOW, 50),
    "shadow.note_merges": lambda s: shadow.note_merges(s, PLACE, [SeenMerge("new", NOW, None)]),
    "shadow.note_red": lambda s: shadow.note_red(s, "text-9", is_red=True),
    "breaks.find": lambda s: breaks.find(s, "b7"),
    "breaks.open_breaks": lambda s: breaks.open_breaks(s, 9),
    "breaks.newest": lambda s: breaks.newest(s, 9, 20),
    "breaks.save": lambda s: breaks.save(s, breaks.STATE.decode(A_BREAK), NOW),
    "breaks.landed": lambda s: breaks.landed(s, PLACE, [Sha("sha-7"), Sha("sha-8")]),
    "breaks.reverts": lambda s: breaks.reverts(s, 9),
    "breaks.landed_as": lambda s: breaks.landed_as(s, 7, 9),
    "breaks.verified": lambda s: breaks.verified(s, 9),
    "breaks.set_verified": lambda s: breaks.set_verified(s, PLACE, Sha("sha-7"), NOW),
    "failed_parts.note": lambda s: failed_parts.note(s, PLACE, [A_PART]),
    "failed_parts.newest": lambda s: failed_parts.newest(s, 9),
    "failed_parts.open_of_run": lambda s: failed_parts.open_of_run(s, 9, "r7", 1),
    "failed_parts.left_open": lambda s: failed_parts.left_open(s, NOW - timedelta(days=1), NOW, 20),
    "failed_parts.close": lambda s: failed_parts.close(s, 9, A_PART),
    "journal.timeline": lambda s: journal.timeline(s, 9, 40_000, "e7"),
    "journal.timeline_after": lambda s: journal.timeline_after(s, 9, (40_000, "e7"), 7, 100),
    "history_lists.mentioned": lambda s: history_lists.mentioned(s, Scope(7), "x", 20),
    "history_lists.submissions": lambda s: history_lists.submissions(s, 7, LEFT, 9000, 50),
    "history_lists.submissions_count": lambda s: history_lists.submissions_count(s, 7, LEFT),
    "history_lists.submissions, at": lambda s: history_lists.submissions(s, 7, THERE, 9000, 50),
    "history_lists.runs_before": lambda s: history_lists.runs_before(s, 7, RAN, 9000, 50),
    "history_lists.runs_count": lambda s: history_lists.runs_count(s, 7, RAN),
    "history_lists.runs_count, at": lambda s: history_lists.runs_count(s, 7, RUNNING),
    "listings.built_runs_count": lambda s: listings.built_runs_count(s, 7, RunFilter()),
    "overviews.in_brief": lambda s: overviews.in_brief(s, Scope(7), (0, ""), NOW, 100),
    "overviews.in_brief, some": lambda s: overviews.in_brief(
        s, Scope(7, frozenset({7, 8})), (6, "x"), NOW, 100
    ),
    "overviews.refs": lambda s: overviews.refs(s, Scope(7, frozenset({7, 8})), 100),
    "overviews.just_ended": lambda s: overviews.just_ended(s, [7, 8], NOW, 100),
    "overviews.merged": lambda s: overviews.merged(s, [7, 8], NOW.replace(year=2025)),
    "overviews.landings_of": lambda s: overviews.landings_of(s, ["text-9", "text-10"]),
    "landings.intend": lambda s: landings.intend(s, 7, a_land()),
    "landings.landings_of_run": lambda s: landings.landings_of_run(s, "text-9"),
    "landings.heads_brought": lambda s: landings.heads_brought(s, PLACE, [7, 8]),
    "restored.known_past": lambda s: restored.known_past(s, PLACE, [7, 8]),
    "audit.of_subject": lambda s: audit.of_subject(s, 7, "text-7", "text-7"),
    "landings.permit": lambda s: landings.permit(s, 7, NOW),
    "landings.settle": lambda s: landings.settle(
        s, 7, landings.LandingOutcome(LandingState.REFUSED)
    ),
    "inbox.accept": lambda s: inbox.accept(s, a_delivery(1)),
    "inbox.claim": lambda s: inbox.claim(s, "me", NOW, 8),
    "inbox.next_due": inbox.next_due,
    "inbox.settle": lambda s: inbox.settle(s, [7, 8], ""),
    "inbox.proceed": lambda s: inbox.proceed(s, A_LANE, "me", NOW),
    "inbox.give_back": lambda s: inbox.give_back(s, "me", 7, NOW),
    "inbox.release_unowned": lambda s: inbox.release_unowned(s, "me", [7]),
    "inbox.retry": lambda s: inbox.retry(s, 7, NOW, 1, ""),
    "inbox.stored_ids": lambda s: inbox.stored_ids(s, "github.test", ["guid-7", "guid-8"]),
    "inbox.release": lambda s: inbox.release(s, ["me"], NOW, thorough=False),
    "inbox.release, thorough": lambda s: inbox.release(s, ["me"], NOW, thorough=True),
    "outbox.append": lambda s: outbox.append(s, 7, 7, 1, [build("new"), tell(7, "new")]),
    "outbox.claim": lambda s: outbox.claim(s, NOW.replace(year=2025), 50),
    "outbox.next_due": outbox.next_due,
    "outbox.claim, collecting": lambda s: outbox.claim(s, NOW, 4, (Lane.COLLECT,)),
    "outbox.next_due, collecting": lambda s: outbox.next_due(s, (Lane.COLLECT,)),
    "outbox.stored_keys": lambda s: outbox.stored_keys(s, ["text-7", "other"]),
    "outbox.mark_sent": lambda s: outbox.mark_sent(s, "me", [7], NOW),
    "outbox.settle": lambda s: outbox.settle(s, [7], OutboxState.DONE),
    "outbox.reopen_sent": lambda s: outbox.reopen_sent(s, ["me"], NOW),
    "pull_requests.remember_head": lambda s: pull_requests.remember_head(s, HEAD, AT, NOW),
    "pull_requests.with_head": lambda s: pull_requests.with_head(s, 7, Sha("text-7")),
    "pull_requests.known_head": lambda s: pull_requests.known_head(s, 7, 7),
    "consents.note_shown": lambda s: consents.note_shown(s, SHOWN, NOW),
    "consents.end": lambda s: consents.end(s, 7, 7),
    "pull_requests.targets_known": lambda s: pull_requests.targets_known(s, 7, PAIRS),
    "notices.find": lambda s: notices.find(s, NoticeKey(7, 7, Surface.CHECK, "text-7")),
    "notices.find, of the queue before": lambda s: notices.find(
        s, NoticeKey(7, 7, Surface.COMMENT)
    ),
    "repeats.claim": lambda s: repeats.claim(s, KEYED, "me", NOW),
    "repeats.keep": lambda s: repeats.keep(s, KEYED, "text-7", repeats.Kept(200, "", b"")),
    "repeats.give_up": lambda s: repeats.give_up(s, KEYED, "text-7"),
    "retention, answers": lambda s: retention.FORGET_REPEATS(s, OLD),
    "retention, no answers": lambda s: retention.FORGET_REPEATS(s, NOW.replace(year=2025)),
    "retention, texts": lambda s: retention.forget_texts(s, (7, 7, "e7"), is_merged=True),
    "retention, targets": lambda s: retention.FORGET_UPLOADS(s, OLD),
    "retention, no targets": lambda s: retention.FORGET_UPLOADS(s, NOW.replace(year=2025)),
    "figures.add": lambda s: figures.add(s, PLACE, [MetricFact("left", ("main",), 7)], NOW),
    "figures.moves": lambda s: figures.moves(s, 9, 40_000, "e7"),
    "figures.metered_queues": lambda s: figures.metered_queues(s, 7),
    "figures.of_queues": lambda s: figures.of_queues(s, [7, 8, 9], NOW.replace(year=2025)),
    "figures.expiring": lambda s: figures.expiring(s, 999, NOW, NOW),
    "notifications.append": lambda s: notifications.append(s, A_MESSAGE, ["endpoint-7"], NOW),
    "notifications.claim": lambda s: notifications.claim(s, "me", NOW, 8),
    "notifications.next_due": lambda s: notifications.next_due(s, NOW.replace(year=2025)),
    "notifications.settle": lambda s: notifications.settle(s, AN_ATTEMPT, A_FAILURE, NOW),
    "notifications.give_up": lambda s: notifications.give_up(s, "endpoint-7", "gone"),
    "notifications.release": lambda s: notifications.release(s, ["me"]),
    "delivery_log.page": lambda s: delivery_log.page(
        s, "endpoint-200", DeliveryFilter("text-200", since=NOW), (NOW, "message-7"), 50
    ),
    "delivery_log.has_message": lambda s: delivery_log.has_message(
        s, "endpoint-200", "message-200"
    ),
    "delivery_log.replay_message": lambda s: delivery_log.replay_message(
        s, "endpoint-200", "message-200", NOW
    ),
    "delivery_log.replay": lambda s: delivery_log.replay(
        s, "endpoint-200", DeliveryFilter(), NOW, 100
    ),
    "subscribers.enabled": lambda s: subscribers.enabled(s, 7),
    "subscribers.endpoint_by_id": lambda s: subscribers.endpoint_by_id(s, "endpoint-7"),
    "subscribers.endpoint_by_id, locked": lambda s: subscribers.endpoint_by_id(
        s, "endpoint-7", lock=True
    ),
    "subscribers.note_success": lambda s: subscribers.note_success(s, "endpoint-7", NOW),
    "subscribers.note_failure": lambda s: subscribers.note_failure(
        s, "endpoint-7", NOW, is_new_message=True
    ),
    "subscribers.disable": lambda s: subscribers.disable(s, "endpoint-6", "gone"),
    "subscribers.remove": lambda s: subscribers.remove(s, "endpoint-7"),
    "subscribers.organization_slug": lambda s: subscribers.organization_slug(s, 7),
    "backlog.waiting": backlog.waiting,
    "audit.of_deployment": lambda s: audit.of_deployment(s, "administrator.named"),
    "audit.newest": lambda s: audit.newest(s, 999, 10),
    "submissions.submitted": lambda s: submissions.submitted(s, 9, [(7, Sha("sha-200"))]),
    "submissions.has_ended": lambda s: submissions.has_ended(s, 9, 7, Sha("sha-200")),
    "submissions.blamed_run": lambda s: submissions.blamed_run(s, 9, Sha("sha-200")),
    "submissions.spent": lambda s: submissions.spent(s, 9, "token/x", NOW, NOW),
    **tested.QUESTIONS,
}

# Asked through the statements themselves: the filled rows hold no values of the engine.
STATEMENTS = {
    "queues.load": (
        queues.SELECT_QUEUE,
        queues.SELECT_ENTRIES,
        *queues.SELECT_RUNS,
        queues.SELECT_GREENS,
    ),
    "runs.runs_of": (*runs.SELECT_RUNS,),
    "runs.entry": (runs.SELECT_ENTRY, runs.SELECT_NEWEST_ENTRY, runs.SELECT_NEWEST_ENDED),
    "landings.open_permits": (landings.SELECT_OPEN_PERMITS,),
    "queues.live_queues": (queues.SELECT_LIVE,),
    "consents.find": (consents.SELECT,),
    "access.token_by_id": (access.SELECT_TOKEN_BY_ID,),
    "listings.queues_after": (
        listings.SELECT_QUEUES,
        listings.SELECT_QUEUES_WITHIN,
        listings.SELECT_COUNTS,
    ),
    "journal.searches_of": (journal.SELECT_SEARCHES,),
    "listings.ended": (
        listings.SELECT_ENDED,
        listings.SELECT_ENTRIES,
        listings.SELECT_ENTRIES_ENDED,
        listings.SELECT_NUMBERED,
        listings.SELECT_NEWEST_ENDED,
    ),
    "listings.built_runs": (
        *listings.SELECT_RUNS.values(),
        *listings.COUNT_RUNS.values(),
        listings.SELECT_TESTED,
        listings.SELECT_SEARCHED,
    ),
    "history.past": (history.SELECT_ENTRIES, *history.SELECT_RUNS, history.SELECT_READY),
    "journal.states_entered": (journal.SELECT_MOVES,),
    "history.judged": (history.SELECT_JUDGED,),
    "history.first_seen": (history.SELECT_FIRST_SEEN,),
    "outcomes.of_runs": (outcomes.SELECT_COUNTS, *outcomes.SELECT_TIMED),
}
Sent = tuple[str, Any]
"""A statement as the driver gets it, and its parameters."""

BINDS = {
    "of_queue": 200,
    "of_repository": 7,
    "of_ids": ["r1", "r2"],
    "of_id": "e7",
    "of_pr": 7,
    "of_number": 7,
    "of_head": "text-7",
    "of_base": "text-7",
    "of_entry": "e7",
    "since": NOW,
    "of_org": 7,
    "after_repository": 6,
    "after_branch": "branch-7",
    "within": [6, 506],
    "of_state": "text-7",
    "of_states": ["text-6", "text-7"],
    "until": NOW,
    "of_status": "text-7",
    "of_queues": [1, 2],
    "of_numbers": [1, 2],
    "of_prs": [1, 2],
    "of_runs": ["r1", "r2"],
    "before": NOW,
    "before_no": 7,
    "at_most": 50,
    "skipped": 10,
}


@contextmanager
def sent_by(session: Connection) -> Iterator[list[Sent]]:
    """Statements and parameters that go to the database meanwhile."""
    sent: list[Sent] = []

    def note(*call: Any) -> None:
        statement, parameters, _, is_many = call[2:]
        sent.append((statement, parameters[0] if is_many else parameters))

    event.listen(session, "before_cursor_execute", note)
    yield sent
    event.remove(session, "before_cursor_execute", note)


def whole_reads(session: Connection, statement: str, parameters: Any) -> list[str]:
    """Tables of which the plan reads every row."""
    if session.dialect.name == "sqlite":
        rows = session.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
        return [row.detail for row in rows if is_whole_read(row.detail)]
    plan = session.exec_driver_sql(f"EXPLAIN {statement}", parameters).scalars()
    return [line.strip() for line in plan if re.search(r"Seq Scan on (?!deployment)", line)]


def is_whole_read(detail: str) -> bool:
    """Whether a line of SQLite's plan is one.

    Partial indexes hold only what is open or live; an automatic index is made of all rows.
    """
    if "AUTOMATIC" in detail:
        return True
    scanned = re.match(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?", detail)
    if scanned is None:
        return False
    table, index = scanned.groups()
    known = table in METADATA.tables or table == "earlier"
    return known and not re.search("open|live|poisoned|inbox_lane|wake_at", index or "")


@contextmanager
def filled(request: pytest.FixtureRequest, dialect: str) -> Iterator[Connection]:
    """A connection to a database full of rows; rolled back at the end."""
    is_sqlite = dialect == "sqlite"
    url = request.getfixturevalue("sqlite_url" if is_sqlite else "postgres_url")
    with databases.connected(url) as session:
        if is_sqlite:
            session.exec_driver_sql("BEGIN")
        fill(session)
        yield session


@pytest.mark.parametrize("dialect", databases.DIALECTS)
def test_no_question_reads_a_whole_table(request: pytest.FixtureRequest, dialect: str):
    found: dict[str, list[str]] = {}
    with filled(request, dialect) as session:
        for name, ask in QUESTIONS.items():
            with sent_by(session) as sent:
                savepoint = session.begin_nested()
                ask(session)
                savepoint.rollback()
            found[name] = [
                read
                for each in sent
                if each[0]
                .lstrip()
                .upper()
                .startswith(("SELECT", "UPDATE", "INSERT", "DELETE", "WITH"))
                for read in whole_reads(session, *each)
            ]
        for name, statements in STATEMENTS.items():
            with sent_by(session) as sent:
                for statement in statements:
                    names = statement.compile().params
                    session.execute(
                        statement, {key: BINDS[key] for key in names if key in BINDS}
                    ).all()
            found[name] = [read for each in sent for read in whole_reads(session, *each)]
    assert {name: reads for name, reads in found.items() if reads} == {}


def test_a_whole_read_would_be_seen(session: Connection):
    with sent_by(session) as sent:
        session.exec_driver_sql("SELECT * FROM journal WHERE reason = 'x'").all()
    assert whole_reads(session, *sent[0])
