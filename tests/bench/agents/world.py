"""The repository: what every pull request changes, what is wrong with it, and what has landed.

A pull request is a change to a few files. Of two that share a file, some cannot be merged into
one tree (they clash), and some can but fail their tests together. Neither matters once one of
them is in the base of the other. Each push makes a new head, with a number of its own.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random

from tests.bench.scheduling import chance

MINUTE_S, HOUR_S = 60.0, 3600.0
NEVER = 1 << 60
"""Place in the order of landings of what has not landed."""

FLOODER = 0
STALE_WITHIN = 40
"""A stale or superseded pull request concerns one of so many newest landings."""


class Kind(StrEnum):
    """What is wrong with a pull request as it is opened.

    STALE silently takes back a landing, and passes every test; LANDED changes what is on the
    branch already.
    """

    GOOD = "good"
    BROKEN = "broken"
    STALE = "stale"
    LANDED = "landed"


@dataclass(frozen=True)
class Scenario:
    """The agents, the people, the repository and its CI; `seed` decides everything else.

    The agent FLOODER also opens `flood` pull requests at once. `clash` and `breaks` are the
    chances that two which share a file cannot be merged, and that they fail together.
    """

    seed: int = 1
    agents: int = 100
    people: int = 10
    hours: float = 8.0
    agent_every_min: float = 240.0
    person_every_min: float = 30.0
    flood: int = 100
    flood_at_h: float = 2.0
    slots: int = 24
    ci_min: float = 20.0
    files: int = 800
    broken: float = 0.04
    stale: float = 0.02
    landed: float = 0.02
    flake: float = 0.01
    clash: float = 0.3
    breaks: float = 0.05


@dataclass(slots=True)
class PullRequest:
    """One piece of work; `other` is the landing that it takes back or repeats."""

    id: int
    submitter: int
    is_person: bool
    opened_s: float
    kind: Kind
    minutes: float
    files: frozenset[int]
    other: int | None = None
    pushes: int = 0


@dataclass(frozen=True, slots=True)
class Head:
    """One push: `base` is how many landings it contains; it may have been repaired since."""

    id: int
    pr: int
    base: int
    kind: Kind


@dataclass(frozen=True, slots=True)
class Clash:
    """A head that cannot be merged: with the branch, or with `head` ahead of it."""

    head: int | None


@dataclass
class World:
    """The truth. A queue is shown what git shows: clashes and equal trees."""

    scenario: Scenario
    prs: list[PullRequest] = field(default_factory=list)
    heads: list[Head] = field(default_factory=list)
    landings: list[int] = field(default_factory=list)
    place: defaultdict[int, int] = field(default_factory=lambda: defaultdict(lambda: NEVER))
    red_landings: int = 0

    def __post_init__(self) -> None:
        self._clashing: defaultdict[int, set[int]] = defaultdict(set)
        self._breaking: defaultdict[int, set[int]] = defaultdict(set)
        self._of_file: defaultdict[int, list[int]] = defaultdict(list)

    # -- pull requests ---------------------------------------------------------------------------

    def open(self, submitter: int, opened_s: float, *, is_person: bool) -> PullRequest:
        """A new pull request; what it does depends on the seed and its number alone."""
        number, told = len(self.prs), self.scenario
        rng = Random(f"{told.seed} pull request {number}")
        kind = _kind_of(rng.random(), told, is_person=is_person)
        minutes = told.ci_min * rng.lognormvariate(0.0, 0.15)
        count = rng.choice((1, 1, 2, 3))
        files = frozenset(rng.randrange(told.files) for _ in range(count))
        pr = PullRequest(number, submitter, is_person, opened_s, kind, minutes, files)
        if kind in {Kind.STALE, Kind.LANDED}:
            self._choose_landing(pr, rng)
        self.prs.append(pr)
        if pr.kind is not Kind.LANDED:
            self._meet(pr)
        return pr

    def _choose_landing(self, pr: PullRequest, rng: Random) -> None:
        recent = self.landings[-STALE_WITHIN:]
        found = [each for each in recent if self.prs[each].kind in {Kind.GOOD, Kind.BROKEN}]
        if found:
            pr.other = found[rng.randrange(len(found))]
            pr.files = self.prs[pr.other].files
        else:
            pr.kind = Kind.GOOD

    def _meet(self, pr: PullRequest) -> None:
        """Draw how it goes with each earlier one that shares a file."""
        sharing = {other for file in pr.files for other in self._of_file[file]}
        for other in sharing:
            drawn = self._drawn(pr, other)
            if drawn < self.scenario.clash + self.scenario.breaks:
                found = self._clashing if drawn < self.scenario.clash else self._breaking
                found[pr.id].add(other)
                found[other].add(pr.id)
        for file in pr.files:
            self._of_file[file].append(pr.id)

    def _drawn(self, pr: PullRequest, other: int) -> float:
        """A number of [0, 1) for a pair that shares a file: the smaller, the worse they get on."""
        return chance.unit(chance.mix(self.scenario.seed) ^ chance.mix(pr.id << 20 | other))

    def push(self, pr: PullRequest, *, is_repaired: bool = False) -> Head:
        """A new head: the first one, or one that was rebased onto the tip and maybe repaired.

        A rebase that merges keeps what others have landed: what was stale is so no more.
        """
        is_undone = pr.pushes and pr.kind is Kind.STALE
        if is_undone or (is_repaired and pr.kind is Kind.BROKEN):
            pr.kind = Kind.GOOD
        pr.pushes += 1
        head = Head(len(self.heads), pr.id, len(self.landings), pr.kind)
        self.heads.append(head)
        return head

    # -- git -------------------------------------------------------------------------------------

    def pull_request(self, head: int) -> int:
        """The pull request of which it is a head."""
        return self.heads[head].pr

    def clash_of(self, head: int, ahead: Iterable[int] = ()) -> Clash | None:
        """Why the head cannot be merged onto the branch and these heads; None if it can."""
        own = self.heads[head]
        found = self._clashing.get(own.pr)
        if not found:
            return None
        if any(self._is_news(own, other) for other in found):
            return Clash(None)
        return next((Clash(each) for each in ahead if self._clash(own, self.heads[each])), None)

    def _clash(self, own: Head, other: Head) -> bool:
        return other.pr in self._clashing[own.pr] and self.place[other.pr] >= own.base

    def clashing(self, head: int, others: Iterable[int]) -> list[int]:
        """The heads that cannot be merged together with this one."""
        own = self.heads[head]
        return [each for each in others if self._clash(own, self.heads[each])]

    def is_contained(self, head: int, ahead: Iterable[int] = ()) -> bool:
        """Whether the branch with these heads has the change already: its tree stays the same."""
        pr = self.prs[self.heads[head].pr]
        if pr.kind is not Kind.LANDED or pr.other is None:
            return False
        return self.place[pr.other] < NEVER or any(self.heads[a].pr == pr.other for a in ahead)

    def land(self, head: int) -> None:
        """The branch has the head now."""
        own = self.heads[head]
        is_red = any(self._is_news(own, other) for other in self._breaking.get(own.pr, ()))
        self.red_landings += is_red or own.kind is Kind.BROKEN
        self.place[own.pr] = len(self.landings)
        self.landings.append(own.pr)

    def _is_news(self, own: Head, other: int) -> bool:
        """Whether another pull request has landed behind the head's base."""
        return own.base <= self.place[other] < NEVER

    # -- tests -----------------------------------------------------------------------------------

    def passes(self, landed: int, members: Iterable[int]) -> bool:
        """Whether the tree of the first landings and these heads is good."""
        heads = [self.heads[each] for each in members]
        prs = {head.pr for head in heads}
        return not any(
            head.kind is Kind.BROKEN or self._is_broken_by(head, prs, landed) for head in heads
        )

    def _is_broken_by(self, head: Head, prs: set[int], landed: int) -> bool:
        return any(
            self.place[other] >= head.base and (other in prs or self.place[other] < landed)
            for other in self._breaking.get(head.pr, ())
        )

    def is_wanted(self, head: int) -> bool:
        """Whether its landing brings something and takes nothing back."""
        return self.heads[head].kind in {Kind.GOOD, Kind.BROKEN}


def arrivals(told: Scenario) -> list[tuple[float, int, bool]]:
    """Second, submitter and whether a person, in order: Poisson, and the flood."""
    found = [(told.flood_at_h * HOUR_S, FLOODER, False)] * (told.flood if told.agents else 0)
    for submitter in range(told.agents + told.people):
        is_person = submitter >= told.agents
        every_min = told.person_every_min if is_person else told.agent_every_min
        rng = Random(f"{told.seed} submitter {submitter - told.agents * is_person} {is_person}")
        found += [(at, submitter, is_person) for at in _poisson(rng, every_min, told.hours)]
    return sorted(found)


def _poisson(rng: Random, every_min: float, hours: float) -> Iterator[float]:
    at = 0.0
    while (at := at + rng.expovariate(1 / (every_min * MINUTE_S))) < hours * HOUR_S:
        yield at


def _kind_of(drawn: float, told: Scenario, *, is_person: bool) -> Kind:
    """People open broken ones as often, and none that is stale or has landed."""
    for kind, share in (
        (Kind.BROKEN, told.broken),
        (Kind.STALE, 0.0 if is_person else told.stale),
        (Kind.LANDED, 0.0 if is_person else told.landed),
    ):
        if drawn < share:
            return kind
        drawn -= share
    return Kind.GOOD
