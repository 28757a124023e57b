"""Everything that can happen next in a scene."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial

from service.mergequeue.engine import inputs, targets
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.inputs import Landed, LandingStopCode
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.outputs import Land
from service.mergequeue.engine.planning import landing
from service.mergequeue.engine.reasons import LIFTED_BY_PERSON, Reason
from service.mergequeue.engine.reported import Doomed, Evidence
from service.mergequeue.engine.states import RunKind, RunPhase, RunStatus
from service.vocabulary import (
    Actor,
    ActorKind,
    Check,
    CheckOutcome,
    Explanation,
    PullRequestState,
    Sha,
)
from tests.exhaustive import properties, scene
from tests.exhaustive.properties import Violation
from tests.exhaustive.scene import PullRequest, Scene, told
from tests.exhaustive.scopes import Scope
from tests.mergequeue import trees
from tests.mergequeue.stage import ALICE, a_check

Move = tuple[str, Callable[[], Scene]]
"""What happens, and what comes of it."""

URGENT = 0
DELAY = timedelta(seconds=90)
"""How long the provider's limits put off a build."""


def of(now: Scene, scope: Scope) -> Iterator[Move]:
    """Every input that is possible now; most change something, none is left out."""
    yield from _submissions(now, scope)
    yield from _people(now, scope)
    yield from _the_provider(now, scope)
    for run in now.queue.runs.values():
        if run.id in now.builds:
            yield from _builds(now, scope, run)
        elif run.phase is RunPhase.TESTING and run.sha is not None:
            yield from _reports(now, scope, run)
    if now.land is not None:
        yield from _landings(now, scope, now.land)
    if now.wake_at is not None and now.wake_at - now.now <= scope.wait_max:
        yield "time passes", lambda: _waited(now, scope)
    if scope.crashes and (now.builds or now.land is not None):
        yield "crash", lambda: _crashed(now, scope)


def _submissions(now: Scene, scope: Scope) -> Iterator[Move]:
    count = len(now.prs)
    entered = now.prs
    if count < scope.pull_requests:
        new = PullRequest(count + 1, in_stack=scope.stacked)
        if scope.stacked and count and now.prs[-1].state is PullRequestState.OPEN:
            new = replace(new, below=count)
        entered = (*now.prs, new)
    for one in entered:
        if one.state is not PullRequestState.OPEN:
            continue
        known = now.queue.entries.get(one.number)
        for priority in scope.priorities:
            if known is None or (priority == URGENT and known.priority != URGENT):
                word = "submit" if priority is None else f"submit with priority {priority}"
                yield f"{word} {one.number}", _submit(now, scope, one, priority)


def _submit(now: Scene, scope: Scope, one: PullRequest, priority: int | None) -> Callable:
    names = scope.targets.get(one.number)
    touched = None if names is None else targets.of(names)
    prs = now.prs if one.number <= len(now.prs) else (*now.prs, one)
    submitted = inputs.Submit(
        scene.facts_now(one), _submitter(scope, one), priority, p_fail=scope.p_fail, targets=touched
    )
    return lambda: told(replace(now, prs=prs), submitted, scope)


def _submitter(scope: Scope, one: PullRequest) -> Actor:
    if not scope.submitters:
        return ALICE
    login = scope.submitters[one.number - 1]
    return Actor(ActorKind.BOT if login.endswith("[bot]") else ActorKind.PERSON, login)


def _people(now: Scene, scope: Scope) -> Iterator[Move]:
    for pr, entry in now.queue.entries.items():
        if scope.cancels:
            yield (
                f"cancel {pr}",
                _telling(now, scope, inputs.Cancel(pr, Reason.USER_REQUESTED, ALICE)),
            )
        if scope.restarts and entry.run is not None:
            yield f"restart {pr}", _telling(now, scope, inputs.Restart(pr, ALICE))
        for names in scope.uploads:
            upload = inputs.SetImpactedTargets(pr, entry.head, targets.of(names), ALICE)
            yield f"targets {pr} {','.join(names)}", _telling(now, scope, upload)
    yield from _admins(now, scope)


def _admins(now: Scene, scope: Scope) -> Iterator[Move]:
    for state in scope.states:
        if state is not now.queue.state:
            yield state.value, _telling(now, scope, inputs.SetState(state, None, ALICE))
    for mode in scope.modes:
        if mode is not (now.queue.target_mode or now.queue.config.mode):
            change = inputs.Configure({"mode": mode}, ALICE)
            yield mode.value, _telling(now, scope, change)
    for hold in now.queue.holds:
        if hold.reason in LIFTED_BY_PERSON:
            lift = inputs.ReleaseHold(hold.id, "seen", ALICE)
            yield f"lift {hold.reason.value}", _telling(now, scope, lift)


def _the_provider(now: Scene, scope: Scope) -> Iterator[Move]:
    """Pushes and moves of the branch, and the reports of them."""
    for one in now.prs:
        if one.state is PullRequestState.OPEN:
            if one.version < scope.versions:
                pushed = replace(one, version=one.version + 1)
                yield f"push {one.number}", partial(_with, now, pushed)
            if scope.by_hand and now.land is None:
                yield f"{one.number} is merged by hand", partial(_merged, now, one)
        entry = now.queue.entries.get(one.number)
        if entry is not None and entry.facts != scene.facts_now(one):
            news = inputs.FactsChanged(scene.facts_now(one))
            yield f"facts of {one.number}", _telling(now, scope, news)
    known = now.queue.tip
    is_read = known is not None and known.sha == now.history[0]
    if scope.foreign and is_read:
        yield "foreign push", lambda: _pushed(now)
    kept = now.queue.kept_move
    if not is_read and (kept is None or kept.tip.sha != now.history[0]):
        yield "the tip is read", lambda: _tip_read(now, scope)


def _builds(now: Scene, scope: Scope, run: Run) -> Iterator[Move]:
    action = now.builds[run.id]
    yield f"r{run.number} is built", lambda: _built(now, scope, run)
    if scope.delays:
        delayed = inputs.TestBranchDelayed(run.id, now.now + DELAY, "no slot is left")
        yield f"r{run.number} is delayed", _telling(now, scope, delayed)
    if not scope.conflicts or run.status is not RunStatus.IN_PROGRESS:
        return
    if not action.steps:
        return
    last = action.steps[-1].pr
    base = inputs.TestBranchConflicted(run.id, last, True, None, ("a.py",))
    yield f"r{run.number}: {last} conflicts with the branch", _telling(now, scope, base)
    ahead = [step.pr for step in action.steps[:-1] if step.pr in now.queue.entries]
    for culprit in (*ahead[-1:], None) if ahead else ():
        conflict = inputs.TestBranchConflicted(run.id, last, False, culprit, ("a.py",))
        yield f"r{run.number}: {last} conflicts with {culprit}", _telling(now, scope, conflict)


def _built(now: Scene, scope: Scope, run: Run) -> Scene:
    action = now.builds[run.id]
    steps = scene.steps_of(now, action)
    tested = steps[len(run.base) :]
    without = replace(
        now, builds={name: build for name, build in now.builds.items() if name != run.id}
    )
    if not steps:
        commit = trees.sha(action.base_tip.sha, "tip", run.id)
        tip = inputs.TestBranchBuilt(run.id, commit, (), f"t/{run.id}", True)
        return told(without, tip, scope)
    if all(step.contained for step in tested):
        return told(without, inputs.NothingToTest(run.id), scope)
    published = steps[-1].tree not in action.known_trees
    built = inputs.TestBranchBuilt(run.id, steps[-1].commit, steps, f"t/{run.id}", published)
    return told(without, built, scope)


def _reports(now: Scene, scope: Scope, run: Run) -> Iterator[Move]:
    if not run.published or run.contained:
        return
    last = next((check for check in run.checks if check.id not in run.rerun_ids), None)
    for outcome in _outcomes(now, scope, run, None if last is None else last.outcome):
        report = _report(run, outcome)
        yield f"r{run.number}: {outcome.value}", _telling(now, scope, report)
        if scope.late and now.wake_at is not None and now.wake_at - now.now <= scope.wait_max:
            due = replace(now, now=now.wake_at)
            yield f"r{run.number}: {outcome.value} as a clock ends", _telling(due, scope, report)
    yield from _answers(now, scope, run, last)
    if scope.dooms:
        yield from _dooms(now, scope, run, last)
    if last is None or last.outcome is not CheckOutcome.FAILED:
        for names in scope.failed_tests:
            word = f"r{run.number} fails by {' and '.join(names) or 'unknown tests'}"
            yield word, partial(_failed_by, now, scope, run, names)


def _answers(now: Scene, scope: Scope, run: Run, last: Check | None) -> Iterator[Move]:
    """What is said of reports: that checks cannot run again, and what their results mean."""
    if scope.reruns and run.repeats is not None and run.status is RunStatus.IN_PROGRESS:
        refused = inputs.RerunRefused(run.id, "too old")
        yield f"r{run.number}: its checks cannot run again", _telling(now, scope, refused)
    if scope.revokes and last is not None and last.outcome is CheckOutcome.PASSED:
        revoked = inputs.PassRevoked(run.id, (last.id,))
        yield f"r{run.number}: its pass is revoked", _telling(now, scope, revoked)
    if scope.evidence and run.asked_evidence is not None and run.evidence is None:
        for said in (Explanation.FLAKY, Explanation.UNEXPLAINED, Explanation.BASE_RED):
            evidence = Evidence(run.attempt, {"unit": said})
            told_so = inputs.EvidenceReported(run.id, evidence)
            yield f"r{run.number}: {said.value}", _telling(now, scope, told_so)


def _dooms(now: Scene, scope: Scope, run: Run, last: Check | None) -> Iterator[Move]:
    """What is foreseen of a check that has not ended: truly, wrongly, or of an old attempt."""
    if run.doomed:
        none = inputs.FailureForeseen(run.id, run.attempt, ())
        yield f"r{run.number}: its failure is taken back", _telling(now, scope, none)
    elif last is None and _may_be_doomed(scope, run):
        part = (Doomed("unit", "leg", f"9{run.attempt}", "g1"),)
        foreseen = inputs.FailureForeseen(run.id, run.attempt, part)
        yield f"r{run.number}: its failure is foreseen", _telling(now, scope, foreseen)
        old = inputs.FailureForeseen(run.id, run.attempt - 1, part)
        yield f"r{run.number}: an old failure is foreseen", _telling(now, scope, old)


def _may_be_doomed(scope: Scope, run: Run) -> bool:
    """Where CI never errs, only a main run is doomed wrongly: two wrong ones would blame."""
    if scope.breaks is None or run.kind is RunKind.MAIN:
        return True
    truth = properties.Truth(scene.TREES[run.steps[-1].tree], scope.breaks)
    return properties.fails((), truth)


def _report(run: Run, outcome: CheckOutcome) -> inputs.ChecksReported:
    number = 1 + max((int(check.id) for check in run.checks), default=0)
    checks = (a_check("unit", outcome, number),)
    return inputs.ChecksReported(run.id, run.sha or Sha(""), checks, True)


def _failed_by(now: Scene, scope: Scope, run: Run, names: tuple[str, ...]) -> Scene:
    """A run fails, and as soon as it has settled it is told by which tests: one input."""
    after = told(now, _report(run, CheckOutcome.FAILED), scope)
    after = told(replace(after, now=now.now + verdict.SETTLE), inputs.TimePassed(), scope)
    live = after.queue.runs.get(run.id)
    if live is None or live.asked_evidence is None:
        return after
    evidence = Evidence(
        live.attempt,
        {"unit": Explanation.UNEXPLAINED},
        failed_tests={"unit": names} if names else {},
        unexplained_tests=names,
    )
    return told(after, inputs.EvidenceReported(run.id, evidence), scope)


def _outcomes(
    now: Scene, scope: Scope, run: Run, last: CheckOutcome | None
) -> tuple[CheckOutcome, ...]:
    if scope.breaks is not None:
        truth = properties.Truth(scene.TREES[run.steps[-1].tree], scope.breaks)
        true = CheckOutcome.FAILED if properties.fails((), truth) else CheckOutcome.PASSED
        return () if last is true else (true,)
    said = [CheckOutcome.PASSED]
    if not scope.failed_tests:
        said.append(CheckOutcome.FAILED)
    if scope.interrupted:
        said.append(CheckOutcome.INTERRUPTED)
    if scope.skipped:
        said.append(CheckOutcome.SKIPPED)
    return tuple(outcome for outcome in said if outcome is not last)


def _landings(now: Scene, scope: Scope, action: Land) -> Iterator[Move]:
    """What can become of the landing in flight."""
    position = now.unread[0].position if now.unread else action.steps[0].position
    if now.unread:
        yield f"landed at {position} is reported", lambda: _heard(now, scope)
        return
    for code in (*_forced(now, action), *scope.stops):
        stop = inputs.LandingStopped(action.run, position, code, f"refused: {code.value}")
        yield f"landing stops: {code.value}", _telling(now, scope, stop)
    if _forced(now, action):
        return
    yield "it lands", lambda: _landed(now, action)
    if scope.unknown:
        yield "another tree lands", lambda: _another_tree(now, scope, action)


def _forced(now: Scene, action: Land) -> tuple[LandingStopCode, ...]:
    """Why the provider, or the permit, refuses."""
    step = action.steps[0]
    one = now.prs[step.pr - 1]
    if one.state is not PullRequestState.OPEN:
        return (LandingStopCode.CLOSED,)
    if trees.head_of(one.number, one.version) != step.head:
        return (LandingStopCode.HEAD_CHANGED,)
    if now.history[0] != action.expected_tip.sha:
        return (LandingStopCode.BASE_MOVED,)
    # Asked by the permit: what the pull request touches may have grown since the queue decided.
    if not landing.stands(now.queue, action.run, now.now):
        return (LandingStopCode.STALE,)
    return ()


def _landed(now: Scene, action: Land) -> Scene:
    """The branch moves; nothing of it is reported yet."""
    after, unread = now, []
    for step in action.steps:
        change = trees.change_of(step.pr, step.head)
        if change in after.tree:
            raise Violation(f"S2: {step.pr} landed twice")
        tree = after.tree | {change}
        _judge_landed(now, action, step.tree, tree)
        name = step.commit if action.mode == "CAS" else trees.sha(after.history[0], step.head)
        after = scene.moved(after, tree, name)
        merged = replace(now.prs[step.pr - 1], state=PullRequestState.MERGED, merged=name)
        after = _with(after, merged)
        unread.append(Landed(action.run, step.position, name, scene.tree_id(tree)))
    return replace(after, unread=tuple(unread))


def _judge_landed(now: Scene, action: Land, tested: Sha, tree: trees.Tree) -> None:
    """S1: it was tested as that tree, or others landed since that meet nothing of it."""
    if scene.tree_id(tree) == tested:
        return
    run = now.queue.runs[action.run]
    content = scene.TREES[tested]
    mine = [now.queue.entries[pr].touches for pr in run.prs if pr in now.queue.entries]
    extra = {scene.CHANGES.get(change, (0, 0))[0] for change in tree - content}
    theirs = [step.targets for step in now.queue.landed if step.pr in extra]
    meets = any(targets.meet(one, other) for one in mine for other in theirs)
    if action.proof == "exact_tree" or not content <= tree or 0 in extra or meets:
        raise Violation("S1: another tree landed than was tested")


def _heard(now: Scene, scope: Scope) -> Scene:
    first, rest = now.unread[0], now.unread[1:]
    return told(replace(now, unread=rest), first, scope)


def _another_tree(now: Scene, scope: Scope, action: Land) -> Scene:
    """Somebody pushed between the permit and the call."""
    step = action.steps[0]
    pushed = _pushed(now)
    tree = pushed.tree | {trees.change_of(step.pr, step.head)}
    name = trees.sha(pushed.history[0], step.head)
    after = scene.moved(pushed, tree, name)
    merged = replace(now.prs[step.pr - 1], state=PullRequestState.MERGED, merged=name)
    after = _with(after, merged)
    mismatch = inputs.LandingMismatch(
        action.run, step.position, (step.position,), after.tip, "other tree"
    )
    return told(after, mismatch, scope)


def _pushed(now: Scene) -> Scene:
    parent = now.history[0]
    change = ("foreign", parent)
    commit = trees.sha("foreign", parent)
    scene.FOREIGN_IN[change] = commit
    return scene.moved(now, now.tree | {change}, commit)


def _merged(now: Scene, one: PullRequest) -> Scene:
    name = trees.sha("by hand", now.history[0], one.number, one.version)
    after = scene.moved(now, now.tree | {one.change}, name)
    return _with(after, replace(one, state=PullRequestState.MERGED, merged=name))


def _tip_read(now: Scene, scope: Scope) -> Scene:
    by_hand = tuple(
        one.number
        for one in now.prs
        if one.state is PullRequestState.MERGED and one.number in now.queue.entries
    )
    in_flight = {step.pr for step in now.land.steps} if now.land is not None else set()
    prs = tuple(pr for pr in by_hand if pr not in in_flight)
    return told(now, inputs.TargetMoved(now.tip, prs), scope)


def _waited(now: Scene, scope: Scope) -> Scene:
    at = now.wake_at or now.now
    return told(replace(now, now=at), inputs.TimePassed(), scope)


def _crashed(now: Scene, scope: Scope) -> Scene:
    """Whatever was under way is dropped; everything is read again, and asked for again."""
    after = now
    if now.land is not None:
        position = now.land.steps[0].position
        stop = inputs.LandingStopped(
            now.land.run, position, LandingStopCode.STALE, "it never happened"
        )
        while after.unread:
            after = _heard(after, scope)
        if after.land is now.land:
            after = told(after, stop, scope)
    for one in now.prs:
        if one.number in after.queue.entries:
            after = told(after, inputs.FactsChanged(scene.facts_now(one)), scope)
    after = _tip_read(after, scope)
    for run in now.queue.runs.values():
        live = after.queue.runs.get(run.id)
        if live is not None and live.sha is not None and live.checks:
            again = inputs.ChecksReported(live.id, live.sha, live.checks, live.checks_complete)
            after = told(after, again, scope)
    return after


def _with(now: Scene, one: PullRequest) -> Scene:
    """The scene with this pull request as it is; what waited for one that has merged is free."""
    if one.state is PullRequestState.MERGED:
        free = [replace(each, below=0) if each.below == one.number else each for each in now.prs]
        now = replace(now, prs=tuple(free))
    prs = tuple(one if other.number == one.number else other for other in now.prs)
    return replace(now, prs=prs)


def _telling(now: Scene, scope: Scope, one: inputs.Input) -> Callable[[], Scene]:
    return lambda: told(now, one, scope)
