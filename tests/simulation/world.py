"""People, a shell and its post around one queue: one seed is one history.

The shell keeps the promises of its side (a landing needs a fresh permit and is proved); the post
between CI, provider and queue loses, doubles, delays and reorders what it carries.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from service.mergequeue import engine, inputs, invariants
from service.mergequeue.config import ConfirmFailures, QueueConfig, Toggle
from service.mergequeue.inputs import Input, LandingStopCode
from service.mergequeue.model import Evidence, Explanation, Facts, RunStep
from service.mergequeue.outputs import (
    Action,
    AskEvidence,
    BuildTestBranch,
    Land,
    RerunChecks,
    Step,
)
from service.mergequeue.states import LANDS, EntryState, QueueState
from service.vocabulary import (
    CheckOutcome,
    MergeMethod,
    PullRequestState,
    Sha,
)
from tests.mergequeue import trees
from tests.mergequeue.stage import ALICE, START, a_queue
from tests.mergequeue.trees import Target, Tree
from tests.simulation.checker import Checker, Seen, Violation
from tests.simulation.people import People, Post
from tests.simulation.truth import CI, Ci, Truth

TURNS = 100
"""Things that happen before the world comes to rest."""

TURNS_TO_REST = 1500

WHOLE_CHECK_EVERY = 4
"""Steps between two full checks of the value and of planning's idempotence."""


class World(People):
    """One history."""

    def __init__(self, seed: int) -> None:
        chance = self.chance = random.Random(seed)
        self.now = START
        self.truth = Truth()
        self.has_flakes = chance.random() < 0.5
        self.ci = Ci(self.truth, chance, 0.08 if self.has_flakes else 0.0)
        self.target = Target()
        self.names: tuple[str, ...] = ("unit",)
        self.pin = CI if chance.random() < 0.5 else None
        self.facts: dict[int, Facts] = {}
        self.versions: dict[int, int] = {}
        self.post: list[Post] = []
        self.builds: list[BuildTestBranch] = []
        self.lands: list[Land] = []
        self.merged_by_hand: set[int] = set()
        self.is_rewritten = False
        self.is_calm = False
        self.steps = 0
        self.checker = Checker(self.truth, self.has_flakes)
        self.queue = a_queue(_a_config(chance))
        self.wake_at: datetime | None = None
        self.tell(inputs.RequiredChanged(self.required()))
        if chance.random() < 0.3:
            self.tell(inputs.RepositoryChanged(available=True, sends_results=True))

    def play(self) -> None:
        """Trouble, then rest. Raises Violation or InvariantBroken."""
        for _ in range(TURNS):
            self.now += timedelta(seconds=self.chance.choice((1, 5, 20, 90)))
            self._one_of(_HAPPENINGS)()
            if self.wake_at is not None and self.wake_at <= self.now:
                self.tell(inputs.TimePassed())
        self.rest()

    def rest(self) -> None:
        """No more faults: everything arrives, CI answers, sweeps read everything again."""
        self.is_calm = True
        self.ci.flake_rate = 0.0
        self.tell(inputs.SetState(QueueState.RUNNING, None, ALICE))
        for _ in range(TURNS_TO_REST):
            if self._is_at_rest():
                break
            self._calm_turn()
        self._sweep()
        self.checker.at_rest(self.queue)
        kept = self.queue.kept_move
        if (kept.tip if kept is not None else self.queue.tip) != self.target.tip:
            raise Violation("S6", "the queue stands on another tip than the branch's")
        invariants.check_whole(self.queue, self.now)

    def tell(self, one: Input) -> None:
        """Take one input; the checker looks at what follows."""
        if isinstance(one, inputs.RequiredChanged):
            self.checker.is_known = one.error is None and one.required.source is not None
            if self.checker.is_known:
                self.checker.required = one.required.names
        step = engine.step(self.queue, one, self.now)
        if isinstance(one, inputs.FactsChanged | inputs.Submit) and step.refusal is None:
            self.checker.heads[one.facts.pr] = one.facts.head
        self.steps += 1
        if step.refusal is None and self.steps % WHOLE_CHECK_EVERY == 0:
            self._check_whole(step)
        self.queue = step.queue
        self.wake_at = step.wake_at
        self.checker.after(one, step, self.now)
        for action in step.actions:
            self._take(action)

    def _check_whole(self, step: Step) -> None:
        invariants.check_whole(step.queue, self.now)
        again = engine.step(step.queue, inputs.TimePassed(), self.now)
        if again.queue is not step.queue or again.actions or again.events:
            raise Violation("E8", "planning again changed something")

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

    def _evidence(self, action: AskEvidence) -> Input | None:
        run = self.queue.runs.get(action.run)
        if run is None or run.sha is None:
            return None
        said = {
            name: Explanation.FLAKY
            if (run.sha, name) in self.ci.flaked
            else Explanation.UNEXPLAINED
            for name in action.checks
        }
        return inputs.EvidenceReported(run.id, Evidence(run.attempt, said, f"print {run.prs}"))

    def _one_of(self, table: tuple[tuple[int, str], ...]) -> Callable[[], None]:
        weights = [weight for weight, _ in table]
        name = self.chance.choices([name for _, name in table], weights)[0]
        return getattr(self, f"_{name}")

    # --- the provider, CI and the post

    def _ci_moves(self) -> None:
        live = [run for run in self.queue.runs.values() if run.sha in self.ci.commits]
        if not live:
            return
        run = self.chance.choice(live)
        if run.sha is not None and self.ci.move(run.sha):
            self._mail_checks(run.id, run.sha)

    def _reruns_by_hand(self) -> None:
        """A person runs a check again, whatever it said before."""
        live = [run for run in self.queue.runs.values() if run.sha in self.ci.commits]
        if live:
            run = self.chance.choice(live)
            self.ci.again(run.sha or Sha(""), (self.chance.choice(self.names),))

    def _sleeps(self) -> None:
        """Nothing happens for hours; the queue is woken at every clock."""
        end = self.now + timedelta(hours=self.chance.choice((1, 6)))
        while self.wake_at is not None and self.wake_at <= end:
            self.now = self.wake_at
            self.tell(inputs.TimePassed())
        self.now = end

    def _mail_checks(self, run: str, sha: Sha) -> None:
        odd = self.chance.random()
        seen = self.ci.reports(sha)
        if odd < 0.15 and not self.is_calm:
            return
        if odd < 0.3 and not self.is_calm:
            self.post.append(lambda: inputs.ChecksReported(run, sha, seen, True))
        else:
            self.post.append(lambda: inputs.ChecksReported(run, sha, self.ci.reports(sha), True))
        if odd > 0.9:
            head = self.facts[sorted(self.facts)[0]].head
            good = tuple(replace(check, outcome=CheckOutcome.PASSED) for check in seen)
            self.post.append(lambda: inputs.ChecksReported(run, head, good, True))

    def _mail_tip(self) -> None:
        if self.is_calm or self.chance.random() < 0.8:
            self.post.append(self._tip)
        if self.chance.random() < 0.1 and len(self.target.commits) > 1:
            sha, tree = self.target.commits[-2]
            old = replace(self.target.tip, sha=sha, tree=trees.tree_id(tree))
            known = {step.sha for step in self.queue.landed}
            if sha in known:
                self.post.append(lambda: inputs.TargetMoved(old))

    def _tip(self) -> Input:
        prs = tuple(sorted(self.merged_by_hand)) if self.chance.random() < 0.8 else ()
        return inputs.TargetMoved(self.target.tip, prs, self.is_rewritten)

    def _post_comes(self) -> None:
        if not self.post:
            return
        index = self.chance.randrange(len(self.post))
        post = self.post.pop(index)
        one = post()
        if one is None:
            return
        self.tell(one)
        if self.chance.random() < 0.1 and not self.is_calm:
            self._repeated(one)

    def _repeated(self, one: Input) -> None:
        """The same report at once again changes nothing."""
        before = self.queue
        self.tell(one)
        if self.queue is not before:
            raise Violation("S6", f"{type(one).__name__} counted twice")

    def _fresh(self, pr: int) -> Facts:
        """What the provider says now."""
        facts = self.facts[pr]
        if self.queue.config.direct_merge_mode != Toggle.ALWAYS:
            return facts
        tree = self.target.tree | {trees.change_of(pr, facts.head)}
        self.ci.begin(facts.head, tree, self.names)
        commit = self.ci.commits[facts.head]
        if commit.tree != tree:
            return replace(facts, own_checks=self.ci.reports(facts.head))
        self._seen(facts.head, tree)
        return replace(
            facts,
            own_checks=self.ci.reports(facts.head),
            contains_tip=self.target.tip.sha,
            head_tree=trees.tree_id(tree),
        )

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
        self.tell(self._built(action))

    def _built(self, action: BuildTestBranch) -> Input:
        tree: Tree = self.target.tree_of(action.base_tip.sha)
        commit = action.base_tip.sha
        steps: list[RunStep] = []
        for step in action.steps:
            change = trees.change_of(step.pr, step.head)
            if self.truth.conflicts(tree, change):
                return self._conflict(action, tree, change)
            is_in = change in tree
            if not is_in:
                tree |= {change}
                last = step is action.steps[-1]
                commit = trees.sha(commit, step.head, action.run if last else "")
            steps.append(RunStep(step.pr, step.head, commit, trees.tree_id(tree), is_in))
        if steps[-1].contained:
            return inputs.NothingToTest(action.run)
        published = steps[-1].tree not in action.known_trees
        self.checker.trees[commit] = tree
        if published:
            self.ci.begin(commit, tree, self.names)
            self._seen(commit, tree)
        branch = f"headgate/{action.run}"
        return inputs.TestBranchBuilt(action.run, commit, tuple(steps), branch, published)

    def _conflict(self, action: BuildTestBranch, tree: Tree, change: trees.Change) -> Input:
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

    def _loses_branch(self) -> None:
        if self.queue.runs:
            run = self.chance.choice(sorted(self.queue.runs))
            self.tell(inputs.TestBranchLost(run, "mallory"))

    # --- landing, as the shell must do it

    def _lands_one(self) -> None:
        if not self.lands:
            return
        action = self.lands.pop(0)
        step = action.steps[0]
        if self.chance.random() < 0.7:
            self.tell(inputs.FactsChanged(self._fresh(step.pr)))
            self.tell(self._tip())
        stop = self._refusal(action)
        if stop is not None:
            self.tell(inputs.LandingStopped(action.run, 1, stop, f"refused: {stop.value}"))
            return
        if self.chance.random() < 0.08 and not self.is_calm:
            self._lands_elsewhere(action)
            return
        for one in action.steps:
            tree = self.target.tree | {trees.change_of(one.pr, one.head)}
            name = one.commit if action.mode == "CAS" else None
            sha = self.target.move(tree, name)
            self._set(replace(self.facts[one.pr], state=PullRequestState.MERGED, merged_sha=sha))
            for commit, seen in self.checker.commits.items():
                seen.checks = self.ci.reports(commit)
            self.checker.landing(one.pr, one.head, tree)
            self.tell(inputs.Landed(action.run, one.position, sha, trees.tree_id(tree)))
            self._mail_tip()

    def _lands_elsewhere(self, action: Land) -> None:
        """Somebody pushes between the permit and the call."""
        self.target.move(self.target.tree | {("foreign", str(len(self.target.commits)))})
        if action.mode == "CAS":
            self.tell(
                inputs.LandingStopped(action.run, 1, LandingStopCode.BASE_MOVED, "tip differs")
            )
            self._mail_tip()
            return
        step = action.steps[0]
        change = trees.change_of(step.pr, step.head)
        sha = self.target.move(self.target.tree | {change})
        self._set(replace(self.facts[step.pr], state=PullRequestState.MERGED, merged_sha=sha))
        tip = self.target.tip
        self.tell(inputs.LandingMismatch(action.run, 1, True, tip, "another tree"))

    def _refusal(self, action: Land) -> LandingStopCode | None:
        """The conditions of a permit, on what is true now (RELIABILITY.md 2)."""
        queue, step = self.queue, action.steps[0]
        if not self.is_calm and self.chance.random() < 0.06:
            return self.chance.choice(tuple(LandingStopCode))
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
        if run is None or not self._is_green_still(run.steps[-1].tree):
            return LandingStopCode.CHECKS_MISSING
        return None

    def _is_green_still(self, tree: Sha) -> bool:
        for commit, seen in self.checker.commits.items():
            seen.checks = self.ci.reports(commit)
            if trees.tree_id(seen.tree) == tree and self.checker.is_green(seen.checks):
                return True
        return False

    # --- rest

    def _calm_turn(self) -> None:
        while self.builds:
            self._builds_one()
        while self.lands:
            self._lands_one()
        while self.post:
            self._post_comes()
        moved = False
        for run in list(self.queue.runs.values()):
            if run.sha in self.ci.commits and run.sha is not None and self.ci.move(run.sha):
                moved = True
                self._mail_checks(run.id, run.sha)
        if not (moved or self.builds or self.lands or self.post):
            self._sweep()
            self._releases()
            wake = self.wake_at
            wait = self.now + timedelta(minutes=1)
            self.now = wait if wake is None else max(self.now, min(wake, wait))
            self.tell(inputs.TimePassed())

    def _sweep(self) -> None:
        """Everything is read again."""
        for pr in sorted(self.queue.entries):
            if pr in self.queue.entries:
                self.tell(inputs.FactsChanged(self._fresh(pr)))
        self.tell(inputs.RequiredChanged(self.required()))
        self.ci.need(self.names)
        self.tell(self._tip())
        self.tell(inputs.RulesChanged())
        for run in list(self.queue.runs.values()):
            if run.sha is not None and run.sha in self.ci.commits:
                reports = self.ci.reports(run.sha)
                self.tell(inputs.ChecksReported(run.id, run.sha, reports, True))

    def _is_at_rest(self) -> bool:
        if self.post or self.builds or self.lands:
            return False
        return all(
            entry.state is EntryState.NOT_READY and self.facts[entry.pr].blockers
            for entry in self.queue.entries.values()
        )


_HAPPENINGS: tuple[tuple[int, str], ...] = (
    (14, "opens"),
    (3, "submits"),
    (4, "pushes"),
    (3, "cancels"),
    (2, "restarts"),
    (3, "reviews"),
    (1, "closes"),
    (2, "merges_by_hand"),
    (3, "foreign_push"),
    (1, "rewrites"),
    (3, "sets_state"),
    (3, "holds"),
    (3, "requires"),
    (1, "configures"),
    (2, "reruns_by_hand"),
    (1, "sleeps"),
    (1, "loses_branch"),
    (50, "ci_moves"),
    (50, "post_comes"),
    (25, "builds_one"),
    (20, "lands_one"),
)
"""What may happen in a turn, by weight."""


def _a_config(chance: random.Random) -> QueueConfig:
    return QueueConfig(
        concurrency=chance.randint(1, 4),
        bisection_concurrency=chance.randint(0, 2),
        confirm_failures=chance.choice(tuple(ConfirmFailures)),
        auto_retry_limit=chance.randint(0, 2),
        merge_method=chance.choice((MergeMethod.SQUASH, MergeMethod.MERGE_COMMIT)),
        direct_merge_mode=chance.choice((Toggle.OFF, Toggle.OFF, Toggle.ALWAYS)),
        result_reuse_enabled=chance.random() < 0.8,
        not_ready_timeout_hours=0,
    )
