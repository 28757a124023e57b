"""What must hold of every history, told from git, CI, rows and answers; each breach is a line."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from sqlalchemy import select

from bot.github import auth
from bot.sandbox.world import Attempt
from service.database.database import Tx
from service.database.inbox import InboxState
from service.database.tables_deliveries import HeardCommandRow, InboxRow, JournalRow, OutboxRow
from service.mergequeue.engine.reasons import HoldReason
from service.mergequeue.store.tables_queues import EntryRow, MergeQueueRow, RunRow
from service.provider.signals import Delivery
from service.runtime import Runtime
from tests.harness import audited
from tests.harness import history as judges
from tests.harness.stillness import is_still
from tests.harness.world import REPO
from tests.whole_service.people import Acknowledged
from tests.whole_service.world import HOST, History

FINAL = {"MERGED", "FAILED", "CANCELLED"}
OURS = ("GitHub cannot be used now", "database was unavailable", "A mistake of ours")
"""A delivery is never parked for these."""
MISTAKES = {"crashed"}
OWN = re.compile(r"/headgate/(merge|temp)/")
"""Test branches, and those on which they are made."""
MARK = re.compile(r"<!-- headgate:[^>]*-->")


def _rows(session: Tx) -> dict[str, list[Any]]:
    tables = (
        EntryRow, OutboxRow, InboxRow, RunRow, MergeQueueRow, HeardCommandRow, JournalRow,
    )  # fmt: skip
    found = {table.__tablename__: list(session.execute(select(table.__table__)))
             for table in tables}  # fmt: skip
    return {str(name): rows for name, rows in found.items()}


async def unrest(history: History, runtime: Runtime, answered: Acknowledged) -> str:
    """Return what still moves or waits without a reason; empty at rest."""
    rows = await runtime.store.read(_rows)
    holds = {row.id: row.holds for row in rows["merge_queue"]}
    for row in rows["outbox"]:
        if row.is_open:
            return f"effect {row.idem_key} is {row.state}, due {row.next_at:%H:%M:%S}: {row.note}"
    for row in rows["inbox"]:
        if row.is_open:
            return f"delivery {row.event} is open: {row.note}"
    for row in rows["entry"]:
        is_named = row.state == "NOT_READY" and row.unmet not in (None, "[]", [])
        if row.state not in FINAL and not is_named:
            return f"#{row.pr} is {row.state} ({row.unmet}); holds: {holds.get(row.queue_id)}"
    for row in rows["run"]:
        if row.live:
            return f"run {row.id} lives"
    left = [ref for ref in history.repository.git.refs if OWN.search(ref)]
    if left:
        return f"{left[0]} is left"
    unanswered = next(_commands(history, rows, answered), "")
    return unanswered or await is_still(runtime, history.sandbox)


async def ends(runtime: Runtime) -> list[str]:
    """Return how each submission ended."""
    rows = await runtime.store.read(_rows)
    return [f"#{row.pr} {row.state} {row.reason or row.unmet}" for row in rows["entry"]]


async def breaches(
    history: History, runtime: Runtime, answered: Acknowledged, logs: list[Any]
) -> list[str]:
    """Return every broken property of a history at rest."""
    rows = await runtime.store.read(_rows)
    return [
        *await judges.broken_promises(history.sandbox, runtime.store, REPO),
        *await audited.faults_of(runtime.store, {REPO: history.repository.git.folder}),
        *_deliveries(history, runtime, rows),
        *_submissions(rows, answered),
        *await _settings(history, answered),
        *_words(history),
        *_checks(history, rows),
        *_holds(history, rows),
        *history.seen.changed,
        *history.provider.disobeyed,
        *_mistakes(history, logs),
    ]


def _deliveries(history: History, runtime: Runtime, rows: dict[str, list[Any]]) -> Iterator[str]:
    """What was answered with 2xx is stored and done, unless it says nothing."""
    stored = {row.delivery_id: row for row in rows["inbox"]}
    for one in history.sandbox.world.attempts:
        if not 200 <= one.answer_code < 300 or _is_silent(runtime, one):
            continue
        row = stored.get(one.guid)
        if row is None:
            yield f"lost: delivery {one.guid} ({one.event}) was acknowledged"
    for row in rows["inbox"]:
        if row.state != InboxState.DONE.value and any(word in row.note for word in OURS):
            yield f"delivery {row.delivery_id} ({row.event}) is {row.state}: {row.note}"


def _is_silent(runtime: Runtime, one: Attempt) -> bool:
    found = Delivery(
        host=HOST, id=one.guid, event=one.event, action=one.action,
        repository_id=str(one.repository), body=one.body, received_at=one.at,
    )  # fmt: skip
    return not runtime.translators[HOST](found)


def _submissions(rows: dict[str, list[Any]], answered: Acknowledged) -> Iterator[str]:
    known = {row.pr for row in rows["entry"]}
    for number in answered.submitted:
        if number not in known:
            yield f"lost: the submission of #{number} was acknowledged"


async def _settings(history: History, answered: Acknowledged) -> list[str]:
    """A setting has the value that was acknowledged last, or one whose answer was lost since."""
    status, queue = await history.ask("getQueue")
    if status == 0:  # The server may have closed the idle connection just then.
        status, queue = await history.ask("getQueue")
    if status != 200:
        return [] if status == 404 else [f"getQueue answers {status}: {queue}"]
    return [
        f"lost: {name} is {queue[name]!r}, not one of {wanted}"
        for name, wanted in answered.settings.items()
        if queue[name] not in wanted
    ]


def _commands(
    history: History, rows: dict[str, list[Any]], answered: Acknowledged
) -> Iterator[str]:
    """Each command in a comment was heard, or a later one that undoes it."""
    heard = {row.source_id for row in rows["heard_command"]}
    later: set[str] = set()
    found = [
        (one, number)
        for number, issue in history.repository.issues.items()
        for one in issue.comments
        if one.body.startswith("/merge") and number not in answered.excused
    ]
    for one, number in sorted(found, key=lambda each: each[0].id, reverse=True):
        word = one.body.removeprefix("/merge").strip()
        topic = "queue" if word in ("pause", "drain", "resume") else f"#{number}"
        if str(one.id) in heard:
            later |= {topic} if word != "retry" else set()
        elif topic not in later:
            yield f"lost: nobody heard {one.body!r} on #{number}"


def _words(history: History) -> Iterator[str]:
    """No comment of ours is there twice."""
    bot = history.sandbox.app.bot
    for number, issue in history.repository.issues.items():
        ours = [one.body for one in issue.comments if one.author is bot]
        marks = Counter(mark for body in ours for mark in MARK.findall(body))
        for mark, count in marks.items():
            if count > 1:
                yield f"#{number} has {mark} {count} times"


def _checks(history: History, rows: dict[str, list[Any]]) -> Iterator[str]:
    """Our check on the head of a submission that has ended says that it has ended."""
    newest = {row.pr: row for row in rows["entry"]}
    for number, row in newest.items():
        own = [
            one for one in history.repository.check_runs(row.head)
            if one.suite.app is history.sandbox.app
        ]  # fmt: skip
        if row.state in FINAL and own and own[-1].status != "completed":
            yield f"#{number} is {row.state}, and its check is {own[-1].status}"


def _holds(history: History, rows: dict[str, list[Any]]) -> Iterator[str]:
    """What GitHub refuses to show people holds no queue."""
    if history.plan.is_muted and not history.plan.jumps:
        for row in rows["journal"]:
            is_lost = (row.event, row.reason) == ("HoldPlaced", HoldReason.PERMISSION_LOST.value)
            # GitHub refuses the key too where it takes two new tokens in a row for expired ones.
            if is_lost and auth.REFUSED_KEY not in row.data:
                yield "the queue was held because nothing could be said"


def _mistakes(history: History, logs: list[Any]) -> Iterator[str]:
    """Nothing in the service raised what nobody expected."""
    yield from history.raised
    for line in logs:
        if line["event"] in MISTAKES:
            yield f"a mistake of ours: {line}"
