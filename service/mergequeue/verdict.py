"""What the reports on a run's commit mean (ENGINE.md 6). Decides, changes nothing."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from service.mergequeue.model import Named, Run
from service.mergequeue.reasons import Cause
from service.mergequeue.states import RunPhase, RunStatus
from service.vocabulary import Check, CheckKind, CheckOutcome, Explanation, RequiredName

SETTLE = timedelta(seconds=10)
"""A failed check is final after this time without a newer attempt of it."""

EVIDENCE_WAIT = timedelta(seconds=90)
"""How long a failure waits for what the flaky half knows."""

STARTUP_FAILURE = "startup_failure"

_WORST_FIRST: tuple[CheckOutcome | None, ...] = (
    CheckOutcome.FAILED,
    CheckOutcome.RUNNING,
    CheckOutcome.UNKNOWN,
    CheckOutcome.BLOCKED,
    CheckOutcome.INTERRUPTED,
    None,
    CheckOutcome.PASSED,
)
_WAITING = frozenset({CheckOutcome.RUNNING, CheckOutcome.UNKNOWN, CheckOutcome.BLOCKED})


class Word(StrEnum):
    """What a run's reports say. FLAWED: it ended for nobody's fault."""

    PASSED = "passed"
    EXCUSED = "excused"
    WAITING = "waiting"
    FLAWED = "flawed"
    FAILED = "failed"
    BASE_RED = "base_red"


@dataclass(frozen=True, slots=True)
class Standing:
    """How one required status stands: the worst of the reports that count; None: missing."""

    required: RequiredName
    outcome: CheckOutcome | None
    check: Check | None

    @property
    def named(self) -> Named:
        """The status with its page, as evidence."""
        return Named(self.required.name, self.check.url if self.check else "")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The word, and what goes with it.

    `cause` of a flaw or a timeout, `failed` statuses as evidence, `excused` names; while
    waiting `until` is when time alone changes the word, `ask` names failed checks about which
    the flaky half has to be asked.
    """

    word: Word
    cause: Cause | None = None
    failed: tuple[Named, ...] = ()
    excused: tuple[str, ...] = ()
    until: datetime | None = None
    ask: tuple[str, ...] = ()

    @property
    def is_green(self) -> bool:
        """Whether the run may count as passed."""
        return self.word in (Word.PASSED, Word.EXCUSED)


def verdict_of(run: Run, now: datetime, sends_results: bool) -> Verdict:
    """Judge a run that is being tested or was, by its required statuses and its clocks.

    The first cause of ENGINE.md 6 that matches. A run that took an earlier result over, or had
    nothing to test, is green as long as it lives.
    """
    if run.contained or run.reused_from is not None:
        return Verdict(Word.PASSED)
    standings = standings_of(run)
    failing = [one for one in standings if one.outcome is CheckOutcome.FAILED]
    if not failing:
        return _without_failure(run, standings, now, ())
    settled = (run.failed_at or now) + SETTLE
    if now < settled:
        return Verdict(Word.WAITING, until=settled)
    if sends_results and not _is_explained(run, failing):
        if run.asked_evidence is None:
            return Verdict(Word.WAITING, ask=_names(failing), until=now + EVIDENCE_WAIT)
        if now < run.asked_evidence + EVIDENCE_WAIT:
            return Verdict(Word.WAITING, until=run.asked_evidence + EVIDENCE_WAIT)
    return _with_failures(run, standings, failing, now)


def standings_of(run: Run) -> tuple[Standing, ...]:
    """Every required status of the run with the worst report that counts (GITHUB.md 4.2).

    A report of an earlier attempt counts as missing until its own suite reports anew: dropped,
    it would leave the word to another suite's report of that name.
    """
    counting = newest(run.checks)
    old = frozenset(run.rerun_ids)
    return tuple(standing(required, counting, old) for required in run.required)


def standing(
    required: RequiredName, counting: tuple[Check, ...], old: frozenset[str] = frozenset()
) -> Standing:
    """The worst of the counting reports of one required status; with a pin, of that App alone."""
    own = [
        check
        for check in counting
        if check.name == required.name and required.source_id in (None, check.source_id)
    ]
    for outcome in _WORST_FIRST:
        for check in own:
            if (None if check.id in old else check.outcome) is outcome:
                return Standing(required, outcome, check)
    return Standing(required, None, None)


def failed_of(run: Run) -> tuple[Named, ...]:
    """The statuses that failed a run, as evidence; of one that timed out also the unfinished."""
    return tuple(
        one.named
        for one in standings_of(run)
        if one.outcome is CheckOutcome.FAILED
        or (run.cause is Cause.TIMEOUT and one.outcome is not CheckOutcome.PASSED)
    )


def newest(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Reports without those that a later one of the same source, group and name replaces."""
    latest: dict[tuple[str, ...], Check] = {}
    for check in checks:
        source = check.source_id or ""
        if check.kind is CheckKind.STATUS:
            key: tuple[str, ...] = ("status", source, check.name)
        else:
            key = ("run", source, check.group, check.name)
        known = latest.get(key)
        if known is None or _order(check) > _order(known):
            latest[key] = check
    return tuple(latest.values())


def with_clocks(before: Run, after: Run, now: datetime) -> Run:
    """The run after its reports or required names changed, with the failure clock set.

    The clock runs on while a report that failed before fails still; a failure that is new asks
    for new evidence.
    """
    old, new = _failing_ids(before), _failing_ids(after)
    if not new:
        return replace(after, failed_at=None, asked_evidence=None, evidence=None)
    since = after.failed_at if after.failed_at is not None and old & new else now
    if new <= old:
        return replace(after, failed_at=since)
    return replace(after, failed_at=since, asked_evidence=None, evidence=None)


def _order(check: Check) -> tuple[int, str]:
    # Ids are digits without leading zeros: a longer one is a later one.
    return len(check.id), check.id


def _failing_ids(run: Run) -> set[str]:
    if not run.checks:
        return set()
    return {
        one.check.id
        for one in standings_of(run)
        if one.outcome is CheckOutcome.FAILED and one.check is not None
    }


def _names(standings: Iterable[Standing]) -> tuple[str, ...]:
    return tuple(sorted({one.required.name for one in standings}))


def _is_explained(run: Run, failing: list[Standing]) -> bool:
    evidence = run.evidence
    return evidence is not None and all(
        one.required.name in evidence.explanations for one in failing
    )


def _explanation(run: Run, one: Standing) -> Explanation:
    evidence = run.evidence
    if evidence is not None and one.required.name in evidence.explanations:
        return evidence.explanations[one.required.name]
    if one.check is not None and one.check.raw == STARTUP_FAILURE:
        return Explanation.INFRA
    return Explanation.UNEXPLAINED


def _with_failures(
    run: Run, standings: tuple[Standing, ...], failing: list[Standing], now: datetime
) -> Verdict:
    said = {_explanation(run, one) for one in failing}
    failed = tuple(one.named for one in failing)
    if said == {Explanation.QUARANTINED}:
        return _without_failure(run, standings, now, _names(failing))
    if said == {Explanation.INFRA}:
        return Verdict(Word.FLAWED, cause=Cause.INFRA, failed=failed)
    if Explanation.UNEXPLAINED not in said:
        if Explanation.BASE_RED in said:
            return Verdict(Word.BASE_RED, cause=Cause.BASE_RED, failed=failed)
        if run.config.flaky_knowledge_enabled:
            return Verdict(Word.FLAWED, cause=Cause.KNOWN_FLAKY, failed=failed)
    return Verdict(Word.FAILED, failed=failed)


def _without_failure(
    run: Run, standings: tuple[Standing, ...], now: datetime, excused: tuple[str, ...]
) -> Verdict:
    """Judge the rest, when nothing failed but what is excused."""
    rest = [one for one in standings if one.required.name not in excused]
    open_ones = [one for one in rest if one.outcome is not CheckOutcome.PASSED]
    if not open_ones:
        return Verdict(Word.EXCUSED if excused else Word.PASSED, excused=excused)
    outcomes = {one.outcome for one in open_ones}
    named = tuple(one.named for one in open_ones)
    if CheckOutcome.INTERRUPTED in outcomes and CheckOutcome.RUNNING not in outcomes:
        return Verdict(Word.FLAWED, cause=Cause.INTERRUPTED, failed=named)
    if run.phase is RunPhase.BUILDING or run.status is RunStatus.FAILED:
        return Verdict(Word.WAITING)
    never = _start_limit(run) if None in outcomes else None
    if never is not None and never <= now:
        missing = tuple(one.named for one in open_ones if one.outcome is None)
        return Verdict(Word.FLAWED, cause=Cause.NEVER_STARTED, failed=missing)
    limit = _time_limit(run)
    if limit <= now:
        return Verdict(Word.FAILED, cause=Cause.TIMEOUT, failed=named)
    return Verdict(Word.WAITING, until=min(limit, never) if never else limit)


def _start_limit(run: Run) -> datetime | None:
    """When a missing status counts as never started; None while something is under way."""
    if not run.checks_complete or any(check.outcome in _WAITING for check in run.checks):
        return None
    begun = run.start_clock or run.created_at
    last = max(begun, run.last_report_at or begun)
    return last + timedelta(minutes=run.config.check_start_timeout_minutes)


def _time_limit(run: Run) -> datetime:
    # A run whose checks begin again for nobody's fault gets the whole time again: else a late
    # trouble of the CI would end as a timeout of the pull request.
    begun = run.rerun_at or run.built_at or run.created_at
    return begun + timedelta(minutes=run.config.testing_timeout_minutes)
