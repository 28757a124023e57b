"""The one key of all scenes that differ only in names.

Pull requests, runs and commits are named by their places, trees by what they have more or less
than the branch, times by their distance to now. What only counts, what is told to people and
what cannot matter within a scope's bound is left out; FIELDS says what and why, and a test
compares it with the values, so that a new field is thought of here.
"""

import hashlib
import marshal
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from functools import lru_cache

from service.mergequeue.engine.model import Bisection, Breaker, Entry, Failure, Member, Run
from service.mergequeue.engine.outputs import BuildTestBranch
from service.mergequeue.engine.records import Record
from service.mergequeue.engine.reported import Evidence
from service.mergequeue.engine.state import shares
from service.mergequeue.engine.states import RunPhase
from service.mergequeue.engine.targets import Targets
from service.vocabulary import Sha
from tests.exhaustive import scene as scenes
from tests.exhaustive.scene import Scene
from tests.exhaustive.scopes import Scope
from tests.mergequeue.trees import Change, Tree

FAR = 7200
"""Seconds after which a clock is beyond every bound: scopes set longer clocks much farther."""

OUT_OF_SIGHT = 99
"""In the place of a commit that is no longer, or was never, among the branch's newest ones."""

Key = bytes

_COUNTS = "it only counts, or names"
_TOLD = "it is only told to people"
_CLOCK = "a clock of hours; scopes put it beyond their bound"
_ORDER = "only its order matters, and entries are named in order"

LEFT_OUT: Mapping[str, Mapping[str, str]] = {
    "MergeQueue": {
        "id": _COUNTS,
        "uid": _COUNTS,
        "branch": _COUNTS,
        "state_reason": _TOLD,
        "state_since": _TOLD,
        "state_by": _TOLD,
        "test_branch_reason": _TOLD,
        "next_seq": _COUNTS,
        "next_run": _COUNTS,
        "next_bisection": _COUNTS,
        "next_entry": _COUNTS,
        "next_landing": _COUNTS,
        "next_hold": _COUNTS,
        "revision": _COUNTS,
        "version": _COUNTS,
        "required": "nothing changes it in any scope",
        "check_history": "of one required check no skip counts",
        "rates": "nothing measures them in any scope",
        "file": "nothing reads the repository's file in any scope",
        "own_config": "nothing reads the repository's file in any scope",
        "chosen": _TOLD,
        "shadow_time": "no queue is in shadow in any scope",
        "deleted": "nothing deletes the queue in any scope",
    },
    "Entry": {
        "id": _COUNTS,
        "submitted_by": "of one submitter, or the number of the pull request says it",
        "submitted_at": _TOLD,
        "reason": _TOLD,
        "detail": _TOLD,
        "cancel_detail": _TOLD,
        "canceller": _TOLD,
        "seq": _ORDER,
        "rank": _ORDER,
        "restarts": _TOLD,
        "landed_sha": _TOLD,
        "would_land_at": "no queue is in shadow in any scope",
        "waits": "no queue of any scope has rules",
        "work": "nothing is judged in any scope: tests/mergequeue/test_undone_work.py",
        "undoes": "nothing is judged in any scope: tests/mergequeue/test_undone_work.py",
        "is_priority_given": "no queue of any scope has rules",
    },
    "Run": {
        "id": _COUNTS,
        "required_source": _TOLD,
        "required": "nothing changes what is required in any scope",
        "created_at": _CLOCK,
        "built_at": _CLOCK,
        "start_clock": _CLOCK,
        "last_report_at": _CLOCK,
        "finished_at": _TOLD,
        "sha": "it is the commit of the last step",
        "branch": _TOLD,
        "checks_complete": "always in every scope",
        "is_flaky": _TOLD,
        "first_at": _CLOCK,
        "share": _TOLD,
        "attempt": "evidence names the present one in every scope",
    },
    "Bisection": {"id": _COUNTS},
    "Landing": {"number": _COUNTS, "since": _TOLD},
    "LandedStep": {"tree": "it is the commit's"},
    "KeptMove": {},
    "Hold": {"id": _COUNTS, "by": _TOLD, "text": _TOLD, "since": _TOLD, "evidence": _TOLD},
    "Green": {
        "required": "nothing changes what is required in any scope",
        "run": _TOLD,
        "sha": _TOLD,
        "at": _CLOCK,
    },
    "Breaker": {},
    "Record": {"run": _COUNTS},
    "Failure": {"run": _COUNTS, "at": _CLOCK},
    "Evidence": {
        "attempt": _COUNTS,
        "fingerprint": "none in any scope",
        "gaps": _TOLD,
        "new_texts": _TOLD,
        "proofs": _TOLD,
        "red_on_base": _TOLD,
        "silent": "none in any scope",
    },
}
"""By class, the fields that are not in the key, each with its reason."""


def key_of(scene: Scene, scope: Scope) -> Key:
    """The scene's key: equal for scenes that cannot be told apart by what follows."""
    words = _Words(scene, scope).scene()
    return hashlib.blake2b(marshal.dumps(words, 2), digest_size=12).digest()


class _Words:
    """One scene in canonical words."""

    def __init__(self, scene: Scene, scope: Scope) -> None:
        self.it = scene
        self.queue = scene.queue
        self.commits = {sha: index for index, sha in reversed(list(enumerate(scene.history)))}
        self.has_submitters = bool(scope.submitters)
        self.prs = self._in_order() if scope.is_symmetric else {}
        if not scope.is_symmetric:
            self.prs = {number: number for number in range(1, len(scene.prs) + 1)}
        self.order = sorted(self.queue.runs.values(), key=lambda run: run.number)
        self.runs = {run.id: index for index, run in enumerate(self.order)}
        self.searches = {name: index for index, name in enumerate(self.queue.bisections)}
        self.made = {run.sha: index for index, run in enumerate(self.order) if run.sha}

    def scene(self) -> tuple:
        """Everything that what follows may depend on."""
        it, queue = self.it, self.queue
        entries = sorted(queue.entries.values(), key=lambda entry: self.prs[entry.pr])
        return (
            tuple(self._entry(entry) for entry in entries),
            tuple(self._run(run) for run in self.order),
            tuple(self._bisection(one) for one in queue.bisections.values()),
            self._whole(),
            tuple(sorted(self._pull_request(one) for one in it.prs)),
            len(it.unread),
        )

    def _in_order(self) -> dict[int, int]:
        """Names of pull requests: the line, those that wait, the others."""
        entries = self.queue.entries

        def place(number: int) -> tuple:
            entry = entries.get(number)
            if entry is None:
                one = self.it.prs[number - 1]
                return (3, one.state.value, one.version, 0)
            if entry.rank is not None:
                return (0, "", entry.rank, 0)
            if entry.seq is not None:
                return (1, "", entry.priority, entry.seq)
            return (2, "", entry.priority, 0)

        numbers = sorted(range(1, len(self.it.prs) + 1), key=lambda pr: (place(pr), pr))
        return {number: name for name, number in enumerate(numbers, start=1)}

    def _untested(self) -> tuple | None:
        known = self.queue.untested
        if known is None:
            return None
        run = self.runs.get(known.run, OUT_OF_SIGHT)
        landed, missing = self._named(known.landed), self._named(known.missing)
        state = (bool(known.failed), known.is_held, known.tries, self._clock(known.try_at))
        return (self._commit(Sha(known.tip)), run, landed, missing, *state)

    def _whole(self) -> tuple:
        queue = self.queue
        landing, kept = queue.landing, queue.kept_move
        tip = queue.tip
        return (
            queue.state.value,
            queue.target_mode and queue.target_mode.value,
            queue.sends_results,
            _number_of(queue.config),
            self._commit(tip.sha) if tip else None,
            self._tree(tip.tree) if tip else None,
            None
            if landing is None
            else (
                self.runs.get(landing.run, OUT_OF_SIGHT),
                landing.positions,
                landing.mode.value,
                self._commit(landing.expected_tip.sha),
                landing.proof.value,
            ),
            tuple((h.reason.value, h.scope.value, self._clock(h.until)) for h in queue.holds),
            self._landed(),
            self._greens(),
            self._breaker(queue.breaker),
            tuple(self._record(one) for one in queue.records),
            self._untested(),
            None
            if kept is None
            else (
                self._commit(kept.tip.sha),
                self._tree(kept.tip.tree),
                self._named(kept.prs),
                kept.rewritten,
                _targets(kept.targets),
            ),
            self._clock(queue.advance_refused_at, after=600),
            (queue.reruns_from is None, self._clock(queue.reruns_from)),
            self._clock(queue.land_after),
            tuple(
                (self._named((one.pr,)), one.words, self._clock(one.at, after=3600))
                for one in queue.unexplained
            ),
        )

    def _entry(self, entry: Entry) -> tuple:
        facts = entry.facts
        real = self.it.prs[entry.pr - 1]
        return (
            self.prs[entry.pr],
            entry.rank is None,
            entry.seq is None,
            entry.state.value,
            entry.priority,
            entry.no_batch,
            scenes.change_of(entry.pr, real.version)[1] == entry.head,
            facts == scenes.facts_now(real),
            (facts.head == entry.head, facts.state.value, facts.draft, len(facts.blockers)),
            self.runs.get(entry.run or "", -1),
            entry.verified_by is not None,
            self._search(entry.bisection),
            entry.rested_on,
            self._named(entry.held_by),
            _values(entry.unmet),
            _values(entry.barred),
            self._clock(entry.unready_since),
            self._waits(entry),
            entry.p_fail,
            entry.cancel and entry.cancel.value,
            (entry.retries, entry.build_tries, entry.losses, entry.failed_batches),
            self._clock(entry.build_after),
            (entry.taken_apart, entry.fresh, entry.kept, entry.screened),
            _targets(entry.targets),
            _targets(entry.wide),
            self._turn(entry),
            self._batch(entry.batch),
            (_values_counted(entry.stops), entry.refusals),
            None
            if entry.refusal is None
            else (
                entry.refusal.reason.value,
                self._clock(entry.refusal.until),
                entry.refusal.blockers == facts.blockers,
            ),
        )

    def _turn(self, entry: Entry) -> tuple | None:
        """Its turn from the reached one on; of one submitter the order of arrival says it all."""
        if not self.has_submitters or entry.seq is None:
            return None
        seqs = [one.seq for one in self.queue.entries.values() if one.seq is not None]
        known = [one for one in self.queue.turns if one.priority == entry.priority]
        was_agent = known[0].is_agent_last if known else True
        left = entry.turn - shares.reached(self.queue, entry)
        return (sorted(seqs).index(entry.seq), left, was_agent)

    def _run(self, run: Run) -> tuple:
        build = self.it.builds.get(run.id)
        return (
            run.kind.value,
            run.status.value,
            run.phase.value,
            tuple(self._member(member) for member in run.entries),
            tuple(self._member(member) for member in run.base),
            self._commit(run.base_tip.sha),
            self._tree(run.base_tip.tree),
            tuple(
                (self._tree(one.tree), self._made(one.commit), one.contained) for one in run.steps
            ),
            tuple(
                (check.outcome.value, check.id in run.rerun_ids, check.id in run.revoked)
                for check in run.checks
            ),
            self._clock(run.failed_at),
            self._clock(run.asked_evidence),
            self._evidence(run.evidence),
            run.rerun_at is not None,
            (self.runs.get(run.repeats or "", OUT_OF_SIGHT), run.repeats is None, run.is_repeated),
            self._clock(run.deadline),
            run.cause and run.cause.value,
            run.excused,
            (run.fresh, run.published, run.contained, run.reused_from is not None),
            (len(run.doomed), run.is_foreseen),
            self._search(run.bisection),
            tuple(sorted(self._entry_named(name) for name in run.without)),
            self.runs.get(run.witness_of or "", OUT_OF_SIGHT),
            _number_of(run.config),
            run.phase is RunPhase.BUILDING and build is not None and self._is_known(build),
        )

    def _bisection(self, one: Bisection) -> tuple:
        return (
            self.runs.get(one.run, OUT_OF_SIGHT),
            tuple(self._member(member) for member in one.entries),
            tuple(self._member(member) for member in one.base),
            self._commit(one.base_tip.sha),
            self._tree(one.base_tip.tree),
            (one.lo, one.hi),
            tuple(sorted((k, self._runs_named(runs)) for k, runs in one.reds.items())),
            tuple(sorted((k, self.runs.get(run, OUT_OF_SIGHT)) for k, run in one.probes.items())),
            one.weights,
        )

    def _member(self, member: Member) -> tuple:
        entry = self.queue.entries.get(member.pr)
        return (
            self.prs[member.pr],
            entry is not None and entry.id == member.entry,
            entry is not None and entry.head == member.head,
        )

    def _pull_request(self, one: scenes.PullRequest) -> tuple:
        merged = OUT_OF_SIGHT if one.merged is None else self._commit(one.merged)
        is_in = one.number in self.queue.entries
        place = merged if is_in else 0
        return (self.prs[one.number], one.state.value, one.version, place, is_in, one.below > 0)

    def _landed(self) -> tuple:
        """Moves of the branch since the oldest tip of a live run, or the first of a live batch."""
        landed = self.queue.landed
        tips = {run.base_tip.sha for run in self.queue.runs.values()}
        tips |= {one.base_tip.sha for one in self.queue.bisections.values()}
        batches = {entry.batch for entry in self.queue.entries.values()} - {None}
        counts = (step.before in tips or step.batch in batches for step in landed)
        first = next((i for i, is_needed in enumerate(counts) if is_needed), len(landed))
        return tuple(
            (
                step.pr and self.prs[step.pr],
                self._commit(step.before),
                self._commit(step.sha),
                _targets(step.targets),
                step.is_proved,
                any(step.entry in run.entry_ids for run in self.order),
                self.runs.get(step.run or "", -1),
                self._batch(step.batch),
            )
            for step in landed[first:]
        )

    def _greens(self) -> tuple:
        """Trees that passed and can still come up: the branch never goes back."""
        tip = self.queue.tip
        if not self.queue.greens or tip is None:
            return ()
        ground = scenes.TREES[tip.tree]
        could = {one.change for one in self.it.prs}
        trees = (scenes.TREES[green.tree] for green in self.queue.greens.values())
        return tuple(
            sorted(
                self._content(tree) for tree in trees if ground <= tree and tree - ground <= could
            )
        )

    def _breaker(self, memory: Breaker) -> tuple:
        return (
            tuple(
                (
                    *(self._named(one.entries), self._named(one.base)),
                    *(one.fingerprint, one.chance),
                    _unseen(memory, one),
                )
                for one in memory.failures
            ),
            tuple(self._named(group) for group in memory.troubled),
            self._from_before(memory.since),
            memory.older_pass,
            self._clock(memory.try_at),
            tuple(sorted((self.prs[int(pr)], count) for pr, count in memory.tries.items())),
            tuple(sorted((self.prs[int(pr)], time) for pr, time in memory.minutes.items())),
        )

    def _from_before(self, since: datetime | None) -> tuple:
        """Which runs began before the run that placed a hold."""
        return tuple(since is not None and run.created_at < since for run in self.order)

    def _record(self, one: Record) -> tuple:
        """A failed run: who is suspected how much, and what failed."""
        suspects = (
            (
                self._named_once(each.pr, each.entry),
                each.chance,
                (each.is_tested, each.has_merged),
                (each.weight, each.fails_alone),
            )
            for each in one.suspects
        )
        unexplained = tuple((each.check, each.test) for each in one.unexplained)
        return (tuple(suspects), one.checks, _listed(one.tests), unexplained, one.is_whole)

    def _named_once(self, pr: int, name: str) -> tuple[int, bool]:
        entry = self.queue.entries.get(pr)
        return self.prs[pr], entry is not None and entry.id == name

    def _evidence(self, one: Evidence | None) -> tuple | None:
        if one is None:
            return None
        weights = sorted((self.prs[pr], weight) for pr, weight in one.weights.items())
        return (
            _values(sorted(one.explanations.values())),
            tuple(weights),
            self._named(one.own_head),
            _listed(one.failed_tests),
            one.unexplained_tests,
        )

    def _clock(self, at: datetime | None, after: int = 0) -> int | None:
        """Seconds to an instant, negative once it is over; far ones are all alike."""
        if at is None:
            return None
        seconds = int((at - self.it.now).total_seconds()) + after
        return max(-FAR, min(FAR, seconds))

    def _waits(self, entry: Entry) -> int | None:
        """For how long it has been waiting, where a batch may be waiting for it."""
        if not self.queue.config.batch or entry.run is not None:
            return None
        return self._clock(entry.state_since)

    def _batch(self, number: int | None) -> int | None:
        """Who was put together with whom, not in which run."""
        if number is None:
            return None
        alike = [pr for pr, one in self.queue.entries.items() if one.batch == number]
        return min((self.prs[pr] for pr in alike), default=None)

    def _search(self, name: str | None) -> int | None:
        if name is None:
            return None
        return self.runs.get(name, OUT_OF_SIGHT + self.searches.get(name, -1))

    def _runs_named(self, names: Iterable[str]) -> tuple[int, ...]:
        return tuple(self.runs.get(name, OUT_OF_SIGHT) for name in names)

    def _entry_named(self, name: str) -> int:
        return next(
            (self.prs[pr] for pr, one in self.queue.entries.items() if one.id == name),
            OUT_OF_SIGHT,
        )

    def _named(self, prs: Iterable[int]) -> tuple[int, ...]:
        return tuple(self.prs[pr] for pr in prs)

    def _commit(self, sha: Sha) -> int:
        return self.commits.get(sha, OUT_OF_SIGHT)

    def _made(self, commit: Sha) -> int:
        """A commit of a test branch: on the branch, of which run, or nobody's any more."""
        if commit in self.commits:
            return self.commits[commit]
        return OUT_OF_SIGHT + 1 + self.made.get(commit, -1)

    def _tree(self, tree: Sha) -> tuple:
        return self._content(scenes.TREES[tree])

    def _content(self, tree: Tree) -> tuple:
        """What a tree has more or less than the branch."""
        mine = self.it.tree
        if tree == mine:
            return ()
        return tuple(sorted(self._change(change) for change in tree ^ mine))

    def _change(self, change: Change) -> tuple[int, int]:
        known = scenes.CHANGES.get(change)
        if known is not None:
            return (self.prs[known[0]], known[1])
        return (0, self._commit(scenes.FOREIGN_IN[change]))

    def _is_known(self, build: BuildTestBranch) -> bool:
        if not build.known_trees:
            return False
        tree = scenes.TREES[build.base_tip.sha]
        tree |= {(f"pr {step.pr}", step.head) for step in build.steps}
        return scenes.tree_id(tree) in build.known_trees


def _unseen(memory: Breaker, failure: Failure) -> float | None:
    """The seconds without a pass before a failure: the longer, the likelier is an outage."""
    if memory.passed_at is None:
        return None
    return max(0.0, (failure.at - memory.passed_at).total_seconds())


@lru_cache(maxsize=65536)
def _targets(targets: Targets | None) -> tuple[str, ...] | None:
    if targets is None:
        return None
    return ("*",) if targets.everything else tuple(sorted(targets.names))


def _values_counted(counts) -> tuple:
    return tuple(sorted(counts.items()))


def _listed(tests: Mapping[str, tuple[str, ...]]) -> tuple:
    return tuple(sorted(tests.items()))


def _values(words: Iterable[StrEnum]) -> tuple[str, ...]:
    return tuple(word.value for word in words)


_numbers: dict[object, int] = {}


def _number_of(config: object) -> int:
    """A small number for settings; equal ones have the same."""
    return _numbers.setdefault(config, len(_numbers))
