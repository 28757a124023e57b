"""Foresee that a required check fails, while its CI still runs (docs/design/early-failures.md).

A failure is foreseen if the workflow files of the target branch say that a failed part dooms the
check, the provider shows that part as failed in a CI run on the run's commit, and the queue's own
runs have confirmed the rule. What a check came to teaches.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from service import check_reports
from service.mergequeue import early_rules
from service.mergequeue.early_rules import Ending, PartKind, Rule
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.culprits.verdict import Standing
from service.mergequeue.engine.inputs import FailureForeseen
from service.mergequeue.engine.model import MergeQueue, Run
from service.mergequeue.engine.planning import repeating
from service.mergequeue.engine.reported import Doomed
from service.mergequeue.engine.states import RunKind, RunStatus
from service.mergequeue.operations import early_lessons, run_reports, turn
from service.mergequeue.operations.early_memory import Looks
from service.mergequeue.operations.turn import QueueGone
from service.mergequeue.store import failed_parts as store
from service.mergequeue.store import queues
from service.mergequeue.store.failed_parts import SeenPart
from service.provider.ci import CiProgress, FailedPart
from service.provider.ci_plans import CiPlan
from service.provider.errors import ProviderError
from service.runtime import Runtime
from service.vocabulary import Check, CheckKind, CheckOutcome, QueueRef, RequiredName, Sha

DOOMED_MAX = 20
"""Parts that the engine is told of at a time; a matrix may have more jobs that fail."""

SUITES_MAX = 5
"""Suites of a commit whose jobs one look reads: one call for each, and one for the list."""

POLL_GAIN_MIN_S = 30.0
"""Steps are polled where they foresee a failure at least so long before its check has ended."""

RULES_FOR = timedelta(seconds=60)
"""The time for which this process keeps the rules of a queue that it has not changed itself."""

LEFT_OPEN_AFTER = timedelta(minutes=10)
LEFT_OPEN_FOR = timedelta(days=1)
LEFT_OPEN_MAX = 20
"""Parts whose runs are gone: one sweep reads the checks of so many, for a day."""

COUNTER = "headgate_failures_foreseen_total"
POLLS = "headgate_ci_polls_total"

_OPEN = frozenset({None, CheckOutcome.RUNNING})
_FIRST_LOOKS = frozenset({RunKind.MAIN, RunKind.HEDGE})
_ENDED: Mapping[CheckOutcome | None, Ending] = {
    CheckOutcome.FAILED: Ending.HELD,
    CheckOutcome.PASSED: Ending.REFUTED,
}

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Sight:
    """A run under test, with what its reports say of it now.

    `reports` are the check runs that count, by id. `open` and `ended` are the required checks: one
    that was foreseen and then interrupted is open, because we may have stopped its CI.
    """

    queue: QueueRef
    value: MergeQueue
    run: Run
    reports: Mapping[str, Check]
    open: tuple[RequiredName, ...]
    ended: tuple[Standing, ...]
    now: datetime

    @property
    def attempt(self) -> tuple[int, str, int]:
        return (self.queue.id, self.run.id, self.run.attempt)

    @property
    def is_under_test(self) -> bool:
        """Return whether the run may still fail, or be taken back."""
        return self.run.status in (RunStatus.IN_PROGRESS, RunStatus.FAILED)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that have failed themselves."""
        return tuple(
            one
            for one in self.reports.values()
            if one.outcome is CheckOutcome.FAILED and one.raw not in check_reports.NOT_RUN
        )

    @property
    def running(self) -> tuple[Check, ...]:
        return tuple(one for one in self.reports.values() if one.outcome is CheckOutcome.RUNNING)


async def look(runtime: Runtime, queue: QueueRef, run_id: str, *, is_poll: bool = False) -> None:
    """Judge by the present reports of a run which required checks cannot pass any more.

    Tells the engine if that has changed, and learns from required checks that have ended. Reads
    the jobs of CI only where a failed check is new, a check has ended, or `is_poll`. A provider
    that does not answer changes nothing: the next event or sweep looks again.
    """
    try:
        sight = await _sight_of(runtime, queue, run_id)
        if sight is None:
            return
        if not sight.value.config.early_failures:
            if sight.is_under_test:
                await _tell(runtime, sight, (), ())
            return
        await _learn(runtime, sight)
        if sight.is_under_test:
            await _foresee(runtime, sight, is_poll=is_poll)
    except QueueGone:
        return
    except ProviderError as trouble:
        # GitHub did not answer; nothing is foreseen or learned until the next look.
        log.warning("early_look_failed", queue=queue.id, run=run_id, why=trouble.message)


async def heard(runtime: Runtime, queue: QueueRef, run_id: str, failed: FailedPart) -> None:
    """Take up that a part of one proved job of a run has failed; the job may still run.

    The caller has proved the job (docs/design/provenance.md 2): `failed.check` is its check run.
    Raises the provider's errors.
    """
    sight = await _sight_of(runtime, queue, run_id)
    if sight is None or not sight.is_under_test or not sight.value.config.early_failures:
        return
    if failed.check not in sight.reports:
        report = await run_reports.checks_of(runtime, queue, sight.run)
        await turn.take(runtime, queue.id, [report])
        sight = await _sight_of(runtime, queue, run_id)
    check = None if sight is None else sight.reports.get(failed.check)
    if sight is None or check is None or check.name != failed.job:
        return
    plan = await _plan_of(runtime, sight)
    for progress in await _progress(runtime, sight, [check.group]) if plan is not None else ():
        if plan is not None and any(job.id == failed.check for job in progress.jobs):
            seen = _seen(sight, plan, progress, failed, check)
            await runtime.store.run(store.note, queue, seen)
    runtime.memory.of(Looks).heard.put(sight.attempt, True)
    await look(runtime, queue, run_id)


async def withdrawn(runtime: Runtime, queue: QueueRef, run_id: str, failed: FailedPart) -> None:
    """Take back what `heard` took up: the test has passed when it was tried again. Idempotent.

    It counts against the rule, which has told too early. Raises the provider's errors.
    """
    sight = await _sight_of(runtime, queue, run_id)
    if sight is None:
        return
    seen = await runtime.store.read(store.open_of_run, *sight.attempt)
    same = [
        store.ended(one, Ending.REFUTED, sight.now)
        for one in seen
        if one.rule.kind is PartKind.TEST
        and (one.part.check, one.part.test) == (failed.check, failed.test)
    ]
    await runtime.store.run(store.note, queue, same)
    _count(runtime, queue, same)
    await look(runtime, queue, run_id)


def awaits_steps(runtime: Runtime) -> bool:
    """Return whether a queue has a rule for which steps are polled, as far as this process knows.

    Then a check that began is news. Without, nothing is read before a check has ended.
    """
    kept = runtime.memory.of(Looks).rules.values()
    return any(_is_worth_polling(rules) for _, rules in kept)


async def poll_due(runtime: Runtime) -> bool:
    """Read the steps of the runs whose poll is due; return whether there were any."""
    ripe = runtime.memory.of(Looks).due(runtime.clock.now())
    for queue_id, run_id in ripe:
        queue = await runtime.store.read(queues.ref_by_id, queue_id)
        if queue is not None and queue.repo.host in runtime.providers:
            runtime.telemetry.count(POLLS)
            await look(runtime, queue, run_id, is_poll=True)
    return bool(ripe)


def next_poll_at(runtime: Runtime) -> datetime | None:
    """Return when the next poll is due."""
    return min(runtime.memory.of(Looks).polls.values(), default=None)


async def learn_from_ended(runtime: Runtime) -> None:
    """Sweep: read how required checks ended whose runs were over before, at most 20.

    Only a pass says something: the CI of a run that has failed is stopped.
    """
    now = runtime.clock.now()
    window = (now - LEFT_OPEN_FOR, now - LEFT_OPEN_AFTER, LEFT_OPEN_MAX)
    for queue_id, seen in await runtime.store.read(store.left_open, *window):
        queue = await runtime.store.read(queues.ref_by_id, queue_id)
        if queue is None or queue.repo.host not in runtime.providers:
            continue
        if seen.run in (await turn.last_value(runtime, queue_id)).runs:
            continue
        try:
            ending = await _end_of(runtime, queue, seen)
        except ProviderError as trouble:
            # GitHub did not answer; the next sweep reads it again.
            log.warning("early_look_failed", queue=queue_id, run=seen.run, why=trouble.message)
            return
        if ending is not None:
            await _close(runtime, queue, store.ended(seen, ending, now))


async def _end_of(runtime: Runtime, queue: QueueRef, seen: SeenPart) -> Ending | None:
    """Return how a required check ended; None while it runs."""
    provider = runtime.providers[queue.repo.host]
    read = await provider.checks(queue.repo, seen.sha, skipped_pass=True)
    own = [
        one
        for one in check_reports.counting(read.items)
        if one.name == seen.rule.required and one.group == seen.suite
    ]
    outcomes = {one.outcome for one in own}
    if CheckOutcome.RUNNING in outcomes:
        return None
    return Ending.REFUTED if outcomes == {CheckOutcome.PASSED} else Ending.UNKNOWN


async def _sight_of(runtime: Runtime, queue: QueueRef, run_id: str) -> _Sight | None:
    value = await turn.value(runtime, queue.id)
    run = value.runs.get(run_id)
    if run is None or run.kind in (RunKind.DIRECT, RunKind.TIP) or run.sha is None:
        return None
    # The reports of a repeat that has not asked yet are those of the run that it repeats.
    if not run_reports.is_reported_on(run) or repeating.is_waiting(run):
        return None
    reports = {
        one.id: one
        for one in check_reports.counting(run.checks)
        if one.kind is CheckKind.SUITE_RUN and one.id not in run.rerun_ids
    }
    # By the reports alone: what was foreseen before must not prove itself.
    standings = verdict.standings_of(replace(run, doomed=()))
    foreseen = {doom.required for doom in run.doomed}
    return _Sight(
        queue,
        value,
        run,
        reports,
        open=tuple(
            one.required
            for one in standings
            if one.outcome in _OPEN
            or (one.outcome is CheckOutcome.INTERRUPTED and one.required.name in foreseen)
        ),
        ended=tuple(one for one in standings if one.outcome in _ENDED),
        now=runtime.clock.now(),
    )


async def _learn(runtime: Runtime, sight: _Sight) -> None:
    """Store what required checks that have ended teach, once for each attempt."""
    memory = runtime.memory.of(Looks)
    new = [
        one
        for one in sight.ended
        if (*sight.attempt, one.required.name, one.outcome) not in memory.learned
    ]
    for one in new:
        check = one.check
        if check is None or one.is_revoked:
            continue
        await _close_open(runtime, sight, one.required.name, _ENDED[one.outcome])
        beside = any(each.group == check.group for each in sight.failed)
        if check.id in sight.reports and beside:
            await _learn_from(runtime, sight, one)
        memory.learned.put((*sight.attempt, one.required.name, one.outcome), True)


async def _learn_from(runtime: Runtime, sight: _Sight, one: Standing) -> None:
    check = one.check
    plan = await _plan_of(runtime, sight)
    if plan is None or check is None:
        return
    has_passed = one.outcome is CheckOutcome.PASSED
    now = runtime.clock.now()
    for progress in await _progress(runtime, sight, [check.group]):
        name = one.required.name
        lessons = early_lessons.lessons_of(plan, progress, name, check.id, has_passed=has_passed)
        seen = [
            SeenPart(
                *(each.rule, sight.run.id, sight.run.attempt, _sha(sight), each.part),
                *(progress.group, now),
                ending=each.ending,
                early_s=each.early_s,
            )
            for each in lessons
        ]
        await runtime.store.run(store.note, sight.queue, seen)
        _count(runtime, sight.queue, seen)


async def _close_open(runtime: Runtime, sight: _Sight, required: str, ending: Ending) -> None:
    """Store how a required check ended whose failure was foreseen, or of which a test reported."""
    if not _has_open_parts(runtime, sight):
        return
    seen = await runtime.store.read(store.open_of_run, *sight.attempt)
    own = [each for each in seen if each.rule.required == required]
    if own:
        await _close(runtime, sight.queue, store.ended(own[0], ending, runtime.clock.now()))


async def _close(runtime: Runtime, queue: QueueRef, seen: SeenPart) -> None:
    await runtime.store.run(store.close, queue.id, seen)
    _count(runtime, queue, [seen])


def _count(runtime: Runtime, queue: QueueRef, seen: Iterable[SeenPart]) -> None:
    """Count and log what was learned; the next look reads the rules anew."""
    for one in seen:
        runtime.memory.of(Looks).rules.pop(queue.id, None)
        if one.ending is not None and one.ending is not Ending.UNKNOWN:
            runtime.telemetry.count(COUNTER, one.ending)
            rule = one.rule
            # A required check has ended after a part of its CI had failed, which teaches a rule.
            log.info(
                "failure_rule_seen",
                queue=queue.id,
                run=one.run,
                required=rule.required,
                job=rule.job,
                step=rule.step,
                ending=one.ending.value,
            )


def _has_open_parts(runtime: Runtime, sight: _Sight) -> bool:
    return bool(sight.run.doomed) or sight.attempt in runtime.memory.of(Looks).heard


async def _foresee(runtime: Runtime, sight: _Sight, *, is_poll: bool) -> None:
    """Find the parts that doom open required checks, and tell the engine if they differ."""
    memory = runtime.memory.of(Looks)
    rules = await _rules_of(runtime, sight.queue)
    names = {one.name for one in sight.open}
    holding = {rule: early_s for rule, early_s in rules.items() if rule.required in names}
    if not holding:
        await _tell(runtime, sight, (), ())
        return
    # First, so that a read that fails does not end the polls.
    if sight.running and _is_worth_polling(holding):
        memory.plan_poll((sight.queue.id, sight.run.id), runtime.clock.now())
        runtime.wakeups.wake("polls")
    failed = (frozenset(one.id for one in sight.failed), frozenset(names))
    is_new = bool(sight.failed) and memory.seen.get(sight.attempt) != failed
    found: list[SeenPart] = []
    if is_poll or is_new or _has_open_parts(runtime, sight):
        plan = await _plan_of(runtime, sight)
        if plan is not None:
            found = await _parts(runtime, sight, plan, is_poll=is_poll)
            found += await _reported_tests(runtime, sight, plan)
            found = [one for one in found if _counts(sight, plan, one)]
        memory.seen.put(sight.attempt, failed)
        dooms = _dooms(found, holding)
        await _tell(runtime, sight, tuple(doom for doom, _ in dooms), [seen for _, seen in dooms])


def _is_worth_polling(holding: Mapping[Rule, float]) -> bool:
    return any(
        rule.kind is PartKind.STEP and early_s >= POLL_GAIN_MIN_S
        for rule, early_s in holding.items()
    )


async def _parts(runtime: Runtime, sight: _Sight, plan: CiPlan, *, is_poll: bool) -> list[SeenPart]:
    """Return the failed jobs and steps, with the open required checks that they may doom."""
    checks = (*sight.failed, *sight.running) if is_poll or sight.run.doomed else sight.failed
    groups = list(dict.fromkeys(one.group for one in checks))[:SUITES_MAX]
    found: list[SeenPart] = []
    for progress in await _progress(runtime, sight, groups, is_poll=is_poll):
        for job in progress.jobs:
            check = sight.reports.get(job.id)
            if check is None or check.group != progress.group:
                continue
            for part in early_lessons.parts_of(job):
                found += _seen(sight, plan, progress, part, check)
    return found


async def _reported_tests(runtime: Runtime, sight: _Sight, plan: CiPlan) -> list[SeenPart]:
    """Return the tests that a job has reported as failed, as long as their job may still fail."""
    if not _has_open_parts(runtime, sight):
        return []
    seen = await runtime.store.read(store.open_of_run, *sight.attempt)
    found = []
    for one in seen:
        check = sight.reports.get(one.part.check)
        is_failing = check is not None and check.outcome in (
            CheckOutcome.RUNNING,
            CheckOutcome.FAILED,
        )
        if one.rule.kind is PartKind.TEST and is_failing:
            rule = early_lessons.rule_of(plan, one.rule.file, one.rule.required, one.part)
            found += [one] if rule == one.rule else []
    return found


def _seen(
    sight: _Sight, plan: CiPlan, progress: CiProgress, part: FailedPart, check: Check
) -> list[SeenPart]:
    """Return the open required checks of the same CI run that a failed part may doom."""
    part = replace(part, url=part.url or check.url)
    found = []
    for required in sight.open:
        # A report of this App and kind has to count for the name.
        if not required.admits(replace(check, name=required.name)):
            continue
        has_ended = any(
            one.name == required.name and one.group == check.group and one.outcome in _ENDED
            for one in sight.reports.values()
        )
        rule = early_lessons.rule_of(plan, progress.file, required.name, part)
        if rule is not None and not has_ended:
            run = sight.run
            found.append(
                SeenPart(rule, run.id, run.attempt, _sha(sight), part, progress.group, sight.now)
            )
    return found


def _counts(sight: _Sight, plan: CiPlan, one: SeenPart) -> bool:
    """Return whether the rule of a part may be used in this run.

    What only history says is used in the first run of a tree alone: if it is wrong, it is wrong in
    each run of the tree. So a verdict rests on an end (docs/design/early-failures.md 5).
    """
    may = plan.may_doom(one.rule.file, one.rule.required, one.part)
    return may is not None and (may.is_certain or sight.run.kind in _FIRST_LOOKS)


def _dooms(found: Sequence[SeenPart], holding: Collection[Rule]) -> list[tuple[Doomed, SeenPart]]:
    """Return the parts whose rules hold, one for each required check and job, in a stable order."""
    dooms: dict[tuple[str, str], tuple[Doomed, SeenPart]] = {}
    for one in found:
        part = one.part
        key = (one.rule.required, part.check)
        if one.rule in holding and key not in dooms:
            doom = Doomed(
                *(one.rule.required, part.job, part.check, one.suite),
                *(part.step, part.test, part.url),
            )
            dooms[key] = (doom, one)
    return [dooms[key] for key in sorted(dooms)][:DOOMED_MAX]


async def _tell(
    runtime: Runtime, sight: _Sight, doomed: tuple[Doomed, ...], seen: Collection[SeenPart]
) -> None:
    """Report the doomed checks of an attempt to the engine, unless it knows exactly these."""
    run, queue = sight.run, sight.queue
    if doomed == run.doomed:
        return
    now = runtime.clock.now()
    told = [replace(one, is_foreseen=True, at=now) for one in seen]
    await runtime.store.run(store.note, queue, told)
    await turn.take(runtime, queue.id, [FailureForeseen(run.id, run.attempt, doomed)])
    runtime.telemetry.count(COUNTER, "foreseen" if doomed else "withdrawn")
    named = sorted({f"{one.required}: {one.job} {one.step or one.test}".strip() for one in doomed})
    if doomed:
        # Required checks of a run can no longer pass, each by the part behind its name.
        log.info("failure_foreseen", queue=queue.id, run=run.id, doomed=named)
    else:
        # Nothing dooms a required check of the run any more: it is awaited again.
        log.info("failure_withdrawn", queue=queue.id, run=run.id)


async def _rules_of(runtime: Runtime, queue: QueueRef) -> Mapping[Rule, float]:
    """Return the rules of a queue that hold, with the seconds by which they foresee."""
    kept = runtime.memory.of(Looks).rules
    now = runtime.clock.now()
    known = kept.get(queue.id)
    if known is not None and known[0] + RULES_FOR > now:
        return known[1]
    observations = await runtime.store.read(store.newest, queue.id)
    rules = early_rules.holding(observations, now)
    kept.put(queue.id, (now, rules))
    return rules


async def _progress(
    runtime: Runtime, sight: _Sight, groups: Collection[str], *, is_poll: bool = False
) -> Sequence[CiProgress]:
    provider = runtime.providers[sight.queue.repo.host]
    return await provider.ci_progress(sight.queue.repo, _sha(sight), groups, is_poll=is_poll)


async def _plan_of(runtime: Runtime, sight: _Sight) -> CiPlan | None:
    """Return what the target's workflow files say; None if the tested tree has others."""
    tip = sight.value.tip
    if tip is None:
        return None
    memory, here = runtime.memory.of(Looks), sight.queue.repository_id
    digest = await _digest(runtime, sight.queue, tip.sha)
    if digest != await _digest(runtime, sight.queue, _sha(sight)):
        return None
    known = memory.plans.get((here, digest))
    if isinstance(known, CiPlan):
        return known
    plan = await runtime.providers[sight.queue.repo.host].ci_plan(sight.queue.repo, tip.sha)
    memory.plans.put((here, digest), plan)
    return plan


async def _digest(runtime: Runtime, queue: QueueRef, commit: Sha) -> str:
    digests = runtime.memory.of(Looks).digests
    key = (queue.repository_id, commit)
    known = digests.get(key)
    if isinstance(known, str):
        return known
    found = await runtime.providers[queue.repo.host].ci_files(queue.repo, commit)
    digests.put(key, found)
    return found


def _sha(sight: _Sight) -> Sha:
    if sight.run.sha is None:
        raise ValueError(f"run {sight.run.id} has no commit")
    return sight.run.sha
