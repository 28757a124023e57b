"""The shell around the queue, as it must be: it builds branches and lands what was tested.

A landing needs a fresh permit and is proved; everything else that the provider may refuse, it
refuses now and then.
"""

import random
from dataclasses import replace
from datetime import timedelta

from service.mergequeue.engine import inputs
from service.mergequeue.engine.inputs import LandingStopCode, Report
from service.mergequeue.engine.model import LandMode, Run, RunStep
from service.mergequeue.engine.outputs import (
    Action,
    AskEvidence,
    BuildTestBranch,
    Land,
    LandStep,
    RerunChecks,
)
from service.mergequeue.engine.planning import landing
from service.mergequeue.engine.reported import Evidence
from service.mergequeue.engine.states import LANDS
from service.vocabulary import Explanation, PullRequestState, Sha
from tests.mergequeue import trees
from tests.mergequeue.trees import Tree
from tests.simulation.checker import Checker, Seen
from tests.simulation.people import People

FLAKY_TESTS = ("flaky 1", "flaky 2", "flaky 3")

UNKNOWN_FLAKES = 0.3
"""The share of flakes that nobody knows as such yet."""

_REFUSALS = tuple(code for code in LandingStopCode if code is not LandingStopCode.UNAVAILABLE)


class Shell(People):
    """What the queue's actions do to the world."""

    slow: random.Random
    slow_rate: float
    naming: random.Random
    naming_rate: float
    checker: Checker
    builds: list[BuildTestBranch]
    lands: list[Land]
    made: dict[tuple[Sha, ...], Sha]

    def _take(self, action: Action) -> None:
        if isinstance(action, BuildTestBranch):
            self.builds.append(action)
        elif isinstance(action, Land):
            self.lands.append(action)
        elif isinstance(action, RerunChecks):
            self._rerun(action)
        elif isinstance(action, AskEvidence) and self.chance.random() < 0.8:
            self.post.append(lambda: self._evidence(action))

    def _rerun(self, action: RerunChecks) -> None:
        run = self.queue.runs.get(action.run)
        if run is None or run.sha is None:
            return
        if self.chance.random() < 0.3:
            self.post.append(lambda: inputs.RerunRefused(action.run))
            return
        self.ci.again(run.sha, action.names)
        self.post.append(lambda: inputs.RerunStarted(action.run, action.attempt))

    def _evidence(self, action: AskEvidence) -> Report | None:
        run = self.queue.runs.get(action.run)
        if run is None or run.sha is None:
            return None
        said = {
            name: Explanation.FLAKY
            if (run.sha, name) in self.ci.flaked
            else Explanation.UNEXPLAINED
            for name in action.checks
        }
        own_head = tuple(pr for pr in run.prs if self._fails_alone(pr))
        weights = {pr: self.chance.choice((0.0, 0.5, 1.0, 4.0)) for pr in run.prs}
        if self.chance.random() < 0.5:
            own_head, weights = (), {}
        evidence = Evidence(run.attempt, said, f"print {run.prs}", own_head, weights)
        if self.naming.random() < self.naming_rate:
            evidence = self._with_tests(run, run.sha, evidence)
        return inputs.EvidenceReported(run.id, evidence)

    def _with_tests(self, run: Run, sha: Sha, evidence: Evidence) -> Evidence:
        """The evidence with all tests that failed; a new flake is not known as one."""
        tree = self.ci.commits[sha].tree
        said, failed = dict(evidence.explanations), {}
        for name, why in evidence.explanations.items():
            if why is Explanation.FLAKY and self.naming.random() < UNKNOWN_FLAKES:
                said[name] = Explanation.UNEXPLAINED
            failed[name] = self.truth.failed_tests(tree, name)
            if (sha, name) in self.ci.flaked:
                failed[name] += (self.naming.choice(FLAKY_TESTS),)
        known = {name for name, why in said.items() if why is Explanation.FLAKY}
        own = {test for name, tests in failed.items() if name not in known for test in tests}
        return replace(
            evidence,
            explanations=said,
            failed_tests={name: tests for name, tests in failed.items() if tests},
            unexplained_tests=tuple(sorted(own)),
        )

    def _fails_alone(self, pr: int) -> bool:
        change = trees.change_of(pr, self.facts[pr].head)
        return change in self.truth.broken

    def _builds_one(self) -> None:
        if not self.builds:
            return
        action = self.builds.pop(self.chance.randrange(len(self.builds)))
        if action.run not in self.queue.runs:
            return
        if self.chance.random() < 0.08 and not self.is_calm:
            code = self.chance.choice((inputs.BuildRefusal.OTHER, inputs.BuildRefusal.NAME_TAKEN))
            self.tell(inputs.TestBranchRefused(action.run, None, code, "refused"))
            return
        if self.slow_rate and not self.is_calm and self.slow.random() < self.slow_rate:
            self.builds.append(action)
            until = self.now + timedelta(seconds=self.slow.choice((30, 300)))
            self.tell(inputs.TestBranchDelayed(action.run, until, "no slot is left"))
            return
        self.tell(self._built(action))

    def _built(self, action: BuildTestBranch) -> Report:
        tree: Tree = self.target.tree_of(action.base_tip.sha)
        self.checker.trees[action.base_tip.sha] = tree
        if not action.steps:
            return self._of_tip(action, tree)
        commit = action.base_tip.sha
        steps: list[RunStep] = []
        heads: tuple[Sha, ...] = (commit,)
        for step in action.steps:
            heads = (*heads, step.head)
            change = trees.change_of(step.pr, step.head)
            if self.truth.conflicts(tree, change):
                return self._conflict(action, tree, change)
            is_in = change in tree
            if not is_in:
                tree |= {change}
                commit = self._commit(action, heads, commit)
                self.checker.trees[commit] = tree
            steps.append(RunStep(step.pr, step.head, commit, trees.tree_id(tree), is_in))
        tested = [step for step, head in zip(steps, action.steps, strict=True) if head.tested]
        if all(step.contained for step in tested):
            return inputs.NothingToTest(action.run)
        published = steps[-1].tree not in action.known_trees
        if published:
            self.ci.begin(commit, tree, self.names)
            self._seen(commit, tree)
        branch = f"headgate/{action.run}"
        return inputs.TestBranchBuilt(action.run, commit, tuple(steps), branch, published)

    def _of_tip(self, action: BuildTestBranch, tree: Tree) -> Report:
        """An empty commit on the tip, for its own test."""
        commit = trees.sha(action.base_tip.sha, "tip", action.run)
        self.checker.trees[commit] = tree
        self.ci.begin(commit, tree, self.names)
        self._seen(commit, tree)
        return inputs.TestBranchBuilt(action.run, commit, (), f"headgate/{action.run}", True)

    def _commit(self, action: BuildTestBranch, heads: tuple[Sha, ...], parent: Sha) -> Sha:
        """A merge; one that a run ahead made of the same heads is gone on from."""
        is_last = len(heads) == len(action.steps) + 1
        if is_last:
            self.made[heads] = trees.sha(parent, heads[-1], action.run)
        return self.made.get(heads) or trees.sha(parent, heads[-1], "")

    def _conflict(self, action: BuildTestBranch, tree: Tree, change: trees.Change) -> Report:
        base = self.target.tree_of(action.base_tip.sha)
        with_base = self.truth.conflicts(base, change)
        others = {trees.change_of(step.pr, step.head): step.pr for step in action.steps}
        culprit = next(
            (
                others[other]
                for pair in self.truth.conflict
                if change in pair
                for other in pair - {change}
                if other in tree and other in others
            ),
            None,
        )
        if self.chance.random() < 0.3:
            culprit = None
        return inputs.TestBranchConflicted(
            action.run, others[change], with_base, None if with_base else culprit, ("a.py",)
        )

    def _seen(self, commit: Sha, tree: Tree) -> None:
        self.checker.trees[commit] = tree
        self.checker.commits[commit] = Seen(tree, self.ci.reports(commit))

    # --- landing, as the shell must do it

    def _lands_one(self) -> None:
        if not self.lands:
            return
        action = self.lands.pop(0)
        first = action.steps[0]
        if self.chance.random() < 0.7:
            self.tell(inputs.FactsChanged(self._fresh(first.pr)))
            self.tell(self._tip())
        for step in action.steps:
            stop = self._refusal(action, step)
            if stop is not None:
                words = f"refused: {stop.value}"
                self.tell(inputs.LandingStopped(action.run, step.position, stop, words))
                return
        if self.chance.random() < 0.08 and not self.is_calm:
            self._lands_elsewhere(action)
            return
        run = self.queue.runs.get(action.run)
        landed = []
        for one in action.steps:
            tree = self.target.tree | {trees.change_of(one.pr, one.head)}
            sha = self.target.move(tree, one.commit if action.mode is LandMode.CAS else None)
            self._set(replace(self.facts[one.pr], state=PullRequestState.MERGED, merged_sha=sha))
            for commit, seen in self.checker.commits.items():
                seen.checks = self.ci.reports(commit)
            self.checker.landing(action, one, run, tree)
            landed.append(inputs.Landed(action.run, one.position, sha, trees.tree_id(tree)))
        for report in landed:
            self.tell(report)
        self._mail_tip()

    def _lands_elsewhere(self, action: Land) -> None:
        """Somebody pushes between the permit and the call."""
        self._foreign_change()
        step = action.steps[0]
        if action.mode is LandMode.CAS:
            moved = LandingStopCode.BASE_MOVED
            self.tell(inputs.LandingStopped(action.run, step.position, moved, "tip differs"))
            self._mail_tip()
            return
        change = trees.change_of(step.pr, step.head)
        sha = self.target.move(self.target.tree | {change})
        self._set(replace(self.facts[step.pr], state=PullRequestState.MERGED, merged_sha=sha))
        landed = (step.position,)
        tip = self.target.tip
        self.tell(inputs.LandingMismatch(action.run, step.position, landed, tip, "another tree"))

    def _refusal(self, action: Land, step: LandStep) -> LandingStopCode | None:
        """The conditions of a permit, on what is true now (docs/design/landing.md 3)."""
        queue = self.queue
        if not self.is_calm and self.chance.random() < 0.06:
            return self.chance.choice(_REFUSALS)
        if self.slow_rate and not self.is_calm and self.slow.random() < self.slow_rate:
            return LandingStopCode.UNAVAILABLE
        facts = self.facts[step.pr]
        if facts.state is not PullRequestState.OPEN:
            return LandingStopCode.CLOSED
        if facts.head != step.head:
            return LandingStopCode.HEAD_CHANGED
        if self.target.tip.sha != action.expected_tip.sha:
            return LandingStopCode.BASE_MOVED
        is_held = any(hold.scope != "START" for hold in queue.holds)
        if queue.state not in LANDS or is_held or facts.blockers:
            return LandingStopCode.STALE
        run = queue.runs.get(action.run)
        if run is None or not landing.stands(queue, run.id, self.now):
            return LandingStopCode.STALE
        if not self._is_green_still(run.steps[-1].tree, facts.own_skipped):
            return LandingStopCode.CHECKS_MISSING
        if self.truth.conflicts(self.target.tree, trees.change_of(step.pr, step.head)):
            return LandingStopCode.CONFLICT
        return None

    def _is_green_still(self, tree: Sha, skippable: tuple[str, ...]) -> bool:
        for commit, seen in self.checker.commits.items():
            seen.checks = self.ci.reports(commit)
            if trees.tree_id(seen.tree) == tree and self.checker.is_green(
                seen.checks, (), skippable
            ):
                return True
        return False
