"""One state of a small world: a queue, the branch and the pull requests as they really are.

What was sent but not answered yet (builds, a landing), and what happened but was not reported
yet (pushes, moves of the branch), is part of it. A scene is a value; `told` gives the next one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache

from service.mergequeue.engine import engine
from service.mergequeue.engine.inputs import Input, Landed, RepositoryChanged, TestBranchBuilt
from service.mergequeue.engine.model import MergeQueue, RunStep, Tip
from service.mergequeue.engine.outputs import BuildTestBranch, Land
from service.mergequeue.engine.reported import Facts, Rates
from service.vocabulary import Blocker, BlockerCode, PullRequestState, Sha
from tests.exhaustive import properties
from tests.exhaustive.scopes import Scope
from tests.mergequeue import trees
from tests.mergequeue.stage import START, a_queue, facts_of
from tests.mergequeue.trees import Change, Target, Tree

HISTORY_KEPT = 8
"""Commits of the branch that a live run may still look back to."""


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request as it is: pushes so far, and where it was merged by hand, if it was.

    `below` is the unmerged member of its stack that it waits for, 0 for none.
    """

    number: int
    version: int = 1
    state: PullRequestState = PullRequestState.OPEN
    merged: Sha | None = None
    in_stack: bool = False
    below: int = 0

    @property
    def change(self) -> Change:
        """What it brings into a tree."""
        return change_of(self.number, self.version)


@dataclass(frozen=True, slots=True)
class Scene:
    """A state.

    `history` are the branch's newest commits, newest first; `unread` are steps of the landing in
    flight that happened and were not reported; `heard` is the input that led here.
    """

    queue: MergeQueue
    now: datetime
    wake_at: datetime | None
    history: tuple[Sha, ...]
    tree: Tree
    prs: tuple[PullRequest, ...] = ()
    builds: Mapping[str, BuildTestBranch] = field(default_factory=dict)
    land: Land | None = None
    unread: tuple[Landed, ...] = ()
    heard: Input | None = None

    @property
    def tip(self) -> Tip:
        """The branch as it is."""
        return Tip(self.history[0], tree_id(self.tree))


TREES: dict[Sha, Tree] = {}
"""Commit or tree id → content, of everything that was ever made in this process."""

CHANGES: dict[Change, tuple[int, int]] = {}
"""What a pull request brings → its number and version."""

FOREIGN_IN: dict[Change, Sha] = {}
"""What others brought → the commit that brought it."""


def beginning(scope: Scope) -> Scene:
    """An empty queue on an untouched branch."""
    target = Target()
    _learn(target.tip.sha, target.tree)
    queue = a_queue(scope.config)
    if scope.is_new:
        queue = replace(queue, rates=Rates())
    if scope.evidence or scope.failed_tests:
        sends = RepositoryChanged(available=True, sends_results=True)
        queue = engine.step(queue, sends, START).queue
    if scope.reruns:
        queue = engine.step(queue, RepositoryChanged(reruns=True), START).queue
    return Scene(queue, START, None, (target.tip.sha,), target.tree)


def told(scene: Scene, one: Input, scope: Scope) -> Scene:
    """The scene after the queue took an input. Raises Violation or InvariantBroken."""
    step = engine.step(scene.queue, one, scene.now)
    if step.queue is scene.queue and not step.actions:
        if step.wake_at == scene.wake_at:
            return scene
        return replace(scene, wake_at=step.wake_at)
    properties.judge(scene.queue, one, step, properties.Truth(scene.tree, scope.breaks))
    queue, land = step.queue, scene.land
    builds = {run: build for run, build in scene.builds.items() if run in queue.runs}
    for action in step.actions:
        if isinstance(action, BuildTestBranch) and action.run in queue.runs:
            builds[action.run] = action
        elif isinstance(action, Land):
            land = action
    if isinstance(one, TestBranchBuilt):
        builds.pop(one.run, None)
    return replace(
        scene,
        queue=queue,
        wake_at=step.wake_at,
        builds=builds,
        land=land if queue.landing is not None else None,
        heard=one,
    )


def moved(scene: Scene, tree: Tree, commit: Sha) -> Scene:
    """The branch has a new tip; nobody has told the queue."""
    _learn(commit, tree)
    history = (commit, *scene.history)[:HISTORY_KEPT]
    return replace(scene, history=history, tree=tree)


@lru_cache(maxsize=4096)
def facts_now(one: PullRequest) -> Facts:
    """What the provider says of a pull request."""
    known = facts_of(one.number, one.version)
    known = replace(known, state=one.state, merged_sha=one.merged, in_stack=one.in_stack)
    if not one.below:
        return known
    waits = Blocker(BlockerCode.STACKED, str(one.below))
    return replace(known, base=f"part-{one.below}", blockers=(waits,))


@lru_cache(maxsize=1024)
def change_of(number: int, version: int) -> Change:
    """What a pull request brings into a tree after so many pushes."""
    change = trees.change_of(number, trees.head_of(number, version))
    CHANGES[change] = (number, version)
    return change


@lru_cache(maxsize=65536)
def tree_id(tree: Tree) -> Sha:
    """The id of a tree; its content can be looked up by it from now on."""
    name = trees.tree_id(tree)
    TREES[name] = tree
    return name


def steps_of(scene: Scene, action: BuildTestBranch) -> tuple[RunStep, ...]:
    """What building the run's branch gives, if nothing conflicts."""
    made = _made(scene.queue)
    tree, commit = TREES[action.base_tip.sha], action.base_tip.sha
    heads: tuple[Sha, ...] = ()
    steps = []
    for index, head in enumerate(action.steps):
        change = trees.change_of(head.pr, head.head)
        is_in = change in tree
        heads = (*heads, head.head)
        if not is_in:
            tree |= {change}
            is_last = index == len(action.steps) - 1
            known = None if is_last else made.get((action.base_tip.sha, heads))
            commit = known or trees.sha(commit, head.head, action.run if is_last else "")
            _learn(commit, tree)
        steps.append(RunStep(head.pr, head.head, commit, tree_id(tree), is_in))
    return tuple(steps)


def _made(queue: MergeQueue) -> dict[tuple[Sha, tuple[Sha, ...]], Sha]:
    """Commits of live runs by the tip and the heads they were built of."""
    return {
        (run.base_tip.sha, tuple(step.head for step in run.steps)): run.sha
        for run in queue.runs.values()
        if run.sha is not None
    }


def _learn(commit: Sha, tree: Tree) -> None:
    TREES[commit] = tree
    tree_id(tree)
