"""The judge: what became of every pull request, and whether each merge was right.

It knows the truth. A strategy is never shown anything of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from tests.bench.scheduling.interface import Eject, Merge
from tests.bench.scheduling.workload import Workload

NEVER = 1 << 60
"""Place in the order of merges of what has not merged."""


class ProtocolError(Exception):
    """The strategy asked for something that makes no sense."""


class PrState(IntEnum):
    """What became of a pull request."""

    PENDING = 0
    MERGED = 1
    EJECTED = 2
    CANCELLED = 3


class RunState(IntEnum):
    """Where a run stands."""

    QUEUED = 0
    RUNNING = 1
    FINISHED = 2
    CANCELLED = 3


@dataclass(slots=True, eq=False)
class Run:
    """One test of main after `main_seq` merges + `base` + `prs`.

    `known_tests` are those that its first failure shows, empty if all are known when it ends;
    `built_at` is when its pull requests are built.
    """

    id: int
    base: tuple[int, ...]
    prs: tuple[int, ...]
    main_seq: int
    state: RunState = RunState.QUEUED
    t_start: float = -1.0
    passed: bool = False
    known_tests: frozenset[str] = frozenset()
    built_at: float = 0.0


@dataclass(slots=True)
class Findings:
    """What the judge counted.

    `red_main`: merges that broke main; `unproven`: merges whose proof did not test the merged
    tree; both must be 0. `superset`: merges proved only by a passing superset, `via_base`: of
    pull requests that the proof had in its base; allowed where runs test their whole tree.
    """

    red_main: int = 0
    unproven: int = 0
    superset: int = 0
    via_base: int = 0
    cancelled_merged: int = 0


@dataclass(slots=True)
class Ledger:
    """State and time of decision of each pull request, and main as the order of merges.

    A red merge is taken back at once: it stays in the log, and does not spoil what follows.
    """

    workload: Workload
    is_oracle: bool = False
    state: list[PrState] = field(default_factory=list)
    decided: list[float] = field(default_factory=list)
    merge_seq: list[int] = field(default_factory=list)
    merge_log: list[int] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)

    def __post_init__(self) -> None:
        n = self.workload.config.n
        self.state = [PrState.PENDING] * n
        self.decided = [0.0] * n
        self.merge_seq = [NEVER] * n

    def passes(self, run: Run) -> bool:
        """Whether the run's tree is good: nothing broken in it, no conflicting pair."""
        broken, conflicts, merge_seq = (
            self.workload.broken,
            self.workload.conflicts,
            self.merge_seq,
        )
        members: set[int] | None = None
        for group in (run.base, run.prs):
            for pr in group:
                if broken[pr]:
                    return False
                if conflicts[pr]:
                    members = members or {*run.base, *run.prs}
                    for other in conflicts[pr]:
                        if other in members or merge_seq[other] < run.main_seq:
                            return False
        return True

    def causes(self, run: Run) -> dict[str, tuple[int, ...]]:
        """The tests that its tree fails, and for each the broken one or the pair in conflict."""
        members = {*run.base, *run.prs}
        found: dict[str, tuple[int, ...]] = {
            f"broken {pr}": (pr,) for pr in members if self.workload.broken[pr]
        }
        for pr in members:
            for other in self.workload.conflicts[pr]:
                if other in members or self.merge_seq[other] < run.main_seq:
                    pair = min(pr, other), max(pr, other)
                    found[f"conflict of {pair[0]} and {pair[1]}"] = pair
        return found

    def is_doomed(self, run: Run) -> bool:
        """Whether the run's tree holds two that conflict: it fails whoever else is in it."""
        members = {*run.base, *run.prs}
        return any(not members.isdisjoint(self.workload.conflicts[pr]) for pr in members)

    def cancel(self, pr: int, now: float) -> None:
        """The author withdrew it."""
        self._decide(pr, PrState.CANCELLED, now)

    def eject(self, action: Eject, now: float) -> None:
        """It was rejected; too late for one that was withdrawn meanwhile."""
        if self.state[action.pr] is PrState.PENDING:
            self._decide(action.pr, PrState.EJECTED, now)
        elif self.state[action.pr] is not PrState.CANCELLED:
            raise ProtocolError(f"eject of decided pull request {action.pr}")

    def merge(self, action: Merge, run: Run | None, now: float) -> None:
        """They were merged in this order; `run` is what the strategy gives as proof."""
        is_proof = run is not None and run.state is RunState.FINISHED and run.passed
        proof = _Proof(run, action.prs) if run is not None and is_proof else None
        for pr in action.prs:
            state = self.state[pr]
            if state is PrState.CANCELLED:
                self.findings.cancelled_merged += 1
                continue
            if state is not PrState.PENDING:
                raise ProtocolError(f"merge of decided pull request {pr}")
            if not self.is_oracle:
                self._judge_proof(pr, proof)
            is_red = self._is_red(pr)
            self.findings.red_main += is_red
            if not is_red:
                self.merge_seq[pr] = len(self.merge_log)
            self.merge_log.append(pr)
            self._decide(pr, PrState.MERGED, now)

    def wrong_ejects(self) -> int:
        """Good ones that were rejected: neither broken nor in conflict with one merged before."""
        return sum(
            state is PrState.EJECTED and not self.workload.broken[pr] and not self._is_guilty(pr)
            for pr, state in enumerate(self.state)
        )

    def _decide(self, pr: int, state: PrState, now: float) -> None:
        self.state[pr] = state
        self.decided[pr] = now

    def _judge_proof(self, pr: int, proof: "_Proof | None") -> None:
        """Whether the merged tree is what the proof tested."""
        is_proven = proof is not None and self._covers(proof, pr)
        if is_proven and proof is not None and pr not in proof.tested:
            self.findings.via_base += 1
            # A selective run proves nothing about its base.
            is_proven = self.workload.config.full_suite
        if not is_proven or proof is None:
            self.findings.unproven += 1
        elif any(self._matters(pr, other) for other in self._unmerged(proof)):
            self.findings.superset += 1

    def _covers(self, proof: "_Proof", pr: int) -> bool:
        if pr not in proof.members:
            return False
        since = self.merge_log[proof.run.main_seq :]
        return not any(other not in proof.members and self._matters(pr, other) for other in since)

    def _unmerged(self, proof: "_Proof") -> Iterator[int]:
        for other in proof.members:
            if self.merge_seq[other] == NEVER and other not in proof.group:
                yield other

    def _matters(self, pr: int, other: int) -> bool:
        """Whether one can spoil the other; without trusted targets everything can."""
        return not self.workload.config.use_targets or self.workload.may_conflict(pr, other)

    def _is_red(self, pr: int) -> bool:
        return self.workload.broken[pr] or any(
            self.merge_seq[other] != NEVER for other in self.workload.conflicts[pr]
        )

    def _is_guilty(self, pr: int) -> bool:
        return any(
            self.state[other] is PrState.MERGED
            and (other < pr or self.decided[other] <= self.decided[pr])
            for other in self.workload.conflicts[pr]
        )


class _Proof:
    """A passed run as it is held against a group that merges."""

    def __init__(self, run: Run, group: Sequence[int]) -> None:
        self.run = run
        self.group = frozenset(group)
        self.tested = frozenset(run.prs)
        self.members = self.tested | frozenset(run.base)
