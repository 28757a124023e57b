"""How probable it is that a pull request fails its tests, after everything seen of it.

Each failed run is a *record* of the pull requests that could have made it fail. The belief in one
of them, q, is its posterior odds: the odds before any failure, times one factor a record.

    prior     1 - (1 - p_fail) (1 - conflict); after a pass alone only `conflict` / 2 is left
    factor    1 / P(the run fails | this one is good)
              = 1 / (1 - (1 - flake) x product of (1 - chance) of the others in the record)

`chance` is q of each as it was when the run failed, so a failure counts once. One that lands, or
passes alone, drops out of its records: it has chance 0, which makes the factor of the others
greater. When one is convicted, its records are explained and charge nobody else.

Two failures alone convict at 2 % flakes: prior 0.059, odds 0.063 / 0.02 / 0.02 = 157, q = 0.994.
At 5 % flakes it takes three, and one that fails more often than not needs only one.
"""

import math
from collections.abc import Callable, Collection, Iterable, Set
from dataclasses import dataclass, replace

from service.mergequeue.engine.reported import Rates

CONVICTED_MIN = 0.98
"""The least belief by which a failure alone rejects: one in fifty of such is a flake."""

FLAKE_MIN = 0.005
"""The least chance of a flake that is assumed: no CI is so good that one failure is proof."""

FLAKE_MAX = 0.25
"""The greatest chance of a flake that is assumed.

At it, five failures alone convict at the assumed rates, and seven even at `PRIOR_MIN`.
"""

PRIOR_MIN, CHANCE_MAX = 0.01, 0.98
"""The least and the greatest chance before a failure; the greatest also of others in a record."""

BELIEF_MAX = 0.9999
"""Nothing is believed for certain."""

RECORDS_MAX = 100
"""Records that are kept, the newest: a queue at the limit of its slots has about 20."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A pull request in a failed run.

    `chance` is what was believed of it just before; 0: it is cleared. `is_tested`: it was in the
    batch that the run tested, and not in its base. `has_merged`: it has since.
    """

    entry: str
    pr: int
    chance: float
    is_tested: bool
    has_merged: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """A failed run: who could have caused it, and the required checks that failed."""

    run: str
    suspects: tuple[Suspect, ...]
    checks: tuple[str, ...]

    @property
    def is_alone(self) -> bool:
        """Whether only one pull request could have caused it when it failed."""
        return len(self.suspects) == 1

    def have_others_merged(self, entry: str) -> bool:
        """Whether all the others that could have caused it have merged since."""
        return all(one.has_merged for one in self.suspects if one.entry != entry)

    def cleared_of(self, good: Set[str], *, have_merged: bool) -> "Record":
        """The record after these have been shown to be good, or have merged."""
        suspects = tuple(
            replace(one, chance=0.0, has_merged=have_merged) if one.entry in good else one
            for one in self.suspects
        )
        return replace(self, suspects=suspects)


@dataclass(frozen=True, slots=True)
class _Charge:
    """What a record says against one of its suspects."""

    record: Record
    suspect: Suspect
    others_pass: float


class Belief:
    """What the records of a queue say at its rates; answers for any of its entries."""

    def __init__(self, records: tuple[Record, ...], rates: Rates) -> None:
        self.records = records
        self.rates = rates
        self.flake = min(max(rates.flake, FLAKE_MIN), FLAKE_MAX)
        self._charges: dict[str, list[_Charge]] = {}
        self._suspects: set[str] = set()
        self._together: dict[str, list[frozenset[str]]] = {}
        for record in records:
            self._note(record)

    def failing(self, entry: str, prior: float) -> float:
        """The chance that this one fails, from its chance before any failure."""
        if not prior or entry not in self._charges:
            return prior
        odds = odds_of(prior)
        for charge in self._charges[entry]:
            odds /= 1.0 - (1.0 - self.flake) * charge.others_pass
        return min(BELIEF_MAX, odds / (1.0 + odds))

    def is_convicted(self, entry: str, p_fail: float, *, has_passed: bool, more: int = 0) -> bool:
        """Whether its failures alone, and so many more of them, are enough to reject this one.

        What failed together with others may also be a conflict with one that has not landed, which
        says nothing against this one alone. So those runs prove no more than that it is broken
        rather than in conflict. Once all the others have merged, such a run counts in full: it
        tested this one on what the target has now.
        """
        prior = odds_of(self.prior(p_fail, has_passed=has_passed))
        together, on_target, alone = prior, 1.0, (1.0 / self.flake) ** more
        for charge in self._charges.get(entry, ()):
            factor = 1.0 / (1.0 - (1.0 - self.flake) * charge.others_pass)
            if charge.record.is_alone:
                alone *= factor
            elif charge.record.have_others_merged(entry):
                on_target *= factor
            else:
                together *= factor
        rather = p_fail / max(self.rates.conflict, PRIOR_MIN)
        odds = min(together, max(prior, rather)) * on_target * alone
        return alone > 1.0 and odds / (1.0 + odds) >= CONVICTED_MIN

    def prior(self, p_fail: float, *, has_passed: bool) -> float:
        """The chance that one fails before any failure; `has_passed`: it did alone."""
        conflict = self.rates.conflict
        chance = conflict / 2 if has_passed else 1.0 - (1.0 - p_fail) * (1.0 - conflict)
        return min(max(chance, PRIOR_MIN), CHANCE_MAX)

    def is_suspect(self, entry: str) -> bool:
        """Whether a run that tested this one failed, and it is not cleared of that."""
        return entry in self._suspects

    def failures_alone(self, entry: str) -> tuple[Record, ...]:
        """The failed runs in which nobody else could be the cause, the oldest first."""
        charges = self._charges.get(entry, ())
        return tuple(charge.record for charge in charges if charge.record.is_alone)

    def records_against(self, entry: str) -> tuple[Record, ...]:
        """The failed runs that this one could have caused, the oldest first."""
        return tuple(charge.record for charge in self._charges.get(entry, ()))

    def records_of(self, entry: str) -> frozenset[str]:
        """The runs of the records that charge this one."""
        return frozenset(charge.record.run for charge in self._charges.get(entry, ()))

    def failed_together(self, entry: str) -> list[frozenset[str]]:
        """The batches with this one that have failed."""
        return self._together.get(entry, [])

    def _note(self, record: Record) -> None:
        total = sum(math.log1p(-one.chance) for one in record.suspects)
        for one in record.suspects:
            if one.chance:
                others = math.exp(min(0.0, total - math.log1p(-one.chance)))
                self._charges.setdefault(one.entry, []).append(_Charge(record, one, others))
                if one.is_tested:
                    self._suspects.add(one.entry)
        tested = frozenset(one.entry for one in record.suspects if one.is_tested)
        for entry in tested if len(tested) > 1 else ():
            self._together.setdefault(entry, []).append(tested)


def odds_of(chance: float) -> float:
    """The odds of a chance below 1."""
    return chance / (1.0 - chance)


def with_failure(records: tuple[Record, ...], newest: Record) -> tuple[Record, ...]:
    """The records with one more; a run is a record once."""
    if any(record.run == newest.run for record in records):
        return records
    return (*records, newest)[-RECORDS_MAX:]


def without(records: tuple[Record, ...], runs: Collection[str]) -> tuple[Record, ...]:
    """The records without these runs, which say nothing about their entries after all."""
    return tuple(record for record in records if record.run not in runs)


def cleared(records: tuple[Record, ...], entries: Iterable[str]) -> tuple[Record, ...]:
    """The records after these entries have been shown to be good."""
    return _cleared(records, set(entries), have_merged=False)


def merged(records: tuple[Record, ...], entries: Iterable[str]) -> tuple[Record, ...]:
    """The records after these entries have merged, which clears them as well."""
    return _cleared(records, set(entries), have_merged=True)


def _cleared(
    records: tuple[Record, ...], good: Set[str], *, have_merged: bool
) -> tuple[Record, ...]:
    return tuple(
        record.cleared_of(good, have_merged=have_merged)
        if any(one.entry in good for one in record.suspects)
        else record
        for record in records
    )


def explained(records: tuple[Record, ...], culprits: Iterable[str]) -> tuple[Record, ...]:
    """The records that these culprits, which are convicted, do not explain."""
    bad = set(culprits)
    return tuple(
        record
        for record in records
        if not any(one.entry in bad and one.chance for one in record.suspects)
    )


def live(records: tuple[Record, ...], is_there: Callable[[Suspect], bool]) -> tuple[Record, ...]:
    """The records that matter still: for a suspect, or for two that failed in one batch."""
    return tuple(record for record in records if _matters(record, is_there))


def _matters(record: Record, is_there: Callable[[Suspect], bool]) -> bool:
    there = [one for one in record.suspects if is_there(one)]
    return any(one.chance for one in there) or sum(one.is_tested for one in there) > 1
