"""People, a shell and its post around one queue: one seed is one history.

The post between CI, provider and queue loses, doubles, delays and reorders what it carries.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from service.mergequeue.engine import engine, inputs, invariants, targets
from service.mergequeue.engine.config import Mode, Toggle
from service.mergequeue.engine.inputs import Input, Report
from service.mergequeue.engine.outputs import BuildTestBranch, Land, Step
from service.mergequeue.engine.reported import Doomed, Facts, Rates
from service.mergequeue.engine.states import EntryState, QueueState, RunKind, RunStatus
from service.mergequeue.engine.targets import Targets
from service.vocabulary import (
    CheckOutcome,
    Sha,
)
from tests.mergequeue import trees
from tests.mergequeue.stage import ALICE, START, a_queue
from tests.mergequeue.trees import Change, Target
from tests.simulation import settings
from tests.simulation.checker import Checker
from tests.simulation.order import Violation
from tests.simulation.people import Post
from tests.simulation.shell import Shell
from tests.simulation.truth import CI, Ci, Truth, number_of

TURNS = 100
"""Things that happen before the world comes to rest."""

TURNS_TO_REST = 1500

Happenings = tuple[tuple[int, str], ...]

WHOLE_CHECK_EVERY = 4
"""Steps between two full checks of the value and of planning's idempotence."""


class World(Shell):
    """One history."""

    def __init__(self, seed: int, weights: settings.Weights = settings.DRAWN) -> None:
        chance = self.chance = random.Random(seed)
        self.now = START
        self.weights = weights
        self.happenings = happenings(weights)
        self.moves: dict[Change, Targets | None] = {}
        self.truth = Truth()
        self.has_flakes = chance.random() < 0.5
        self.ci = Ci(self.truth, chance, 0.08 if self.has_flakes else 0.0)
        # Drawn apart, so that a history without skipped checks is the same as ever.
        self.ci.skips = random.Random(f"skips {seed}")
        self.slow = random.Random(f"slow {seed}")
        self.slow_rate = 0.15 if self.slow.random() < weights.is_slow else 0.0
        self.revokes = random.Random(f"revokes {seed}")
        is_revoking = self.has_flakes and self.revokes.random() < weights.revokes
        self.revoke_rate = 0.08 if is_revoking else 0.0
        self.dooms = random.Random(f"dooms {seed}")
        self.doom_rate = 0.3 if self.dooms.random() < weights.dooms else 0.0
        self.wronged: set[str] = set()
        self.stacking = random.Random(f"stacks {seed}")
        self.stack_rate = 0.4 if self.stacking.random() < weights.stacks else 0.0
        self.bunches = random.Random(f"bunches {seed}")
        self.bunch_rate = 0.5 if self.bunches.random() < 0.5 else 0.0
        # Failed tests are named in half of the answers. Whose checks test a part is drawn too.
        self.naming = random.Random(f"tests {seed}")
        self.naming_rate = 0.5
        self.below: dict[int, int] = {}
        self.ci.skip_rate = 0.15 if self.ci.skips.random() < weights.skips_checks else 0.0
        self.target = Target()
        self.names: tuple[str, ...] = ("unit",)
        self.pin = CI if chance.random() < 0.5 else None
        self.facts: dict[int, Facts] = {}
        self.versions: dict[int, int] = {}
        self.post: list[Post] = []
        self.builds: list[BuildTestBranch] = []
        self.lands: list[Land] = []
        self.made: dict[tuple[Sha, ...], Sha] = {}
        self.merged_by_hand: set[int] = set()
        self.is_rewritten = False
        self.is_calm = False
        self.steps = 0
        self.checker = Checker(self.truth, self.has_flakes, moves=self.moves)
        config = settings.a_config(chance, weights)
        queue = a_queue(replace(config, full_suite=self.naming.random() < 0.5))
        rates = Rates() if self.naming.random() < 0.5 else queue.rates
        self.queue = replace(queue, rates=rates)
        self.wake_at: datetime | None = None
        self.tell(inputs.RequiredChanged(self.required()))
        if chance.random() < weights.sends_results:
            self.tell(inputs.RepositoryChanged(available=True, sends_results=True))
        if chance.random() < weights.reruns:
            self.tell(inputs.RepositoryChanged(reruns=True))

    def play(self) -> None:
        """Trouble, then rest. Raises Violation or InvariantBroken."""
        for _ in range(TURNS):
            self.now += timedelta(seconds=self.chance.choice((1, 5, 20, 90)))
            self._one_of(self.happenings)()
            if self.revoke_rate and self.revokes.random() < self.revoke_rate:
                self._revokes_a_pass()
            if self.doom_rate and self.dooms.random() < self.doom_rate:
                self._foresees()
            if self.wake_at is not None and self.wake_at <= self.now:
                self.tell(inputs.TimePassed())
        self.rest()

    def rest(self) -> None:
        """No more faults: everything arrives, CI answers, sweeps read everything again."""
        self.is_calm = True
        self.ci.flake_rate = self.ci.skip_rate = 0.0
        self.tell(inputs.SetState(QueueState.RUNNING, None, ALICE))
        self.checker.moved_at = self.now
        for _ in range(TURNS_TO_REST):
            if self._is_at_rest():
                break
            self._calm_turn()
            self.checker.stands_still(self.queue, self.now)
        self._sweep()
        self.checker.at_rest(self.queue)
        kept = self.queue.kept_move
        if (kept.tip if kept is not None else self.queue.tip) != self.target.tip:
            raise Violation("S6", "the queue stands on another tip than the branch's")
        invariants.check_whole(self.queue, self.now)

    def tell(self, one: Input) -> None:
        """Take one input; the checker looks at what follows."""
        self._after([one], engine.step(self.queue, one, self.now))

    def tell_together(self, reports: Sequence[Report]) -> None:
        """Take reports of one kind that arrived together."""
        self._after(reports, engine.step_reports(self.queue, reports, self.now))

    def _after(self, taken: Sequence[Input], step: Step) -> None:
        for each in taken:
            if isinstance(each, inputs.RequiredChanged):
                self.checker.is_known = each.error is None and each.required.source is not None
                if self.checker.is_known:
                    self.checker.required = each.required.names
        self.steps += 1
        if step.refusal is None and self.steps % WHOLE_CHECK_EVERY == 0:
            self._check_whole(step)
        self.queue = step.queue
        self.wake_at = step.wake_at
        self.checker.after(taken, step, self.now)
        for action in step.actions:
            self._take(action)

    def _check_whole(self, step: Step) -> None:
        invariants.check_whole(step.queue, self.now)
        again = engine.step(step.queue, inputs.TimePassed(), self.now)
        if again.queue is not step.queue or again.actions or again.events:
            raise Violation("E8", "planning again changed something")

    def _one_of(self, table: Happenings) -> Callable[[], None]:
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

    def _revokes_a_pass(self) -> None:
        """A job that was told to end with 0 reports another failure later.

        Not of a direct merge, where the checks of the head count as they are.
        """
        passed = [
            (run.id, check.id)
            for run in self.queue.runs.values()
            for check in self.ci.reports(run.sha or Sha(""))
            if check.outcome is CheckOutcome.PASSED
            and run.status is not RunStatus.FAILED
            and run.kind is not RunKind.DIRECT
        ]
        if passed:
            run, check = self.revokes.choice(passed)
            self.tell(inputs.PassRevoked(run, (check,)))

    def _foresees(self) -> None:
        """Checks are said to be unable to pass: truly, wrongly, of an old attempt, or not any more.

        Where CI never errs, wrongly only once of each pull request: two failed runs would blame it.
        """
        live = [run for run in self.queue.runs.values() if run.sha in self.ci.commits]
        if not live:
            return
        run = self.dooms.choice(live)
        tree = self.ci.commits[run.sha or Sha("")].tree
        ended = {
            check.name
            for check in self.ci.reports(run.sha or Sha(""))
            if check.outcome in (CheckOutcome.PASSED, CheckOutcome.FAILED, CheckOutcome.SKIPPED)
        }
        fails = [name for name in self.names if self.truth.fails(tree, name)]
        is_wrong = self.dooms.random() < 0.3
        said = [name for name in self.names if (name in fails) != is_wrong and name not in ended]
        entries = run.entry_ids
        if is_wrong and not self.has_flakes and (said and self.wronged & entries):
            said = []
        if is_wrong and said:
            self.wronged |= entries
        if self.dooms.random() < 0.2:
            said = []
        attempt = run.attempt - (self.dooms.random() < 0.1)
        number = str(self.dooms.randrange(10**6, 10**7))
        dooms = tuple(Doomed(name, f"leg of {name}", number, "legs") for name in said)
        self.tell(inputs.FailureForeseen(run.id, attempt, dooms))

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

    def _tip(self) -> Report:
        prs = tuple(sorted(self.merged_by_hand)) if self.chance.random() < 0.8 else ()
        return inputs.TargetMoved(self.target.tip, prs, self.is_rewritten, self._moved_targets())

    def _moved_targets(self) -> Targets | None:
        """What the moves that the queue does not know have to do with; None: unknown."""
        known = self.queue.tip
        if known is None or self.is_rewritten or not self.weights.parallel:
            return None
        before = self.target.tree_of(known.sha)
        names: set[str] = set()
        for change in self.target.tree ^ before:
            pr = number_of(change)
            said = self.moves.get(change) if pr is None else self.checker.claims.get(pr)
            if said is None or said.everything:
                return said
            names |= said.names
        return targets.of(names)

    def _post_comes(self) -> None:
        if not self.post:
            return
        index = self.chance.randrange(len(self.post))
        post = self.post.pop(index)
        one = post()
        if one is None:
            return
        if self.bunches.random() < self.bunch_rate:
            self._comes_together([one])
            return
        self.tell(one)
        if self.chance.random() < 0.1 and not self.is_calm:
            self._repeated(one)

    def _comes_together(self, taken: list[Report]) -> None:
        """More of the same kind arrives with it."""
        other = None
        while self.post and other is None:
            more = self.post.pop()()
            if type(more) is type(taken[0]):
                taken.append(more)
            else:
                other = more
        self.tell_together(taken)
        if other is not None:
            self.tell(other)

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

    def _loses_branch(self) -> None:
        if self.queue.runs:
            run = self.chance.choice(sorted(self.queue.runs))
            self.tell(inputs.TestBranchLost(run, "mallory"))

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
        for pr, entry in sorted(self.queue.entries.items()):
            if entry.targets is None and self.queue.config.mode is Mode.PARALLEL:
                self._uploads(pr)
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


_ALWAYS: Happenings = (
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


def happenings(weights: settings.Weights) -> Happenings:
    """What may happen in a turn of a history with these weights."""
    more: list[tuple[int, str]] = []
    if weights.parallel:
        more.append((4, "uploads"))
    if weights.switches:
        more.append((2, "switches_mode"))
    if weights.adaptive or weights.hedging:
        more.append((2, "estimates"))
    return (*_ALWAYS, *more)
