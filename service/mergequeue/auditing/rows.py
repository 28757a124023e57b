"""Rows that contradict each other: each rule is one small function."""

from collections import defaultdict
from collections.abc import Iterator

from service.mergequeue.auditing.findings import Finding, Rule
from service.mergequeue.auditing.records import EntryRecord, QueueRows
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import FINAL, EntryState, RunStatus
from service.mergequeue.landing_records import LandingRecord, LandingState

OPEN = frozenset({LandingState.PERMITTED, LandingState.UNKNOWN})
BY_LANDING = frozenset({Reason.LANDED, Reason.LANDED_DIRECTLY})
"""Reasons of MERGED that a landing of this database is behind."""

_HAS_PASSED = {EntryState.TESTING: False, EntryState.TESTS_PASSED: True}


def findings(rows: QueueRows) -> Iterator[Finding]:
    """Apply every rule to the rows of a queue."""
    for rule in _RULES:
        yield from rule(rows)


def _endings(rows: QueueRows) -> Iterator[Finding]:
    for row in rows.entries:
        if row.live is (row.state in FINAL):
            where = "in the queue" if row.live else "out of the queue"
            text = f"the submission {row.id} of #{row.pr} is {row.state} and {where}"
            yield Finding(Rule.ENDED_BUT_LIVE, text, row.pr)


def _ended_in_live_runs(rows: QueueRows) -> Iterator[Finding]:
    for row in rows.entries:
        run = rows.runs.get(row.run or "")
        if not row.live and run is not None and run.live:
            text = f"the submission {row.id} of #{row.pr} is {row.state}, and run {run.id} goes on"
            yield Finding(Rule.ENDED_IN_LIVE_RUN, text, row.pr)


def _runs_of_entries(rows: QueueRows) -> Iterator[Finding]:
    """An entry under test has a live run, and what it says of the run is so."""
    for row in rows.entries:
        has_passed = _HAS_PASSED.get(row.state)
        if not row.live or has_passed is None:
            continue
        name = row.verified_by if has_passed else row.run
        run = rows.runs.get(name or "")
        if run is None or not run.live:
            text = f"#{row.pr} is {row.state}, and run {name or '(none)'} is not under way"
            yield Finding(Rule.RUN_MISSING, text, row.pr)
        elif has_passed is not (run.status is RunStatus.SUCCEEDED):
            text = f"#{row.pr} is {row.state}, and run {run.id} is {run.status}"
            yield Finding(Rule.RUN_DISAGREES, text, row.pr)


def _once_in_the_line(rows: QueueRows) -> Iterator[Finding]:
    numbers: set[int] = set()
    ranks: dict[int, EntryRecord] = {}
    for row in rows.entries:
        if not row.live:
            continue
        if row.pr in numbers:
            text = f"#{row.pr} is in the queue twice"
            yield Finding(Rule.TWO_LIVE_ENTRIES, text, row.pr)
        numbers.add(row.pr)
        other = row if row.rank is None else ranks.setdefault(row.rank, row)
        if other is not row:
            text = f"#{other.pr} and #{row.pr} have place {row.rank}"
            yield Finding(Rule.TWO_OF_ONE_RANK, text, row.pr)


def _members(rows: QueueRows) -> Iterator[Finding]:
    known = {row.id for row in rows.entries}
    for member in rows.members:
        if member.entry not in known:
            text = f"run {member.run} tests the submission {member.entry} of #{member.pr}"
            yield Finding(Rule.MEMBER_WITHOUT_ENTRY, f"{text}, which no row has", member.pr)


def _deleted(rows: QueueRows) -> Iterator[Finding]:
    live = sum(row.live for row in rows.entries) + sum(run.live for run in rows.runs.values())
    if rows.deleted and live:
        text = f"the queue is deleted, and has {live} submissions and runs"
        yield Finding(Rule.DELETED_BUT_LIVE, text)


def _permits(rows: QueueRows) -> Iterator[Finding]:
    """Open permits: of one landing, the one in flight, whose run is under way."""
    opened = [row for row in rows.landings if row.state in OPEN]
    for row in opened:
        run = rows.runs.get(row.run)
        if run is None or not run.live:
            text = f"the landing of #{row.pr} is {row.state}, and run {row.run} has ended"
            yield Finding(Rule.PERMIT_OF_ENDED_RUN, text, row.pr)
        elif rows.landing != (row.run, row.number):
            text = f"the landing of #{row.pr} is {row.state}, and is not the one in flight"
            yield Finding(Rule.PERMIT_WITHOUT_LANDING, text, row.pr)
    if len({(row.run, row.number) for row in opened}) > 1:
        numbers = ", ".join(f"#{row.pr}" for row in opened)
        yield Finding(Rule.TWO_OPEN_PERMITS, f"the landings of {numbers} are open at once")
    flies = rows.landing
    if flies is not None and not any((row.run, row.number) == flies for row in rows.landings):
        text = f"landing {flies[1]} of run {flies[0]} is in flight, and has no rows"
        yield Finding(Rule.LANDING_WITHOUT_ROWS, text)


def _landed_entries(rows: QueueRows) -> Iterator[Finding]:
    """Each landing has a MERGED submission, and the other way round."""
    ends: dict[str, list[LandingRecord]] = defaultdict(list)
    for landing in rows.landings:
        if landing.state in (LandingState.LANDED, LandingState.MISMATCH):
            ends[landing.entry].append(landing)
    for row in rows.entries:
        found = ends.get(row.id, [])
        by_us = row.state is EntryState.MERGED and row.reason in BY_LANDING
        if by_us and not found:
            text = f"the submission {row.id} of #{row.pr} is MERGED as {row.reason}"
            yield Finding(Rule.MERGED_WITHOUT_LANDING, f"{text}, without a landing", row.pr)
        proved = [one for one in found if one.state is LandingState.LANDED]
        if proved and row.state is not EntryState.MERGED:
            text = f"#{row.pr} landed as {proved[0].landed_sha}, and is {row.state}"
            yield Finding(Rule.LANDED_WITHOUT_MERGED, text, row.pr, proved[0].landed_sha)
        elif proved and row.landed_sha not in (None, proved[-1].landed_sha):
            text = f"#{row.pr} is MERGED as {row.landed_sha}, and landed as"
            sha = proved[-1].landed_sha
            yield Finding(Rule.LANDED_COMMIT_DIFFERS, f"{text} {sha}", row.pr, sha)


def _effects(rows: QueueRows) -> Iterator[Finding]:
    for row in rows.effects:
        if row.is_open is not (row.state in _OPEN_EFFECTS):
            text = f"effect {row.id} ({row.kind}) is {row.state} and {_word(row.is_open)}"
            yield Finding(Rule.EFFECT_OPEN_OR_ENDED, text)
        elif row.state == "sent" and row.claimed_by not in rows.instances:
            text = (
                f"effect {row.id} ({row.kind}) is being sent by {row.claimed_by}, which no row has"
            )
            yield Finding(Rule.SENT_WITHOUT_INSTANCE, text)


_OPEN_EFFECTS = frozenset({"ready", "sent", "unknown"})


def _word(is_open: bool) -> str:
    return "open" if is_open else "settled"


_RULES = (
    _endings,
    _ended_in_live_runs,
    _runs_of_entries,
    _once_in_the_line,
    _members,
    _deleted,
    _permits,
    _landed_entries,
    _effects,
)
