"""People and what they do to a queue: submit, push, merge by hand, hold, change the rules."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from service.mergequeue.engine import inputs, targets
from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.inputs import Input, Report
from service.mergequeue.engine.model import MergeQueue, RequiredSet
from service.mergequeue.engine.reasons import LIFTED_BY_PERSON, HoldReason, Reason
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.states import QueueState
from service.vocabulary import (
    SYSTEM,
    Blocker,
    BlockerCode,
    PullRequestState,
    RequiredName,
    RequiredSource,
)
from tests.mergequeue import trees
from tests.mergequeue.stage import ALICE, facts_of
from tests.mergequeue.trees import Target
from tests.simulation import settings
from tests.simulation.settings import TARGETS
from tests.simulation.truth import Ci, Truth

PULL_REQUESTS_MAX = 9

Post = Callable[[], Report | None]


class People:
    """Everybody with an account; the world around them fills in the rest."""

    chance: random.Random
    now: datetime
    truth: Truth
    ci: Ci
    target: Target
    weights: settings.Weights
    moves: dict[trees.Change, targets.Targets | None]
    names: tuple[str, ...]
    pin: str | None
    queue: MergeQueue
    facts: dict[int, Facts]
    versions: dict[int, int]
    stacking: random.Random
    stack_rate: float
    below: dict[int, int]
    merged_by_hand: set[int]
    is_rewritten: bool
    is_calm: bool
    post: list[Post]

    def tell(self, one: Input) -> None:
        """Give the queue an input."""
        raise NotImplementedError

    def _fresh(self, pr: int) -> Facts:
        raise NotImplementedError

    def _mail_tip(self) -> None:
        raise NotImplementedError

    def _tip(self) -> Report:
        raise NotImplementedError

    def required(self) -> RequiredSet:
        """What the branch's rules require now."""
        names = tuple(RequiredName(name, self.pin) for name in self.names)
        return RequiredSet(names, RequiredSource.BRANCH_PROTECTION)

    def _any_entry(self) -> int | None:
        return self.chance.choice(sorted(self.queue.entries)) if self.queue.entries else None

    def _opens(self) -> None:
        pr = len(self.facts) + 1
        if pr > PULL_REQUESTS_MAX:
            return
        self.versions[pr] = 1
        facts = facts_of(pr)
        if self.chance.random() < 0.1:
            facts = replace(facts, blockers=(Blocker(BlockerCode.REVIEW_REQUIRED),))
        if self.chance.random() < 0.1:
            facts = replace(facts, is_fork=True, authorized_head=facts.head)
        if self.stack_rate and self.stacking.random() < self.stack_rate:
            facts = self._stacked(facts)
        self._set(replace(facts, own_skipped=self.ci.skipped_on_head()))
        self._make_truth(pr)
        self._submits(pr)
        if self.weights.parallel and self.chance.random() < 0.1:
            self._uploads(pr)

    def _stacked(self, facts: Facts) -> Facts:
        """Put it on the newest pull request, if that is open: as a native stack or as a chain."""
        below = self.facts.get(facts.pr - 1)
        if below is None or below.state is not PullRequestState.OPEN:
            return facts
        self.below[facts.pr] = below.pr
        is_native = self.stacking.random() < 0.7
        if is_native:
            self._set(replace(below, in_stack=True))
            self._mail_facts(below.pr)
        waits = Blocker(BlockerCode.STACKED, str(below.pr))
        return replace(
            facts,
            base=f"part-{below.pr}",
            blockers=(*facts.blockers, waits),
            is_fork=False,
            authorized_head=None,
            in_stack=is_native,
        )

    def _submits(self, pr: int | None = None) -> None:
        if pr is None:
            if not self.facts:
                return
            pr = self.chance.choice(sorted(self.facts))
        priority = self.chance.choice((None, None, None, 10, 200, 0))
        submit = inputs.Submit(self._fresh(pr), ALICE, priority)
        if self.weights.batch and self.chance.random() < 0.1:
            submit = replace(submit, no_batch=True)
        if self.weights.adaptive or self.weights.hedging:
            submit = replace(submit, p_fail=self._estimate(pr))
        if self.weights.parallel and self.chance.random() < 0.8:
            submit = replace(submit, targets=self._claim(pr))
        self.tell(submit)

    def _estimate(self, pr: int) -> float:
        """A chance of failing that knows a little."""
        change = trees.change_of(pr, self.facts[pr].head)
        is_bad = change in self.truth.broken
        return round(self.chance.betavariate(3, 4) if is_bad else self.chance.betavariate(1, 8), 3)

    def _estimates(self) -> None:
        pr = self._any_entry()
        if pr is not None:
            self.tell(inputs.EstimateChanged(pr, self._estimate(pr)))

    def _claim(self, pr: int) -> targets.Targets:
        """What a pull request is said to touch: all it does, and perhaps more."""
        change = trees.change_of(pr, self.facts[pr].head)
        if self.chance.random() < self.weights.impacts_all:
            return targets.ALL
        more = self.chance.sample(TARGETS, self.chance.choice((0, 0, 0, 1)))
        return targets.of(self.truth.touched[change].union(more))

    def _uploads(self, pr: int | None = None) -> None:
        """The newest word on what it touches; it may grow and shrink."""
        pr = pr or self._any_entry()
        if pr is not None:
            head = self.facts[pr].head
            self.tell(inputs.SetImpactedTargets(pr, head, self._claim(pr), ALICE))

    def _switches_mode(self) -> None:
        mode = self.chance.choice(tuple(Mode))
        self.tell(inputs.Configure({"mode": mode}, ALICE))

    def _pushes(self) -> None:
        pr = self._any_entry()
        if pr is None or self.facts[pr].state is not PullRequestState.OPEN:
            return
        self.versions[pr] += 1
        self._set(replace(self.facts[pr], head=trees.head_of(pr, self.versions[pr])))
        self._make_truth(pr)
        self._mail_facts(pr)
        if self.chance.random() < 0.7:
            self._submits(pr)

    def _cancels(self) -> None:
        pr = self._any_entry()
        if pr is not None:
            self.tell(inputs.Cancel(pr, Reason.USER_REQUESTED, ALICE))

    def _restarts(self) -> None:
        pr = self._any_entry()
        if pr is not None:
            self.tell(inputs.Restart(pr, ALICE))

    def _reviews(self) -> None:
        pr = self._any_entry()
        if pr is not None:
            review = Blocker(BlockerCode.REVIEW_REQUIRED)
            blocked = [one for one in self.facts[pr].blockers if one != review]
            blocked += [] if review in self.facts[pr].blockers else [review]
            self._set(replace(self.facts[pr], blockers=tuple(blocked)))
            self._mail_facts(pr)

    def _closes(self) -> None:
        pr = self._any_entry()
        if pr is not None and self.facts[pr].state is PullRequestState.OPEN:
            self._set(replace(self.facts[pr], state=PullRequestState.CLOSED))
            self._mail_facts(pr)

    def _merges_by_hand(self) -> None:
        pr = self._any_entry()
        if pr is None or self.facts[pr].state is not PullRequestState.OPEN:
            return
        change = trees.change_of(pr, self.facts[pr].head)
        if self.truth.conflicts(self.target.tree, change):
            return
        sha = self.target.move(self.target.tree | {change})
        self._set(replace(self.facts[pr], state=PullRequestState.MERGED, merged_sha=sha))
        self.merged_by_hand.add(pr)
        self._mail_facts(pr)
        self._mail_tip()

    def _foreign_push(self) -> None:
        same = self.chance.random() < 0.3
        if not same:
            self._foreign_change()
        else:
            self.target.move(self.target.tree)
        self._mail_tip()

    def _foreign_change(self) -> None:
        """Somebody brings something of his own onto the branch."""
        change = ("foreign", str(len(self.target.commits)))
        self.truth.touch(change, self.chance)
        known = self.weights.parallel and self.chance.random() < 0.5
        self.moves[change] = targets.of(self.truth.touched[change]) if known else None
        self.target.move(self.target.tree | {change})

    def _rewrites(self) -> None:
        if len(self.target.commits) < 2 or self.chance.random() < 0.7:
            return
        self.target.move(frozenset({("foreign", f"rewritten {len(self.target.commits)}")}))
        self.is_rewritten = True
        self._mail_tip()

    def _sets_state(self) -> None:
        state = self.chance.choice(
            (QueueState.RUNNING, QueueState.RUNNING, QueueState.PAUSED, QueueState.DRAINING)
        )
        self.tell(inputs.SetState(state, "why not", ALICE))

    def _holds(self) -> None:
        if self.queue.holds:
            self._releases()
            return
        until = self.now + timedelta(minutes=5) if self.chance.random() < 0.5 else None
        self.tell(inputs.PlaceHold(HoldReason.FREEZE, None, "freeze", ALICE, until))

    def _releases(self) -> None:
        """A person lifts what people may lift."""
        for hold in self.queue.holds:
            if hold.reason not in LIFTED_BY_PERSON | {HoldReason.PERMISSION_LOST}:
                continue
            actor = ALICE if hold.reason is HoldReason.FREEZE else SYSTEM
            self.tell(inputs.ReleaseHold(hold.id, "seen", actor))
            self.is_rewritten = False

    def _requires(self) -> None:
        odd = self.chance.random()
        if odd < 0.3:
            self.tell(inputs.RequiredChanged(RequiredSet(), "403"))
        elif odd < 0.5:
            self.tell(inputs.RequiredChanged(RequiredSet()))
        elif odd < 0.8:
            self.names = ("unit", "lint") if len(self.names) == 1 else ("unit",)
            self.ci.need(self.names)
        self.post.append(lambda: inputs.RequiredChanged(self.required()))

    def _configures(self) -> None:
        self.tell(inputs.Configure(settings.a_change(self.chance, self.weights), ALICE))

    def _make_truth(self, pr: int) -> None:
        change = trees.change_of(pr, self.facts[pr].head)
        self.truth.touch(change, self.chance)
        if self.chance.random() < 0.15:
            self.truth.broken[change] = self.chance.choice(("unit", "unit", "lint"))
        for other, facts in self.facts.items():
            pair = frozenset({change, trees.change_of(other, facts.head)})
            if other == pr or len(pair) < 2 or not self._may_meet(pair):
                continue
            if self.chance.random() < 0.04:
                self.truth.fail_together.add(pair)
            elif self.chance.random() < 0.06:
                self.truth.conflict.add(pair)

    def _may_meet(self, pair: frozenset[trees.Change]) -> bool:
        """In one line everybody meets; claims of disjointness are true wherever they count."""
        return not self.weights.parallel or self.truth.share(pair)

    def _set(self, facts: Facts) -> None:
        self.facts[facts.pr] = facts
        if facts.state is not PullRequestState.MERGED:
            return
        for above in [pr for pr, below in self.below.items() if below == facts.pr]:
            # The provider bases it on the target; nobody may hear of that at once.
            del self.below[above]
            rest = [b for b in self.facts[above].blockers if b.code is not BlockerCode.STACKED]
            self._set(replace(self.facts[above], base="main", blockers=tuple(rest)))
            self._mail_facts(above)

    def _mail_facts(self, pr: int) -> None:
        if self.is_calm or self.chance.random() < 0.8:
            self.post.append(lambda: inputs.FactsChanged(self._fresh(pr)))
