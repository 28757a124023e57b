"""Judge the reports on a run's commit (docs/design/testing.md 4). Decides, changes nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from service import check_reports
from service.check_reports import NOT_RUN
from service.mergequeue.engine.culprits import suites
from service.mergequeue.engine.model import Entry, Member, Named, Run
from service.mergequeue.engine.reasons import Cause
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.reported import Doomed, FailedBefore
from service.mergequeue.engine.states import RunKind, RunPhase, RunStatus
from service.vocabulary import Check, CheckKind, CheckOutcome, Explanation, Foreign, RequiredName

SETTLE = timedelta(seconds=10)
"""A failed check is final after this time without a newer attempt of it."""

EVIDENCE_WAIT = timedelta(seconds=90)
"""The time that a failure waits for what the flaky half knows."""

EMPTY_SUITE_WAIT = timedelta(minutes=2)
"""The time that a pass waits for an unfinished check suite that has no check run yet."""

NO_CHECK_WARNING = timedelta(minutes=5)
"""The time that a run may have no report at all before its texts warn."""

START_WARNING_SHARE = 2 / 3
"""Part of the start timeout after which texts warn about a required check without a report."""

STARTUP_FAILURE = "startup_failure"

_WORST_FIRST: tuple[CheckOutcome | None, ...] = (
    CheckOutcome.FAILED,
    CheckOutcome.RUNNING,
    CheckOutcome.UNKNOWN,
    CheckOutcome.BLOCKED,
    CheckOutcome.INTERRUPTED,
    None,
    CheckOutcome.PASSED,
    # A name that ran in one suite and was skipped in another has run.
    CheckOutcome.SKIPPED,
)
_WAITING = frozenset({CheckOutcome.RUNNING, CheckOutcome.UNKNOWN, CheckOutcome.BLOCKED})
_DONE = frozenset({CheckOutcome.PASSED, CheckOutcome.SKIPPED})
_ENDED = _DONE | {CheckOutcome.FAILED}


_Suite = tuple[str | None, str]
"""A check suite: its App and its id."""


class Word(StrEnum):
    """The meanings of a run's reports.

    FLAWED: it ended for no fault of the entries. NO_EVIDENCE: it ended, and proves nothing.
    """

    PASSED = "passed"
    EXCUSED = "excused"
    WAITING = "waiting"
    FLAWED = "flawed"
    FAILED = "failed"
    BASE_RED = "base_red"
    NO_EVIDENCE = "no_evidence"


@dataclass(frozen=True, slots=True)
class Standing:
    """Return the worst outcome of the reports that count for a required status; None: missing.

    `is_revoked`: a report passed and counts as failed (`Run.revoked`). `cause`: the job of the same
    suite that has this outcome, and for which CI skipped the check. `foreign`: the newest report of
    the name that does not count, while there is none that does. `doom`: it has not ended, and
    cannot pass any more (docs/design/early-failures.md 2). `after`: the jobs of its suite that had
    failed before it.
    """

    required: RequiredName
    outcome: CheckOutcome | None
    check: Check | None
    is_revoked: bool = False
    cause: Check | None = None
    foreign: Check | None = None
    doom: Doomed | None = None
    after: FailedBefore | None = None

    @property
    def named(self) -> Named:
        """The status with its page, as evidence."""
        if self.doom is not None:
            return Named(self.required.name, self.doom.url, doom=self.doom)
        if self.check is None:
            other = self.foreign
            if other is None:
                return Named(self.required.name, "")
            who = Foreign(other.kind, other.source_id, other.author, self.required)
            return Named(self.required.name, other.url, foreign=who)
        if self.outcome in _DONE or self.check.raw not in NOT_RUN:
            is_told = self.check.raw in NOT_RUN or check_reports.is_queued(self.check)
            raw = self.check.raw if is_told else ""
            return Named(self.required.name, self.check.url, raw=raw, after=self.after)
        if self.cause is None:
            return Named(self.required.name, self.check.url, because="")
        return Named(self.required.name, self.cause.url, because=self.cause.name)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The word, and its evidence.

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
        """Return whether the run may count as passed."""
        return self.word in (Word.PASSED, Word.EXCUSED)


def verdict_of(
    run: Run, now: datetime, sends_results: bool, skippable: frozenset[str] = frozenset()
) -> Verdict:
    """Judge a run that is being tested or was, by its required statuses and its clocks.

    The first cause of docs/design/testing.md 4 that matches. A run that took an earlier result
    over, or had nothing to test, is green as long as it lives. `skippable`: see `skippable_in`.
    """
    if run.contained or run.reused_from is not None:
        return Verdict(Word.PASSED)
    standings = standings_of(run)
    failing = [one for one in standings if one.outcome is CheckOutcome.FAILED]
    if not failing:
        return _without_failure(run, standings, now, _Skips(skippable))
    settled = (run.failed_at or now) + SETTLE
    is_judged = all(one.doom is not None and one.doom.test for one in failing)
    if now < settled:
        # A reported test counts only if no evidence excuses it: the answer is not awaited again.
        is_asked = is_judged and sends_results and run.asked_evidence is None
        return Verdict(Word.WAITING, until=settled, ask=_names(failing) if is_asked else ())
    if sends_results and not is_judged and not _is_explained(run, failing):
        if run.asked_evidence is None:
            return Verdict(Word.WAITING, ask=_names(failing), until=now + EVIDENCE_WAIT)
        if now < run.asked_evidence + EVIDENCE_WAIT:
            return Verdict(Word.WAITING, until=run.asked_evidence + EVIDENCE_WAIT)
    return _with_failures(run, standings, failing, now, skippable)


def skippable_in(
    run: Run, entries: Mapping[int, Entry], ran_lately: frozenset[str]
) -> frozenset[str]:
    """Return the names whose skipped reports count in this run (docs/design/skipped-checks.md 1).

    A name may be skipped on a test branch if the own head of every pull request that the run
    proves skipped it as well, and it ran lately on what landed: then CI's own conditions, such as
    path filters, left it out for what the pull requests change. The base's members do not count:
    their own runs prove them, and what they touch may have made CI run more than this pull request
    needs. Optional names may be skipped in any case.
    """
    if all(check.outcome is not CheckOutcome.SKIPPED for check in run.checks):
        return frozenset()
    return (_skipped_on_heads(run, entries) & ran_lately) | optional_of(run)


def optional_of(run: Run) -> frozenset[str]:
    """Return the required names that the settings of the run call optional."""
    names = frozenset(required.name for required in run.required)
    return names & frozenset(run.config.optional_statuses)


def ran_in(run: Run) -> frozenset[str]:
    """Return the required names of which a report shows that the check ran, by this run alone."""
    ran = (CheckOutcome.PASSED, CheckOutcome.FAILED)
    return frozenset(one.required.name for one in standings_of(run) if one.outcome in ran)


def _skipped_on_heads(run: Run, entries: Mapping[int, Entry]) -> frozenset[str]:
    """Return the names that CI skipped on the own head of every pull request of the run."""
    if run.kind is RunKind.DIRECT:
        return frozenset(required.name for required in run.required)
    proved = [entry for member in run.entries if (entry := _live(member, entries)) is not None]
    for member in run.base:
        entry = _live(member, entries)
        if entry is not None and entry.verified_by == run.id:
            proved.append(entry)
    if not proved:
        return frozenset()
    return frozenset.intersection(*(frozenset(entry.facts.own_skipped) for entry in proved))


def skipped_of(run: Run) -> frozenset[str]:
    """Return the required names of which the run has skipped reports only."""
    skipped = CheckOutcome.SKIPPED
    return frozenset(one.required.name for one in standings_of(run) if one.outcome is skipped)


def is_covered(
    checks: tuple[Check, ...], required: tuple[RequiredName, ...], skippable: frozenset[str]
) -> bool:
    """Return whether these reports show that a commit passed everything required of it.

    At least one required check ran; of others CI may have skipped those that are skippable.
    """
    counting = check_reports.counting(checks)
    found = [standing(one, counting) for one in required]
    if any(one.outcome not in _DONE for one in found) or late_suites(checks, required):
        return False
    skipped = [one.required.name for one in found if one.outcome is CheckOutcome.SKIPPED]
    return not required or (skippable.issuperset(skipped) and len(skipped) < len(found))


def standings_of(run: Run) -> tuple[Standing, ...]:
    """Every required status of the run with the worst report that counts.

    A report of an earlier attempt counts as missing until its own suite reports anew: dropped,
    it would leave the word to another suite's report of that name. One that has not ended counts
    as failed if it cannot pass any more.

    See docs/design/provider.md 8.2; docs/design/early-failures.md 2.
    """
    counting = check_reports.counting(run.checks)
    old = frozenset(run.rerun_ids)
    revoked = frozenset(run.revoked) - old
    found = tuple(standing(required, counting, old, revoked) for required in run.required)
    dooms = {one.required: one for one in reversed(_dooms_of(run, counting))}
    if not dooms:
        return found
    return tuple(_foreseen(run, one, dooms.get(one.required.name)) for one in found)


def _dooms_of(run: Run, counting: tuple[Check, ...]) -> tuple[Doomed, ...]:
    """Return the dooms that hold: whose part does not run again and did not pass after all.

    One whose failure the test results explain says nothing about the end of the check.
    """
    if not run.doomed:
        return ()
    known = {} if run.evidence is None else run.evidence.explanations
    return tuple(
        one
        for one in run.doomed
        if one.check not in run.rerun_ids
        and _is_newest(one, counting)
        and known.get(one.required, Explanation.UNEXPLAINED) is Explanation.UNEXPLAINED
    )


def _is_newest(doom: Doomed, counting: tuple[Check, ...]) -> bool:
    """Return whether no report replaces the one of the failed part, which may not have come yet."""
    own = next((check for check in counting if check.id == doom.check), None)
    if own is not None:
        return own.outcome not in _DONE
    number = (len(doom.check), doom.check)
    jobs = (one for one in counting if (one.name, one.group) == (doom.job, doom.group))
    return all(check_reports.order(job) < number for job in jobs)


def _foreseen(run: Run, one: Standing, doom: Doomed | None) -> Standing:
    """Return the standing as the doom has it, unless the check has ended.

    What stops a failed run also interrupts its checks, which does not clear it.
    """
    is_over = run.status is not RunStatus.FAILED and one.outcome is CheckOutcome.INTERRUPTED
    if doom is None or is_over or one.outcome in _ENDED:
        return one
    return replace(one, outcome=CheckOutcome.FAILED, cause=None, foreign=None, doom=doom)


def fails(run: Run) -> bool:
    """Return whether a required check counts as failed."""
    return any(one.outcome is CheckOutcome.FAILED for one in standings_of(run))


def is_foreseen(run: Run) -> bool:
    """Return whether it fails by required checks alone that have not ended."""
    if run.cause is Cause.TIMEOUT:
        return False
    failed = [one for one in standings_of(run) if one.outcome is CheckOutcome.FAILED]
    return bool(failed) and all(one.doom is not None for one in failed)


def shows_failure(run: Run) -> bool:
    """Return whether a required check reports a failure now, or the run took too long.

    Not if it was only foreseen, or if the failed check runs again (docs/design/testing.md 8.2).
    """
    if run.is_foreseen or run.cause is Cause.TIMEOUT:
        return not run.is_foreseen
    failed = (one for one in standings_of(run) if one.outcome is CheckOutcome.FAILED)
    return any(one.doom is None for one in failed)


def standing(
    required: RequiredName,
    counting: tuple[Check, ...],
    old: frozenset[str] = frozenset(),
    revoked: frozenset[str] = frozenset(),
) -> Standing:
    """The worst of the reports that count for one required status; with a pin, of that App alone.

    A pass with an id in `revoked` is a failure, which no other report of the name hides.
    """
    own = required.counted(counting)
    for check in own:
        if check.id in revoked and check.outcome is CheckOutcome.PASSED:
            return Standing(required, CheckOutcome.FAILED, check, is_revoked=True)
    for outcome in _WORST_FIRST:
        for check in own:
            if (None if check.id in old else check.outcome) is outcome:
                cause = suites.cause_of(check, counting)
                after = suites.failed_before(check, counting, old)
                return Standing(required, outcome, check, cause=cause, after=after)
    foreign = [
        check
        for check in counting
        if check.name == required.name and check.kind is not CheckKind.SUITE
    ]
    other = max(foreign, key=check_reports.order, default=None) if not own else None
    return Standing(required, None, None, foreign=other)


def failed_of(run: Run) -> tuple[Named, ...]:
    """The statuses that failed a run, as evidence; of one that timed out also the unfinished."""
    return tuple(
        one.named
        for one in standings_of(run)
        if one.outcome is CheckOutcome.FAILED
        or (run.cause is Cause.TIMEOUT and one.outcome not in _DONE)
    )


def revoked_of(run: Run) -> tuple[str, ...]:
    """The required names that passed and count as failed."""
    return tuple(one.required.name for one in standings_of(run) if one.is_revoked)


def with_clocks(before: Run, after: Run, now: datetime) -> Run:
    """The run after its reports or required names changed, with the failure clock set.

    The clock runs on while a report that failed before fails still, and when a check reports the
    failure that was foreseen; a failure that is new asks for new evidence.
    """
    old, new = _failures(before), _failures(after)
    if not new:
        return replace(after, failed_at=None, asked_evidence=None, evidence=None)
    foreseen = {one.required.name for one in old.values() if one.doom is not None}
    goes_on = old.keys() & new.keys() or foreseen & {one.required.name for one in new.values()}
    since = after.failed_at if after.failed_at is not None and goes_on else now
    if new.keys() <= old.keys():
        return replace(after, failed_at=since)
    return replace(after, failed_at=since, asked_evidence=None, evidence=None)


def _failures(run: Run) -> dict[str, Standing]:
    """Return the failed standings by what shows each: a report, or the part that dooms it.

    Also dooms that evidence has voided: it is kept while they are given, so that the question is
    not asked again.
    """
    if not run.checks and not run.doomed:
        return {}
    failures: dict[str, Standing] = {}
    for one in standings_of(replace(run, evidence=None) if run.doomed else run):
        if one.outcome is CheckOutcome.FAILED and one.doom is not None:
            failures[f"{one.required.name} by {one.doom.check}"] = one
        elif one.outcome is CheckOutcome.FAILED and one.check is not None:
            failures[one.check.id] = one
    return failures


def _names(standings: Iterable[Standing]) -> tuple[str, ...]:
    return tuple(sorted({one.required.name for one in standings}))


def _is_explained(run: Run, failing: list[Standing]) -> bool:
    explained = {} if run.evidence is None else run.evidence.explanations
    return all(one.is_revoked or one.required.name in explained for one in failing)


def _explanation(run: Run, one: Standing) -> Explanation:
    evidence = run.evidence
    if one.is_revoked:
        return Explanation.UNEXPLAINED
    if evidence is not None and one.required.name in evidence.explanations:
        return evidence.explanations[one.required.name]
    if one.check is not None and one.check.raw == STARTUP_FAILURE:
        return Explanation.INFRA
    return Explanation.UNEXPLAINED


def _with_failures(
    run: Run,
    standings: tuple[Standing, ...],
    failing: list[Standing],
    now: datetime,
    skippable: frozenset[str],
) -> Verdict:
    said = {_explanation(run, one) for one in failing}
    failed = tuple(one.named for one in failing)
    if said == {Explanation.QUARANTINED}:
        return _without_failure(run, standings, now, _Skips(skippable, _names(failing)))
    if said == {Explanation.INFRA}:
        return Verdict(Word.FLAWED, cause=Cause.INFRA, failed=failed)
    if Explanation.UNEXPLAINED not in said:
        if Explanation.BASE_RED in said:
            return Verdict(Word.BASE_RED, cause=Cause.BASE_RED, failed=failed)
        if run.config.flaky_knowledge_enabled:
            return Verdict(Word.FLAWED, cause=Cause.KNOWN_FLAKY, failed=failed)
    return Verdict(Word.FAILED, failed=failed)


@dataclass(frozen=True, slots=True)
class _Skips:
    """Names that need no passed report: their skips count, or their failures are excused."""

    skippable: frozenset[str]
    excused: tuple[str, ...] = ()


def _without_failure(
    run: Run, standings: tuple[Standing, ...], now: datetime, skips: _Skips
) -> Verdict:
    """Judge the rest, when nothing failed but what is excused."""
    rest = [one for one in standings if one.required.name not in skips.excused]
    open_ones = [one for one in rest if one.outcome not in _DONE]
    if not open_ones:
        return _complete(run, rest, now, skips)
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
    if limit <= now and not _is_under_way(run, open_ones):
        return Verdict(Word.FLAWED, cause=Cause.NEVER_STARTED, failed=named)
    if limit <= now:
        return Verdict(Word.FAILED, cause=Cause.TIMEOUT, failed=named)
    return Verdict(Word.WAITING, until=min(limit, never) if never else limit)


def _is_under_way(run: Run, open_ones: list[Standing]) -> bool:
    """Return whether what a run waits for has begun: CI that is busy is no fault of its entries.

    A check without a report may wait for others of the run, so these speak for it.
    """
    own = [one.check for one in open_ones if one.check is not None]
    if len(own) < len(open_ones):
        own += [check for check in run.checks if check.outcome in _WAITING]
    return not own or not all(map(check_reports.is_queued, own))


def _complete(run: Run, rest: list[Standing], now: datetime, skips: _Skips) -> Verdict:
    """Judge a run whose required statuses have ended: at least one ran, and every skip counts."""
    waits_until = _suites_until(run)
    if waits_until is not None and now < waits_until:
        return Verdict(Word.WAITING, until=waits_until)
    if _may_report_anew(run, rest) and now < _time_limit(run):
        return Verdict(Word.WAITING, until=_time_limit(run))
    skipped = [one for one in rest if one.outcome is CheckOutcome.SKIPPED]
    has_run = bool(skips.excused) or len(skipped) < len(rest)
    unproved = [one for one in skipped if one.required.name not in skips.skippable]
    if skipped and (unproved or not has_run):
        settled = (run.last_report_at or now) + SETTLE
        if now < settled:
            return Verdict(Word.WAITING, until=settled)
        failed = tuple(one.named for one in unproved or skipped)
        return Verdict(Word.NO_EVIDENCE, cause=Cause.NO_EVIDENCE, failed=failed)
    return Verdict(Word.EXCUSED if skips.excused else Word.PASSED, excused=skips.excused)


def _may_report_anew(run: Run, rest: list[Standing]) -> bool:
    """Return whether passed checks may run again with those that a run repeats, as they need them.

    Until their suites have ended (docs/design/second-looks.md).
    """
    if run.repeats is None:
        return False
    suites = {(one.check.source_id, one.check.group) for one in rest if one.check is not None}
    return any(
        check.kind is CheckKind.SUITE and (check.source_id, check.group) in suites
        for check in run.checks
    )


def _suites_until(run: Run) -> datetime | None:
    """Return until when a pass waits for unfinished suites; None if there are none to wait for.

    A suite whose jobs run is awaited for as long as a required check may take to start, an
    empty one for less: many Apps get a suite for each push that they never use.
    """
    late = late_suites(run.checks, run.required)
    if not late:
        return None
    has_jobs = any(names for names in late.values())
    patience = timedelta(minutes=run.config.check_start_timeout_minutes)
    wait = max(patience, EMPTY_SUITE_WAIT) if has_jobs else EMPTY_SUITE_WAIT
    return min((run.last_report_at or run.created_at) + wait, _time_limit(run))


def late_suites(
    checks: tuple[Check, ...], required: tuple[RequiredName, ...]
) -> dict[_Suite, frozenset[str]]:
    """Return the unfinished suites that may still report a required name, with their job names.

    Two triggers start one workflow twice, in two suites with the same names. So a suite is
    awaited if it has no report of the name yet, and all of its jobs are also in a suite of the
    same App that has one. A suite with other jobs belongs to another workflow.
    """
    names: dict[_Suite, set[str]] = {}
    is_open: set[_Suite] = set()
    for check in checks:
        suite = (check.source_id, check.group)
        if check.kind is CheckKind.SUITE:
            is_open.add(suite)
        elif check.kind is CheckKind.SUITE_RUN:
            names.setdefault(suite, set()).add(check.name)
    late: dict[_Suite, frozenset[str]] = {}
    for one in required if is_open else ():
        carriers = {
            suite
            for suite, jobs in names.items()
            if one.name in jobs and one.source_id in (None, suite[0]) and one.account is None
        }
        for suite in is_open - carriers:
            jobs = names.get(suite, set())
            if any(suite[0] == other[0] and jobs <= names[other] for other in carriers):
                late[suite] = frozenset(jobs)
    return late


def warns_at(run: Run) -> datetime | None:
    """Return from when texts warn about missing reports; None if there is nothing to warn of."""
    since = run.start_clock or run.built_at
    if run.phase is not RunPhase.TESTING or since is None:
        return None
    if not run.checks:
        return since + NO_CHECK_WARNING
    if not run.checks_complete or not silent_of(run):
        return None
    patience = timedelta(minutes=run.config.check_start_timeout_minutes) * START_WARNING_SHARE
    return max(since, run.last_report_at or since) + patience


def silent_of(run: Run) -> tuple[RequiredName, ...]:
    """Return the required statuses without any report that counts for them."""
    return tuple(one for one in run.required if not any(map(one.admits, run.checks)))


def gives_up_at(run: Run) -> datetime:
    """Return when a run fails because a required status is late."""
    never = _start_limit(run) if silent_of(run) else None
    return min(_time_limit(run), never) if never is not None else _time_limit(run)


def _live(member: Member, entries: Mapping[int, Entry]) -> Entry | None:
    entry = entries.get(member.pr)
    return entry if entry is not None and entry.id == member.entry else None


def _start_limit(run: Run) -> datetime | None:
    """Return when a missing status counts as never started; None while something is under way."""
    reports = [check for check in run.checks if check.kind is not CheckKind.SUITE]
    if not run.checks_complete or any(check.outcome in _WAITING for check in reports):
        return None
    begun = run.start_clock or run.created_at
    last = max(begun, run.last_report_at or begun)
    return last + timedelta(minutes=run.config.check_start_timeout_minutes)


def _time_limit(run: Run) -> datetime:
    # A run whose checks begin again for no fault of its entries gets the whole time again: a late
    # failure of CI must not end as a timeout of the pull request.
    begun = run.rerun_at or run.built_at or run.created_at
    return begun + timedelta(minutes=run.config.testing_timeout_minutes)
