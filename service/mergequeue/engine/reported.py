"""Values reported to the queue about a pull request, about a failure, and about its CI."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from service.landed_work import NOTHING_DECLARED, Declaration
from service.mergequeue.engine.rules import NOT_RULED, Ruled, Seen
from service.provenance import Proof
from service.vocabulary import (
    Approval,
    Blocker,
    BlockerCode,
    Check,
    Explanation,
    Mergeability,
    PullRequestState,
    Sha,
)

RAN_WITHIN = timedelta(days=90)
"""The time for which a check that ran on what landed shows that it can run."""


@dataclass(frozen=True, slots=True)
class Doomed:
    """A required check, by name, that cannot pass any more: a part of the CI of its commit failed.

    The part is a `job`: the id of its check run is `check`, its suite `group`. The `step` or the
    `test` that failed is empty if it is not known. `url` is the page of the part.
    """

    required: str
    job: str
    check: str
    group: str
    step: str = ""
    test: str = ""
    url: str = ""

    @property
    def part(self) -> str:
        """The part that failed, as a clause; names of others stand between backticks."""
        job = f"job `{self.job}`"
        if self.test:
            return f"test `{self.test}` of {job} failed"
        return f"step `{self.step}` of {job} failed" if self.step else f"{job} failed"


JOBS_MAX = 20
"""Jobs that are named beside one failed check."""


@dataclass(frozen=True, slots=True)
class FailedBefore:
    """The jobs of its check suite that had failed when a failed check began.

    `jobs` are their names and pages, the first that failed first; `more` are left out.
    """

    jobs: tuple[tuple[str, str], ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class CheckHistory:
    """The places where required checks run, as far as proved (docs/design/skipped-checks.md 1).

    `ran`: when a commit landed on which a check ran, by name. `never`: where a check runs that
    never runs on a test branch, by the workflow files of the target as read at `read_at`: a trigger
    or branches, or ELSEWHERE.
    """

    ran: Mapping[str, datetime] = field(default_factory=dict)
    never: Mapping[str, str] = field(default_factory=dict)
    read_at: datetime | None = None

    def ran_lately(self, now: datetime) -> frozenset[str]:
        """Return the names that CI does not leave out wherever the queue tests."""
        return frozenset([name for name, at in self.ran.items() if at + RAN_WITHIN > now])

    def with_landed(self, names: Iterable[str], began: datetime, now: datetime) -> "CheckHistory":
        """Return the history after a run landed in which these ran.

        A run that began before the files were read may have had other workflow files.
        """
        is_old = self.read_at is not None and began < self.read_at
        new = {name: now for name in names if not (is_old and name in self.never)}
        young = {name: at for name, at in self.ran.items() if at + RAN_WITHIN > now}
        return replace(self, ran=young | new)

    def without_since(self, since: datetime) -> "CheckHistory":
        """Return the history without what ran since then: nothing of it has landed."""
        return replace(self, ran={name: at for name, at in self.ran.items() if at < since})

    def with_files(self, never: Mapping[str, str], now: datetime) -> "CheckHistory":
        """Return the history after the workflow files were read: they void what they exclude."""
        ran = {name: at for name, at in self.ran.items() if name not in never}
        return CheckHistory(ran, never, now)


@dataclass(frozen=True, slots=True)
class Facts:
    """The provider's facts about one pull request, newest read.

    `own_checks` are the reports on its own head, `contains_tip` the target's commit that the
    head was seen to contain, `head_tree` its tree (all three only read for direct merges),
    `authorized_head` the fork's head that a person with write access let in. `own_skipped` and
    `own_failed` are the names of the checks that were skipped or failed on its own head,
    `own_minutes` is how long the slowest of its check runs took, None if none is known.
    `judged_on_head` are the names of checks that its own head passed and that by their names judge
    a pull request, not a tree. `in_stack`: it is a member of a native stack, which the provider
    lands by its merge call alone. `approvals` are told and decide nothing; None: not read.
    `seen` is the pull request as rules see it, kept for replays also where there are none; None: it
    was not open. `ruled` is what the queue's rules came to when it was read. `declared` is what its
    title, text and label say that it takes back. `landed_by_us`: the provider shows that our App
    merged or closed it, and this queue has no landing that may have done so.
    """

    pr: int
    head: Sha
    base: str
    state: PullRequestState
    draft: bool
    mergeability: Mergeability
    blockers: tuple[Blocker, ...]
    title: str
    author: str
    is_fork: bool
    own_checks: tuple[Check, ...] = ()
    contains_tip: Sha | None = None
    head_tree: Sha | None = None
    authorized_head: Sha | None = None
    merged_sha: Sha | None = None
    own_skipped: tuple[str, ...] = ()
    own_failed: tuple[str, ...] = ()
    own_minutes: float | None = None
    in_stack: bool = False
    judged_on_head: tuple[str, ...] = ()
    approvals: tuple[Approval, ...] | None = None
    seen: Seen | None = None
    ruled: Ruled = NOT_RULED
    declared: Declaration = NOTHING_DECLARED
    landed_by_us: bool = False

    @property
    def below(self) -> tuple[int, ...]:
        """The members below it in its stack that have not merged; empty if they are unknown."""
        if not self.blockers:
            return ()
        names = (each.name for each in self.blockers if each.code is BlockerCode.STACKED)
        return tuple(int(number) for name in names for number in (name or "").split())

    @property
    def depends_on(self) -> tuple[int, ...]:
        """The open pull requests that its description names in lines `Depends-On`."""
        if not self.blockers:
            return ()
        names = (each.name for each in self.blockers if each.code is BlockerCode.DEPENDS_ON)
        return tuple(int(number) for name in names for number in (name or "").split())

    def without_dependency(self, pr: int) -> "Facts":
        """Return the facts after the merge of `pr`, on which it depended."""
        left = " ".join(str(number) for number in self.depends_on if number != pr)
        others = (each for each in self.blockers if each.code is not BlockerCode.DEPENDS_ON)
        waits = (Blocker(BlockerCode.DEPENDS_ON, left),) if left else ()
        return replace(self, blockers=(*others, *waits))

    def after_merge_of(self, pr: int) -> "Facts | None":
        """Return the facts without `pr` below it; None if it is the only one that is left."""
        left = [str(number) for number in self.below if number != pr]
        if not left:
            return None
        waits = Blocker(BlockerCode.STACKED, " ".join(left))
        others = (each for each in self.blockers if each.code is not BlockerCode.STACKED)
        return replace(self, blockers=(*others, waits))


@dataclass(frozen=True, slots=True)
class Evidence:
    """The facts that the flaky half knows of a failed attempt.

    `explanations` maps failed check to its explanation; `own_head` are pull requests whose
    own head fails the same tests; `fingerprint` groups equal failures; `weights` says how
    suspicious each pull request is, by number; one that is not named weighs 1. `gaps` maps
    checks that are not explained to what their reports lack; `new_texts` are ids of quarantined
    tests that failed in a way not seen before, `red_on_base` of tests that failed on the target
    branch before the run. The queue shows these and decides nothing by them.
    `silent` checks are unexplained because no results of them ever come.

    `failed_tests` are the ids of all tests that failed in a check, for each failed check whose
    report is complete; of these the run is asked about the `unexplained_tests`. `proofs` maps each
    check whose failure is excused or known to what proves its report.
    """

    attempt: int
    explanations: Mapping[str, Explanation]
    fingerprint: str | None = None
    own_head: tuple[int, ...] = ()
    weights: Mapping[int, float] = field(default_factory=dict)
    gaps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    new_texts: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    failed_tests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unexplained_tests: tuple[str, ...] = ()
    proofs: Mapping[str, Proof] = field(default_factory=dict)
    red_on_base: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rates:
    """The failure rates by the history of a queue; the defaults count until it says more.

    `flake` is the chance that a run fails although everything in it is good, `conflict` that a
    change which is good by itself fails together with others. `minutes` is how long each check
    takes, by name. `foreseen` is the share of the failures expected by the estimates of submissions
    that is on those which will probably fail; 0 if nothing is known of any.
    """

    flake: float = 0.02
    conflict: float = 0.03
    minutes: Mapping[str, float] = field(default_factory=dict)
    foreseen: float = 0.0
