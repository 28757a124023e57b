"""How agents and people act: they open, submit, submit again, repair, rebase, and give up.

An agent that is told only that it failed submits the same head up to three times before it looks
for the reason; public repositories report just this. Told by a verdict, it does at once what the
verdict says. A person repairs what fails, and submits again what failed for no reason.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from tests.bench.agents.gate import Answer, Gate
from tests.bench.agents.world import Head, Kind, PullRequest, World
from tests.bench.scheduling import chance

SAME_AGAIN_MAX = 3
"""Submissions of an unchanged head after the first one."""

ATTEMPTS_MAX, REPAIRS_MAX = 12, 3
REPAIRED = 0.8
"""The chance that a repair repairs."""

LATER_MIN = 60.0
"""What has failed SAME_AGAIN_MAX times for a clash that is not with the branch waits so long."""

UNTOLD_MIN = 60.0
"""Until somebody tells an agent what a hold without a verdict means."""


@dataclass(frozen=True)
class Pace:
    """Minutes: until one looks, rebases, repairs; pushes include the checks of the new head."""

    looks: float
    rebases: float
    repairs: float


AGENT, PERSON = Pace(2, 25, 30), Pace(10, 40, 60)


class End(StrEnum):
    """How a submission ends in the queue."""

    LANDED = "landed"
    FAILED = "failed"
    CLASHED = "clashed"


@dataclass(slots=True)
class Work:
    """One pull request as its author sees it; `is_done`: it landed, was superseded or dropped.

    `submitted` counts submissions, `refused` those that never entered; `clashes` and `rebases`
    count ends by a clash and rebases. `entered_s` and `first_end_s` are when it first entered the
    queue, and when it first left it, however it ended.
    """

    pr: PullRequest
    head: Head
    same_again: int = 0
    repairs: int = 0
    submitted: int = 0
    refused: int = 0
    clashes: int = 0
    rebases: int = 0
    waits_for: set[int] = field(default_factory=set)
    is_done: bool = False
    entered_s: float | None = None
    first_end_s: float | None = None
    landed_s: float | None = None


class Clockwork(Protocol):
    """What the authors ask of the world around them."""

    now: float

    def after(self, minutes: float, act: Callable[[], None]) -> None:
        """Do something later."""

    def enter(self, head: Head) -> None:
        """Put a head into the queue."""

    def queued(self) -> Iterable[int]:
        """The heads in the queue, in the order in which they entered."""


class Authors:
    """All agents and people; `told`: they get verdicts, `warned`: the conflict radar's too."""

    def __init__(
        self, world: World, gate: Gate, clock: Clockwork, *, told: bool, warned: bool
    ) -> None:
        self.work: list[Work] = []
        self._world, self._gate, self._clock = world, gate, clock
        self._told, self._warned = told, warned
        self._waiters: defaultdict[int, list[Work]] = defaultdict(list)

    def open(self, submitter: int, *, is_person: bool) -> None:
        """Open a pull request and submit it."""
        pr = self._world.open(submitter, self._clock.now, is_person=is_person)
        work = Work(pr, self._world.push(pr))
        self.work.append(work)
        self._submit(work)

    def ended(self, head: Head, end: End) -> None:
        """A submission ended."""
        work = self.work[head.pr]
        if work.first_end_s is None:
            work.first_end_s = self._clock.now
        for waiter in self._waiters.pop(head.id, ()):
            waiter.waits_for.discard(head.id)
            if not waiter.waits_for:
                self._soon(waiter, self._submit)
        if end is End.LANDED:
            work.is_done, work.landed_s = True, self._clock.now
        elif end is End.CLASHED:
            work.clashes += 1
            self._soon(work, self._clashed)
        else:
            self._soon(work, self._failed)

    # -- submitting ------------------------------------------------------------------------------

    def _submit(self, work: Work) -> None:
        """Submit what merges with the branch; anybody sees on the pull request whether it does."""
        if self._world.clash_of(work.head.id) is not None:
            self._rebase(work)
        elif not (self._warned and self._waits(work)):
            self._ask(work)

    def _waits(self, work: Work) -> bool:
        """Whether it waits until the queued ones with which it clashes are decided."""
        clashing = self._world.clashing(work.head.id, self._clock.queued())
        work.waits_for.update(clashing)
        for head in clashing:
            self._waiters[head].append(work)
        return bool(clashing)

    def _ask(self, work: Work) -> None:
        if work.submitted >= ATTEMPTS_MAX:
            work.is_done = True
            return
        work.submitted += 1
        answer = self._gate.answer(work.head)
        if answer is Answer.ACCEPTED:
            if work.entered_s is None:
                work.entered_s = self._clock.now
            self._clock.enter(work.head)
            return
        work.refused += 1
        if answer is Answer.SUPERSEDED:
            work.is_done = True
        elif answer is Answer.HELD:
            minutes = self._pace(work).looks if self._told else UNTOLD_MIN
            self._clock.after(minutes, lambda: self._held(work))
        else:
            self._soon(work, self._failed)

    # -- what comes after ------------------------------------------------------------------------

    def _held(self, work: Work) -> None:
        """Keep the others' work, or say that it is meant: then the same submission goes on."""
        if work.head.kind is Kind.STALE:
            self._rebase(work)
            return
        self._gate.declared.add(work.pr.id)
        work.refused -= 1
        work.submitted -= 1
        self._submit(work)

    def _clashed(self, work: Work) -> None:
        """Rebase; if it merges with the branch, the other one is still in the queue."""
        if self._world.clash_of(work.head.id) is not None:
            self._rebase(work)
        elif self._told and self._waits(work):
            return
        elif work.same_again < SAME_AGAIN_MAX:
            self._again(work)
        else:
            work.same_again = 0
            self._clock.after(LATER_MIN, lambda: self._submit(work))

    def _failed(self, work: Work) -> None:
        is_innocent = work.head.kind is not Kind.BROKEN
        looks_first = self._told or work.pr.is_person
        if work.same_again < SAME_AGAIN_MAX and (
            not looks_first or (work.pr.is_person and is_innocent)
        ):
            self._again(work)
        elif work.repairs < REPAIRS_MAX:
            self._clock.after(self._pace(work).repairs, lambda: self._repaired(work))
        else:
            work.is_done = True

    def _again(self, work: Work) -> None:
        work.same_again += 1
        self._submit(work)

    def _repaired(self, work: Work) -> None:
        work.repairs += 1
        key = chance.mix(self._world.scenario.seed << 8 ^ work.repairs) ^ work.pr.id
        self._push(work, is_repaired=chance.unit(key) < REPAIRED)

    def _rebase(self, work: Work) -> None:
        work.rebases += 1
        self._clock.after(self._pace(work).rebases, lambda: self._push(work))

    def _push(self, work: Work, *, is_repaired: bool = False) -> None:
        work.head = self._world.push(work.pr, is_repaired=is_repaired)
        work.same_again = 0
        self._submit(work)

    def _soon(self, work: Work, act: Callable[[Work], None]) -> None:
        self._clock.after(self._pace(work).looks, lambda: act(work))

    def _pace(self, work: Work) -> Pace:
        return PERSON if work.pr.is_person else AGENT
