"""One landing: refresh, permit, send once, read back, prove, record (docs/design/landing.md 3).

What lands is what was tested, proved after each step; an unknown outcome is read back and
never resent blindly. Each `Land` action carries one call: a position, or a whole unit (CAS).
"""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from service.database import instances
from service.database.database import Tx
from service.database.outbox import Lane
from service.mergequeue.engine.config import QueueConfig, Toggle
from service.mergequeue.engine.inputs import (
    AdvanceRefused,
    FactsChanged,
    Input,
    Landed,
    LandingMismatch,
    LandingStopCode,
    LandingStopped,
    PullRequestGone,
    TargetMoved,
)
from service.mergequeue.engine.model import Entry, LandMode, MergeQueue, Tip
from service.mergequeue.engine.outputs import Land
from service.mergequeue.engine.rules import EntryRule
from service.mergequeue.engine.states import RunKind
from service.mergequeue.landing_records import LandingRecord, LandingState
from service.mergequeue.operations import (
    chains,
    checked_names,
    commit_values,
    counting,
    facts,
    head_branches,
    landing_evidence,
    notices,
    permits,
    proving,
    requirements,
    run_reports,
    turn,
)
from service.mergequeue.operations.commit_values import CommitTexts
from service.mergequeue.operations.permits import Attempt
from service.mergequeue.operations.run_failures import RunFailures
from service.mergequeue.store import landings, runs
from service.mergequeue.store.landings import LandingOutcome
from service.mergequeue.wording import checked_names as wording
from service.provider.errors import Gone, GoneKind, OutcomeUnknown
from service.provider.port import Provider
from service.provider.values import (
    CheckReport,
    CheckReportStatus,
    LandStop,
    LandStopCode,
    Merged,
    PullRequest,
)
from service.runtime import Runtime
from service.vocabulary import MergeMethod, PullRequestState, QueueRef, RepoRef, Sha

TOLD_AT_ONCE = 32
"""Positions recorded in one turn, which takes 64 inputs; a unit may have a thousand."""
PERMIT_FOR = timedelta(seconds=30)
PERMIT_LEFT_S = 15.0
"""A call is sent only while so much of its permit remains (docs/design/landing.md 3)."""
TRIES_MAX = {
    LandStopCode.RETRY: 10,
    LandStopCode.UNAVAILABLE: 10,
    LandStopCode.CHECKS_MISSING: 3,
}
TRY_AGAIN_S = {
    LandStopCode.RETRY: 6.0,
    LandStopCode.UNAVAILABLE: 6.0,
    LandStopCode.CHECKS_MISSING: 10.0,
}
"""Answers that pass by themselves: tries, and seconds between them (docs/design/provider.md 11)."""

TOO_SLOW = "The provider answers too slowly: the permit ran out before the call was sent."

log = structlog.get_logger()


async def land(runtime: Runtime, queue: QueueRef, action: Land) -> None:
    """Carry out one landing and report the result to the queue.

    One that was permitted before may have been sent: its outcome is read back first. A second
    call for a recorded landing does nothing. Raises OutcomeUnknown (rows say so) and the
    provider's other errors, after which the action is to be repeated.
    """
    attempt = await runtime.store.read(_attempt, queue, action)
    mine = attempt.records
    if all(row.state in _SETTLED for row in mine):
        return
    if any(row.state in _MAYBE_SENT for row in mine):
        merged = await permits.read_back(runtime, attempt)
        if merged is not None:
            await _record(runtime, attempt, merged)
            return
    await _try(runtime, attempt)


def _attempt(session: Tx, queue: QueueRef, action: Land) -> Attempt:
    run = runs.run(session, queue.id, action.run)
    branch = run.branch if run is not None else None
    return Attempt(queue, action, _rows_of(session, action), branch or "")


def _rows_of(session: Tx, action: Land) -> tuple[LandingRecord, ...]:
    rows = landings.landings_of_run(session, action.run)
    return tuple(row for row in rows if row.number == action.number)


_SETTLED = frozenset(
    {LandingState.LANDED, LandingState.REFUSED, LandingState.VOID, LandingState.MISMATCH}
)
_MAYBE_SENT = frozenset({LandingState.PERMITTED, LandingState.UNKNOWN})


async def _try(runtime: Runtime, attempt: Attempt) -> None:
    """Send until the provider gives an answer that does not pass by itself."""
    provider = runtime.providers[attempt.queue.repo.host]
    differs = await proving.overlap_of(provider, attempt.queue.repo, attempt.action)
    if differs is not None:
        await _stop(runtime, attempt, LandStop(LandStopCode.CHANGE_DIFFERS, differs))
        return
    tries: dict[LandStopCode, int] = {}
    refused: LandStop | None = None
    while True:
        answer = await _permit_and_send(runtime, attempt)
        if isinstance(answer, Merged):
            await _record(runtime, attempt, answer)
            return
        if answer.code is LandStopCode.STALE and refused is not None:
            # Our own permit now says no for what the provider refused before: that is the reason.
            await _stop(runtime, attempt, refused)
            return
        if answer.pull is not None:
            refused = answer
        tries[answer.code] = tries.get(answer.code, 0) + 1
        if tries[answer.code] >= TRIES_MAX.get(answer.code, 1):
            await _stop(runtime, attempt, answer)
            return
        await runtime.clock.sleep(TRY_AGAIN_S[answer.code])


async def _stop(runtime: Runtime, attempt: Attempt, stop: LandStop) -> None:
    """Record why it does not land; first look again whether an earlier call of it has landed.

    Raises OutcomeUnknown while the provider may still carry out one whose answer was lost.
    """
    if any(row.state in _MAYBE_SENT for row in attempt.records):
        # Before the look: what it shows may be as old as its beginning, and it may have to wait.
        may_come = await runtime.store.read(_may_come, runtime, attempt)
        merged = await permits.read_back(runtime, attempt)
        if merged is not None:
            await _record(runtime, attempt, merged)
            return
        if may_come:
            raise OutcomeUnknown(f"A call whose answer was lost may still land. {stop.message}")
    await _stopped(runtime, attempt, stop)


def _may_come(session: Tx, runtime: Runtime, attempt: Attempt) -> bool:
    until = permits.sent_until(attempt)
    return until is not None and instances.time_of(session, runtime.clock.now()) < until


async def _permit_and_send(runtime: Runtime, attempt: Attempt) -> Merged | LandStop:
    started = runtime.clock.monotonic_s()
    fresh = await _refresh(runtime, attempt)
    if fresh.tip != attempt.action.expected_tip.sha:
        return LandStop(LandStopCode.STALE, "The target branch has moved.")
    refusal = await runtime.store.run_kind("permit", _permit, runtime, attempt, fresh.rules)
    if refusal is not None:
        return LandStop(LandStopCode.STALE, refusal)
    runtime.crash_points.reach("landing.after_permit")
    if fresh.own_required:
        await _complete_own_check(runtime, attempt)
    left_s = PERMIT_FOR.total_seconds() - (runtime.clock.monotonic_s() - started)
    if left_s < PERMIT_LEFT_S:
        return LandStop(LandStopCode.UNAVAILABLE, TOO_SLOW)
    runtime.crash_points.reach("act.land.before_send")
    try:
        answer = await permits.send(runtime, attempt, fresh.texts)
    except OutcomeUnknown:
        await _settle(runtime, attempt, LandingState.UNKNOWN)
        raise
    runtime.crash_points.reach("act.land.after_send")
    # What GitHub answered to a request to land.
    log.info("land_sent", queue=attempt.queue.id, run=attempt.action.run, answer=_short(answer))
    return answer


def _short(answer: Merged | LandStop) -> str:
    return answer.commit if isinstance(answer, Merged) else answer.code.value


@dataclass(frozen=True, slots=True)
class Fresh:
    """The result of a refresh: the target's tip, and whether the rules require our own check.

    `texts` are what the queue's templates make of the first pull request of the landing. By `rules`
    of the queue the pull requests were judged.
    """

    tip: Sha | None
    own_required: bool
    texts: CommitTexts
    rules: tuple[EntryRule, ...]


async def _refresh(runtime: Runtime, attempt: Attempt) -> Fresh:
    """Read everything that the landing depends on, uncached, and pass it to the queue."""
    queue = attempt.queue
    provider = runtime.providers[queue.repo.host]
    value = await turn.value(runtime, queue.id)
    # All at once: a permit is judged by what is at most 15 seconds old.
    read = await asyncio.gather(
        *(_facts_of(runtime, queue, value, step.pr) for step in attempt.action.steps)
    )
    inputs: list[Input] = [known for known, _ in read]
    tips = {None if pull is None else pull.base_tip for _, pull in read}
    await provider.forget_rules(queue.repo, only_free=True)
    resolved = await requirements.resolve(
        runtime, queue.repo, queue.branch, requirements.override_of(value), value
    )
    inputs.extend(requirements.reports(value, resolved))
    run = value.runs.get(attempt.action.run)
    if run is not None and run_reports.is_reported_on(run):
        inputs.append(await run_reports.checks_of(runtime, queue, run))
        inputs += await runtime.links.of(RunFailures).changed_since(runtime, queue, run)
    expected = attempt.action.expected_tip.sha
    tip: Sha | None = expected
    if tips != {expected}:
        inputs.extend(await facts.target(runtime, queue, value))
        newest = await provider.tip(queue.repo, queue.branch)
        tip = newest.sha if newest is not None else None
    await turn.take(runtime, queue.id, inputs)
    texts = await _texts_of(runtime, attempt, value.config, read[0][1])
    return Fresh(tip, resolved.own_required, texts, value.config.rules)


async def _texts_of(
    runtime: Runtime, attempt: Attempt, config: QueueConfig, pull: PullRequest | None
) -> CommitTexts:
    """Return the texts that a merge call sets; commits that land as they are have theirs."""
    is_call = attempt.action.mode is LandMode.CALL
    if pull is None or not is_call or attempt.action.method is MergeMethod.REBASE:
        return CommitTexts(None, None)
    return await commit_values.texts(runtime, attempt.queue, config, pull, attempt.action.run)


async def _facts_of(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, number: int
) -> tuple[Input, PullRequest | None]:
    """Return fresh facts of one pull request, and the pull request as read; None if it is gone.

    A direct merge stands on its own head's checks, so those are read afresh too.
    """
    provider = runtime.providers[queue.repo.host]
    try:
        pull = await provider.pull_request(queue.repo, number)
    except Gone as gone:
        if gone.kind is not GoneKind.PULL_REQUEST:
            raise
        return PullRequestGone(number), None
    entry = value.entries.get(number)
    run = value.runs.get(entry.verified_by or "") if entry is not None else None
    config = value.config
    if run is None or run.kind is not RunKind.DIRECT:
        config = replace(config, direct_merge_mode=Toggle.OFF)
    return FactsChanged(await facts.facts_of(runtime, queue, config, pull)), pull


def _permit(
    session: Tx, runtime: Runtime, attempt: Attempt, rules: tuple[EntryRule, ...]
) -> str | None:
    """Open the permit or return the reason against it; reads and writes in one transaction."""
    queue_id = attempt.queue.id
    _, value = turn.newest(session, runtime, queue_id, lock=True)
    against = permits.against(value, attempt.action, runtime.clock.now(), rules)
    if against is not None:
        return against
    mine = {record.id for record in attempt.records}
    if any(row.id not in mine for row in landings.open_permits(session, queue_id)):
        return "Another landing is still open."
    # Any instance may have to wait for its end, so it is set by the clock that all share.
    until = instances.time_of(session, runtime.clock.now()) + PERMIT_FOR
    if not all(landings.permit(session, record.id, until) for record in attempt.records):
        return "Another landing is still open."
    return None


async def _complete_own_check(runtime: Runtime, attempt: Attempt) -> None:
    """Rules that require our own check see it succeed just before the call.

    See docs/design/provider.md 11.
    """
    provider = runtime.providers[attempt.queue.repo.host]
    queue = attempt.queue
    run = await runtime.store.read(runs.run, queue.id, attempt.action.run)
    table = await checked_names.table_of(runtime, queue, run)
    for step in attempt.action.steps:
        name = requirements.own_check(attempt.queue.branch)
        report = CheckReport(
            sha=step.head,
            name=name,
            external_id=step.entry,
            status=CheckReportStatus.SUCCESS,
            title="Tests passed, merging",
            summary=wording.summary_message(table) or "Its test run passed.",
            url=None,
        )
        written = await provider.say(attempt.queue.repo, report)
        if written is not None:
            await runtime.store.run(notices.note_completed_check, attempt.queue, step, written)


async def _record(runtime: Runtime, attempt: Attempt, merged: Merged) -> None:
    """Prove the landing from what was read back, and store and report it in one commit."""
    runtime.crash_points.reach("landing.before_proof")
    outcome = proving.proof_of(attempt.action, merged)
    if isinstance(outcome, proving.Proved):
        provider = runtime.providers[attempt.queue.repo.host]
        outcome = await proving.proved_of(provider, attempt.queue.repo, attempt.action, outcome)
    match outcome:
        case proving.Proved():
            await _landed(runtime, attempt, outcome)
        case proving.Unproved(cause=cause, text=text):
            # What landed is not what was tested; the queue is on hold.
            log.error("landing_mismatch", queue=attempt.queue.id, run=attempt.action.run, why=text)
            mismatch = await _mismatch(runtime, attempt, f"{cause}: {text}")
            await _tell(
                runtime, attempt, [mismatch], Outcome(LandingState.MISMATCH, {}, mismatch.evidence)
            )


async def _landed(runtime: Runtime, attempt: Attempt, proved: proving.Proved) -> None:
    """Report every position that was not recorded before, as many at once as a turn takes."""
    known = {row.position for row in attempt.records if row.state in _SETTLED}
    left = [one for one in proved.landed if one[0].position not in known]
    above = proved.above
    for start in range(0, len(left), TOLD_AT_ONCE):
        part = left[start : start + TOLD_AT_ONCE]
        inputs: list[Input] = [
            Landed(attempt.action.run, step.position, sha, tree) for step, sha, tree in part
        ]
        if above is not None and part[-1] is left[-1]:
            inputs.append(TargetMoved(Tip(above.sha, above.tree)))
        trees = {step.position: (sha, tree) for step, sha, tree in part}
        await _tell(runtime, attempt, inputs, Outcome(LandingState.LANDED, trees))


async def _mismatch(runtime: Runtime, attempt: Attempt, evidence: str) -> LandingMismatch:
    provider = runtime.providers[attempt.queue.repo.host]
    fresh = await provider.tip(attempt.queue.repo, attempt.queue.branch)
    real = attempt.action.expected_tip if fresh is None else Tip(fresh.sha, fresh.tree)
    value = await turn.value(runtime, attempt.queue.id)
    repo, steps = attempt.queue.repo, attempt.action.steps
    bases = await asyncio.gather(*(_merged_into(provider, repo, step.pr) for step in steps))
    merged = []
    for step, base in zip(steps, bases, strict=True):
        if base is None:
            continue
        if _is_elsewhere(attempt.queue, value.entries.get(step.pr), base):
            evidence += f" Pull request {step.pr} was merged into {base}: its base was changed."
            continue
        merged.append(step.position)
    return LandingMismatch(attempt.action.run, attempt.position, tuple(merged), real, evidence)


async def _merged_into(provider: Provider, repo: RepoRef, number: int) -> str | None:
    """Return the base of a pull request that the provider shows as merged; None for others."""
    try:
        pull = await provider.pull_request(repo, number, awaits_mergeability=False)
    except Gone as gone:
        if gone.kind is not GoneKind.PULL_REQUEST:
            raise
        return None
    return pull.base_branch if pull.state is PullRequestState.MERGED else None


def _is_elsewhere(queue: QueueRef, entry: Entry | None, base: str) -> bool:
    """Return whether it was merged into another branch: its base changed after the last look.

    The merge call names the head and never the base. Members of stacks and chains have bases of
    their own.
    """
    if base == queue.branch or entry is None:
        return False
    return not entry.facts.in_stack and base != entry.rested_on


@dataclass(frozen=True, slots=True)
class Outcome:
    """Return the final rows of a landing: state, commit and tree by position, evidence.

    Without commits it is said of all rows, else of those positions alone.
    """

    state: LandingState
    trees: dict[int, tuple[Sha, Sha]]
    evidence: str | None = None


async def _stopped(runtime: Runtime, attempt: Attempt, stop: LandStop) -> None:
    inputs: list[Input] = []
    if stop.pull is not None:
        inputs.append(await _refused_facts(runtime, attempt, stop.pull))
    is_update = attempt.action.mode is LandMode.CAS
    is_stack = not is_update and len(attempt.action.steps) > 1
    if (is_update and stop.code in _ADVANCE_REFUSED) or (is_stack and stop.code not in _MOVED):
        inputs.append(AdvanceRefused(attempt.action.run, stop.message))
    else:
        code = LandingStopCode(stop.code.value)
        inputs.append(
            LandingStopped(attempt.action.run, attempt.position, code, stop.message, stop.blockers)
        )
    await _tell(runtime, attempt, inputs, Outcome(LandingState.REFUSED, {}, stop.message))


async def _refused_facts(runtime: Runtime, attempt: Attempt, pull: PullRequest) -> FactsChanged:
    """Return the facts that decided; a direct merge keeps its checks until they are read."""
    queue = attempt.queue
    value = await turn.value(runtime, queue.id)
    plain = replace(value.config, direct_merge_mode=Toggle.OFF)
    fresh = await facts.facts_of(runtime, queue, plain, pull)
    entry = value.entries.get(pull.number)
    if entry is not None:
        fresh = facts.swept(entry.facts, fresh)
        if entry.facts.head == fresh.head:
            fresh = replace(
                fresh,
                own_checks=entry.facts.own_checks,
                contains_tip=entry.facts.contains_tip,
                head_tree=entry.facts.head_tree,
            )
    return FactsChanged(fresh)


_ADVANCE_REFUSED = frozenset({LandStopCode.RULE_DENIED, LandStopCode.NOT_PERMITTED})
"""Then the merge call is tried instead (docs/design/landing.md 2)."""

_MOVED = frozenset({LandStopCode.STALE, LandStopCode.BASE_MOVED})
"""After any other refusal of a stack its members are tried one by one."""


async def _tell(runtime: Runtime, attempt: Attempt, inputs: list[Input], outcome: Outcome) -> None:
    now = runtime.clock.now()

    value = await turn.value(runtime, attempt.queue.id)
    entries = {step.entry for step in attempt.action.steps}
    members = [entry for entry in value.entries.values() if entry.id in entries]

    def also(session: Tx) -> set[Lane]:
        _settle_rows(session, attempt, outcome, now)
        landed = [step for step in attempt.action.steps if step.position in outcome.trees]
        lanes = chains.ask_for(session, attempt.queue, value, landed, now)
        evidence = landing_evidence.LandedNow(
            attempt.queue,
            attempt.action,
            _rows_of(session, attempt.action),
            value.config,
            value.revision,
            now,
        )
        landing_evidence.keep(session, runtime, evidence, frozenset(outcome.trees))
        if value.config.delete_branch:
            lanes |= head_branches.ask_for(session, attempt.queue, landed, now)
        if outcome.state is not LandingState.LANDED:
            lanes |= notices.write_checks_again(session, runtime, attempt.queue, members, now)
        return lanes

    runtime.crash_points.reach("act.land.before_settle")
    await turn.take(runtime, attempt.queue.id, inputs, turn.Along(also=also))


async def _settle(runtime: Runtime, attempt: Attempt, state: LandingState) -> None:
    await runtime.store.run_kind(
        "settle", _settle_rows, attempt, Outcome(state, {}), runtime.clock.now()
    )


def _settle_rows(session: Tx, attempt: Attempt, outcome: Outcome, now: datetime) -> None:
    # A large unit is reported in parts: it is one attempt, which ends with its last position.
    is_over = not outcome.trees or attempt.action.steps[-1].position in outcome.trees
    # One that our own look stopped before it had a permit was never attempted.
    if is_over and any(row.permit_until for row in _rows_of(session, attempt.action)):
        counting.count_landing(session, attempt.queue, outcome.state, now)
    for record in attempt.records:
        if outcome.trees and record.position not in outcome.trees:
            continue
        sha, tree = outcome.trees.get(record.position, (None, None))
        ended = LandingOutcome(outcome.state, sha, tree, outcome.evidence)
        landings.settle(session, record.id, ended)
