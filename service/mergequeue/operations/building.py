"""Making and retiring test branches (docs/design/provider.md 7; docs/design/engine.md 7)."""

from collections.abc import Iterator, Sequence
from itertools import dropwhile, takewhile

import structlog

from service import sweeping
from service.mergequeue.engine.config import TestBranchConstruction
from service.mergequeue.engine.inputs import (
    BuildRefusal,
    Configure,
    Input,
    NothingToTest,
    PullRequestGone,
    TestBranchBuilt,
    TestBranchConflicted,
    TestBranchRefused,
)
from service.mergequeue.engine.model import MergeQueue, Run, RunStep
from service.mergequeue.engine.outputs import BuildTestBranch, HeadToMerge, RetireRun
from service.mergequeue.engine.states import RunPhase, RunStatus
from service.mergequeue.operations import (
    consents,
    merge_messages,
    naming,
    turn,
    undone_work,
    vehicles,
)
from service.mergequeue.store import landings, queues, runs
from service.provider.audits import DryTest, DryTestRequest
from service.provider.errors import Gone, GoneKind, ProviderError, Refused, RefusedCode
from service.provider.port import Provider
from service.provider.values import (
    BuildRequest,
    BuildResult,
    BuildStep,
    Built,
    Conflicted,
    Construction,
    NothingToMerge,
    Vehicle,
)
from service.runtime import Runtime
from service.vocabulary import SYSTEM, CheckOutcome, QueueRef, RepoRef, Sha

log = structlog.get_logger()

WAIT_FOR_BUILD_S = 60.0
"""A build waits at most this long for the build that it continues."""

_REFUSALS = {
    code: BuildRefusal(code.value) for code in RefusedCode if code.value in set(BuildRefusal)
}


async def build(runtime: Runtime, queue: QueueRef, action: BuildTestBranch) -> None:
    """Create the run's test branch and report it to the queue; do nothing if the run is over.

    Safe to repeat: the provider adopts what an earlier try made.
    """
    run = await _live(runtime, queue, action.run)
    if run is None or run.sha is not None:
        return
    provider = runtime.providers[queue.repo.host]
    if not await provider.repeats_commits(queue.repo, queue.branch):
        await _wait_for_base(runtime, queue, action)
    value = await turn.value(runtime, queue.id)
    run = value.runs.get(action.run)
    if run is None or await _has_lost_consent(runtime, queue, action, value):
        return
    try:
        request = await _request(runtime, queue, action, value)
        runtime.crash_points.reach("act.build.before_send")
        result = await provider.build(request)
    except Refused as refused:
        code = _REFUSALS.get(refused.code, BuildRefusal.OTHER)
        inputs: list[Input] = [TestBranchRefused(action.run, refused.number, code, refused.message)]
    except Gone as gone:
        if gone.kind is not GoneKind.PULL_REQUEST:
            raise
        inputs = await _gone(runtime, queue, run, gone.message)
    else:
        runtime.crash_points.reach("act.build.after_send")
        if isinstance(result, Conflicted) and not _is_tested(action, result.number):
            # The run that tests this head finds the same, which ends this one.
            await _wait_for_base(runtime, queue, action)
        inputs = [await _reported(runtime, queue, run, result)]
        if isinstance(result, Built):
            inputs += _without_drafts(result.draft_refused)
    runtime.crash_points.reach("act.build.before_settle")
    await turn.take(runtime, queue.id, inputs)


async def _has_lost_consent(
    runtime: Runtime, queue: QueueRef, action: BuildTestBranch, value: MergeQueue
) -> bool:
    """Report the loss of consents to forks in this run, which ends it; return whether any is."""
    inputs = await consents.lost(runtime, queue, value, action.steps)
    if inputs:
        await turn.take(runtime, queue.id, inputs)
    return bool(inputs)


async def build_of_tip(runtime: Runtime, queue: QueueRef, action: BuildTestBranch) -> None:
    """Create the test branch of the tip alone, an empty commit on it, and report it. Repeatable."""
    run = await _live(runtime, queue, action.run)
    if run is None or run.sha is not None:
        return
    wants_draft = run.config.create_prs_for_testing_branches
    request = DryTestRequest(
        repo=queue.repo,
        target=queue.branch,
        tip=action.base_tip.sha,
        branch=naming.test_branch(run),
        vehicle=Vehicle.DRAFT_PR if wants_draft else Vehicle.PUSH,
        message=naming.TIP_MESSAGE.format(target=queue.branch),
        title=naming.TIP_TITLE.format(target=queue.branch),
        body=naming.TIP_BODY,
    )
    runtime.crash_points.reach("act.build.before_send")
    inputs: list[Input] = []
    try:
        made = await started_anew(runtime.providers[queue.repo.host], request)
    except Refused as refused:
        code = _REFUSALS.get(refused.code, BuildRefusal.OTHER)
        inputs.append(TestBranchRefused(run.id, None, code, refused.message))
    else:
        runtime.crash_points.reach("act.build.after_send")
        inputs.append(TestBranchBuilt(run.id, made.sha, (), made.branch, True))
        inputs += _without_drafts(made.refusal)
    runtime.crash_points.reach("act.build.before_settle")
    await turn.take(runtime, queue.id, inputs)


async def started_anew(provider: Provider, request: DryTestRequest) -> DryTest:
    """Show the branch to CI; one that an interrupted try has left is replaced."""
    try:
        return await provider.start_dry_test(request)
    except Refused as refused:
        if refused.code is not RefusedCode.NAME_TAKEN:
            raise
    await provider.discard(request.repo, request.branch)
    return await provider.start_dry_test(request)


async def prepare(runtime: Runtime, repository: RepoRef, branch: str) -> None:
    """Have the provider get ready to build for a queue; trouble only delays its first build."""
    provider = runtime.providers.get(repository.host)
    if provider is None:
        return
    try:
        await provider.prepare(repository, branch)
    except ProviderError as trouble:
        log.info("build_not_prepared", repository=repository.slug, why=trouble.message)


async def prepare_all(runtime: Runtime) -> None:
    """Sweep: the same for every queue, after a start with other options or an empty disk."""
    every = await runtime.store.read(queues.all_queues)
    await sweeping.one_by_one(prepare(runtime, queue.repo, queue.branch) for queue in every)


def _without_drafts(refusal: str | None) -> list[Input]:
    """Switch the queue from draft pull requests to pushes if the provider refuses drafts."""
    if refusal is None:
        return []
    choice = vehicles.without_drafts(refusal)
    changes = {vehicles.SETTING: choice.wants_drafts}
    return [Configure(changes, SYSTEM, choice.reason)]


async def _live(runtime: Runtime, queue: QueueRef, run_id: str) -> Run | None:
    value = await turn.value(runtime, queue.id)
    return value.runs.get(run_id)


async def _wait_for_base(runtime: Runtime, queue: QueueRef, action: BuildTestBranch) -> None:
    """Wait for the build that this one continues, so that its commits are reused."""
    topic = f"queue/{queue.id}"
    deadline = runtime.clock.monotonic_s() + WAIT_FOR_BUILD_S
    awaited: str | None = None
    while True:
        seen = runtime.wakeups.version(topic)
        value = await turn.value(runtime, queue.id)
        left_s = deadline - runtime.clock.monotonic_s()
        if not _is_being_built(value.runs.get(awaited or "")):
            awaited = _unbuilt_base(value, action)
        if left_s <= 0 or awaited is None:
            return
        await runtime.wakeups.wait(topic, seen, left_s)


def _is_being_built(run: Run | None) -> bool:
    return (
        run is not None and run.phase is RunPhase.BUILDING and run.status is RunStatus.IN_PROGRESS
    )


def _unbuilt_base(value: MergeQueue, action: BuildTestBranch) -> str | None:
    """Return the run being built with the longest prefix, if the existing branches have less."""
    wanted = _wanted(action)
    longest, found = len(_reusable(value, action)), None
    for run in value.runs.values():
        if _is_being_built(run) and run.id != action.run:
            heads = _left_of(run, action)
            if longest < len(heads) == _shared(heads, wanted):
                longest, found = len(heads), run.id
    return found


def _is_tested(action: BuildTestBranch, pr: int) -> bool:
    return any(step.pr == pr and step.tested for step in action.steps)


def _left_of(run: Run, action: BuildTestBranch) -> Sequence[tuple[int, Sha]]:
    """Return the run's heads; of one with an older base those that have not landed since."""
    heads = _heads_of(run)
    if run.base_tip == action.base_tip:
        return heads
    line = {step.pr for step in action.steps}
    return tuple(dropwhile(lambda head: head[0] not in line, heads))


def _wanted(action: BuildTestBranch) -> tuple[tuple[int, Sha], ...]:
    """Return the heads whose merges may be taken from another run: all but the last."""
    return tuple((step.pr, step.head) for step in action.steps[:-1])


def _shared(made: Sequence[tuple[int, Sha]], wanted: Sequence[tuple[int, Sha]]) -> int:
    """Return how many heads both chains start with."""
    pairs = zip(made, wanted, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _heads_of(run: Run) -> tuple[tuple[int, Sha], ...]:
    return tuple((one.pr, one.head) for one in (*run.base, *run.entries))


async def _request(
    runtime: Runtime, queue: QueueRef, action: BuildTestBranch, value: MergeQueue
) -> BuildRequest:
    run = value.runs[action.run]
    deployment = await runtime.store.read(queues.deployment_id)
    reused = _reusable(value, action)
    steps = []
    for place, step in enumerate(action.steps):
        before = reused[place] if place < len(reused) else None
        commit = None if before is None else before.commit
        tester = run if step.tested else _tester(value, step) or run
        message = ""
        if commit is None:
            trailers = naming.Trailers(tester.id, deployment)
            message = await merge_messages.merge_message_of(runtime, queue, tester, step, trailers)
        date = tester.created_at
        fork = _fork(value, action, place) if run.config.land_tested_commits else None
        resolved = () if before is None else before.resolved
        made = (step.tested, commit, fork, resolved)
        steps.append(BuildStep(step.pr, step.head, message, date, *made))
    wants_draft = run.config.create_prs_for_testing_branches
    renames = run.config.test_branch_construction_mode is TestBranchConstruction.RENAME_TEMP_BRANCH
    return BuildRequest(
        repo=queue.repo,
        run_id=run.id,
        deployment_id=deployment,
        target=queue.branch,
        base_sha=action.base_tip.sha,
        steps=tuple(steps),
        known_trees=frozenset(action.known_trees),
        branch=naming.test_branch(run),
        scratch=naming.scratch_branch(run),
        vehicle=Vehicle.DRAFT_PR if wants_draft else Vehicle.PUSH,
        construction=(
            Construction.RENAME_TEMP_BRANCH if renames else Construction.PUSH_NEW_BRANCH_FROM_TEMP
        ),
        title=naming.draft_title(run, queue.branch),
        body=naming.draft_body(run, queue.branch, await _failed_before(runtime, queue, value, run)),
        method=run.config.merge_method,
        lands=run.config.lands_commits,
        rules=run.config.rules_for_conflicts,
        guard=await undone_work.guard_of(runtime, queue, run.config, action.base_tip.sha),
    )


def _fork(value: MergeQueue, action: BuildTestBranch, place: int) -> Sha | None:
    """Return the head of the chain's member below, if the same branch has it before this one."""
    entry = value.entries.get(action.steps[place].pr)
    if entry is None or entry.facts.in_stack or not entry.facts.below:
        return None
    heads = {step.pr: step.head for step in action.steps[:place]}
    return heads.get(entry.facts.below[-1])


def _tester(value: MergeQueue, step: HeadToMerge) -> Run | None:
    """Return the run that tests this head now, if any does."""
    entry = value.entries.get(step.pr)
    run = value.runs.get(entry.run or "") if entry is not None else None
    return run if run is not None and (step.pr, step.head) in _heads_of(run) else None


async def _failed_before(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, run: Run
) -> tuple[str, ...]:
    """Return the checks that failed in the run whose failure this one examines, sorted."""
    bisection = value.bisections.get(run.bisection or "")
    if bisection is None:
        return ()
    failed = value.runs.get(bisection.run)
    if failed is None:
        failed = await runtime.store.read(runs.run, queue.id, bisection.run)
    reports = failed.checks if failed is not None else ()
    return tuple(sorted({one.name for one in reports if one.outcome is CheckOutcome.FAILED}))


def _reusable(value: MergeQueue, action: BuildTestBranch) -> tuple[RunStep, ...]:
    """Return the longest chain of our leading steps that a live run has made on our base.

    A failed run counts too: its probes are prefixes of it (docs/design/engine.md 8).
    """
    wanted = _wanted(action)
    best: tuple[RunStep, ...] = ()
    own = value.runs.get(action.run)
    for run in value.runs.values():
        if own is None or _form_of(run) != _form_of(own):
            continue
        for steps in _chains_on(run, action.base_tip.sha):
            made = tuple((step.pr, step.head) for step in steps)
            best = max(best, steps[: _shared(made, wanted)], key=len)
    return best


def _form_of(run: Run) -> tuple[object, ...]:
    """Return what the form of the run's commits depends on."""
    config = run.config
    return config.merge_method, config.land_tested_commits, config.rules_for_conflicts


def _chains_on(run: Run, base: Sha) -> Iterator[tuple[RunStep, ...]]:
    """Yield the run's steps on top of this commit.

    An older run has it among its own once those below have landed as they were tested; twice if
    a head was in already.
    """
    commits = (run.base_tip.sha, *(step.commit for step in run.steps))
    for place, commit in enumerate(commits):
        if commit == base:
            yield run.steps[place:]


async def _reported(runtime: Runtime, queue: QueueRef, run: Run, result: BuildResult) -> Input:
    match result:
        case Built():
            if result.vehicle_number is not None:
                await runtime.store.run(
                    runs.set_draft_pull_request,
                    queue.id,
                    run.id,
                    result.vehicle_number,
                    result.vehicle_url,
                )
            steps = tuple(
                RunStep(one.number, head, one.commit, one.tree, one.contained, one.resolved)
                for one, (_, head) in zip(result.prefixes, _heads_of(run), strict=True)
            )
            judged = await undone_work.with_numbers(runtime, queue, result.judged)
            return TestBranchBuilt(
                run.id, result.tip, steps, result.branch, result.published, judged
            )
        case Conflicted():
            return TestBranchConflicted(
                run.id, result.number, result.with_base, result.culprit, result.paths
            )
        case NothingToMerge():
            return NothingToTest(run.id)


async def _gone(runtime: Runtime, queue: QueueRef, run: Run, text: str) -> list[Input]:
    """Return which of the run's pull requests no longer exist."""
    provider = runtime.providers[queue.repo.host]
    gone: list[Input] = []
    for member in (*run.base, *run.entries):
        try:
            await provider.pull_request(queue.repo, member.pr, awaits_mergeability=False)
        except Gone as missing:
            if missing.kind is not GoneKind.PULL_REQUEST:
                raise
            gone.append(PullRequestGone(member.pr))
    return gone or [TestBranchRefused(run.id, None, BuildRefusal.OTHER, text)]


async def retire(runtime: Runtime, queue: QueueRef, action: RetireRun) -> None:
    """Delete the branches and pull request of a finished run at the provider. Idempotent."""
    run = await runtime.store.read(runs.run, queue.id, action.run)
    if run is None:
        return
    provider = runtime.providers[queue.repo.host]
    runtime.crash_points.reach("act.retire.before_send")
    if action.stop_ci and run.sha is not None and run.published:
        await provider.stop_ci(queue.repo, run.sha)
    for branch in () if action.keeps_branch else await _branches(runtime, run):
        await provider.discard(queue.repo, branch)
    runtime.crash_points.reach("act.retire.after_send")


async def _branches(runtime: Runtime, run: Run) -> list[str]:
    """Return the branches that the run may have; a build that did not report left either."""
    if run.branch is None:
        return [naming.test_branch(run), naming.scratch_branch(run)]
    if await runtime.store.read(landings.has_advanced, run.id):
        return []
    return [run.branch]
