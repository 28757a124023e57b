"""The probability that a pull request fails its tests, after everything seen of it.

Each failed run is a *record* of the pull requests that could have made it fail. The belief in one
of them, q, is its posterior odds: the odds before any failure, times one factor a record.

    prior     1 - (1 - p_fail) (1 - conflict); after a pass alone only `conflict` / 2 is left
    factor    1 / P(the run fails | this one is good)
              = 1 / (1 - (1 - flake) x product of (1 - chance) of the others in the record)

`chance` is q of each as it was when the run failed, so a failure counts once. One that lands, or
passes alone, drops out of its records: it has chance 0, which makes the factor of the others
greater. When one is convicted, its records are explained and charge nobody else.

If the failed tests are known, `blame.py` says which pull requests can have caused each. A record
says nothing about the others. The failed tests may point to one suspect more than to others, by its
`weight`: its odds are multiplied by its greatest weight, and where it is one of the others in a
record, it counts as `weight` suspects.

Two failures alone convict at 2 % flakes: prior 0.059, odds 0.063 / 0.02 / 0.02 = 157, q = 0.994.
At 5 % flakes it takes three, and one that fails more often than not needs only one.
"""

import math
from collections.abc import Iterable, Set
from dataclasses import dataclass

from service.mergequeue.engine import blame
from service.mergequeue.engine.policy import constants
from service.mergequeue.engine.records import UNKNOWN, Record, Suspect
from service.mergequeue.engine.reported import Rates


@dataclass(frozen=True, slots=True)
class Charge:
    """A failed run as evidence against one of its suspects.

    `others` are the pull requests that can be a part of the cause as well, and `others_pass` is the
    chance that none of them is the cause.
    """

    record: Record
    suspect: Suspect
    others: tuple[Suspect, ...]
    others_pass: float

    @property
    def is_alone(self) -> bool:
        """Return whether no other pull request could have caused the failure when it happened."""
        return not self.others

    @property
    def have_others_merged(self) -> bool:
        """Return whether all other pull requests that could have caused it have merged since."""
        return all(one.has_merged for one in self.others)


class Belief:
    """The belief from the records of a queue at its rates; answers for any of its entries.

    A failure alone rejects one that is believed to be broken with at least `convicted_min`.
    """

    def __init__(
        self,
        records: tuple[Record, ...],
        rates: Rates,
        convicted_min: float = constants.CONVICTED_MIN,
    ) -> None:
        self.records = records
        self.rates = rates
        self.convicted_min = convicted_min
        self.flake = min(max(rates.flake, constants.FLAKE_MIN), constants.FLAKE_MAX)
        self._charges: dict[str, list[Charge]] = {}
        self._suspects: set[str] = set()
        self._together: dict[str, list[frozenset[str]]] = {}
        self._causes = blame.causes(records)
        for record in records:
            self._note(record, self._causes.get(record.run, {}).values())

    def failing(self, entry: str, prior: float) -> float:
        """The chance that this one fails, from its chance before any failure."""
        if not prior or entry not in self._charges:
            return prior
        charges = self._charges[entry]
        odds = odds_of(prior) * max(charge.suspect.weight for charge in charges)
        for charge in charges:
            odds /= 1.0 - (1.0 - self.flake) * charge.others_pass
        return min(constants.BELIEF_MAX, odds / (1.0 + odds))

    def is_convicted(self, entry: str, p_fail: float, *, has_passed: bool, more: int = 0) -> bool:
        """Return whether its failures alone, and so many more of them, are enough to reject it.

        What failed together with others may also be a conflict with one that has not landed, which
        says nothing against this one alone. So those runs prove no more than that it is broken
        rather than in conflict. Once all the others have merged, such a run counts in full: it
        tested this one on what the target has now.
        """
        prior = odds_of(self.prior(p_fail, has_passed=has_passed))
        together, on_target, alone = prior, 1.0, (1.0 / self.flake) ** more
        charges = self._charges.get(entry, ())
        if any(charge.suspect.fails_alone for charge in charges):
            alone /= self.flake
        for charge in charges:
            factor = 1.0 / (1.0 - (1.0 - self.flake) * charge.others_pass)
            if charge.is_alone:
                alone *= factor
            elif charge.have_others_merged:
                on_target *= factor
            else:
                together *= factor
        rather = p_fail / max(self.rates.conflict, constants.PRIOR_MIN)
        odds = min(together, max(prior, rather)) * on_target * alone
        return alone > 1.0 and odds / (1.0 + odds) >= self.convicted_min

    def prior(self, p_fail: float, *, has_passed: bool) -> float:
        """The chance that one fails before any failure; `has_passed`: it did alone."""
        conflict = self.rates.conflict
        chance = conflict / 2 if has_passed else 1.0 - (1.0 - p_fail) * (1.0 - conflict)
        return min(max(chance, constants.PRIOR_MIN), constants.CHANCE_MAX)

    def is_suspect(self, entry: str) -> bool:
        """Return whether a run that tested this one failed, and it is not cleared of that."""
        return entry in self._suspects

    def failures_alone(self, entry: str) -> tuple[Record, ...]:
        """The failed runs that no other pull request could have caused, the oldest first."""
        charges = self._charges.get(entry, ())
        return tuple(charge.record for charge in charges if charge.is_alone)

    def charges_against(self, entry: str) -> tuple[Charge, ...]:
        """The evidence of all failed runs against this entry, the oldest first."""
        return tuple(self._charges.get(entry, ()))

    def charged_with(self, run: str) -> tuple[int, ...]:
        """The pull requests that can have caused this failed run."""
        charges = (charge for charges in self._charges.values() for charge in charges)
        return tuple(charge.suspect.pr for charge in charges if charge.record.run == run)

    def other_suspects(self, run: str, own: Set[str]) -> list[frozenset[str]] | None:
        """The other suspects of each failed test that one of these can have caused in a run.

        None if it is not known which tests those are.
        """
        causes = self._causes.get(run, {})
        theirs = {failed: one for failed, one in causes.items() if one.suspects & own}
        if not causes or any(failed.test == UNKNOWN for failed in theirs):
            return None
        record = next(record for record in self.records if record.run == run)
        suspected = {one.entry for one in record.suspects if one.chance}
        return [(one.suspects & suspected) - own for one in theirs.values()]

    def records_of(self, entry: str) -> frozenset[str]:
        """The runs of the records that charge this one."""
        return frozenset(charge.record.run for charge in self._charges.get(entry, ()))

    def failed_together(self, entry: str) -> list[frozenset[str]]:
        """The batches with this one that have failed."""
        return self._together.get(entry, [])

    def _note(self, record: Record, causes: Iterable[blame.Cause]) -> None:
        """Keep the strongest evidence of a record against each of its suspects.

        That is the failed test which the others are least likely to have caused, and of several
        such tests one that no other pull request can have caused. If the record names no test,
        each of its pull requests can have caused it.
        """
        everyone = frozenset(one.entry for one in record.suspects)
        charges: dict[str, Charge] = {}
        for cause in dict.fromkeys(causes) or (blame.Cause(everyone, everyone),):
            for charge in _charges_of(record, cause):
                known = charges.setdefault(charge.suspect.entry, charge)
                if (charge.others_pass, charge.is_alone) > (known.others_pass, known.is_alone):
                    charges[charge.suspect.entry] = charge
        for entry, charge in charges.items():
            self._charges.setdefault(entry, []).append(charge)
            if charge.suspect.is_tested:
                self._suspects.add(entry)
        tested = frozenset(one.entry for one in record.suspects if one.is_tested)
        for entry in tested if len(tested) > 1 else ():
            self._together.setdefault(entry, []).append(tested)


def _charges_of(record: Record, cause: blame.Cause) -> list[Charge]:
    """Return the evidence of one failure against each suspect that is not cleared."""
    partners = [one for one in record.suspects if one.entry in cause.partners]
    logs = {
        one.entry: one.weight * math.log1p(-one.chance)
        for one in partners
        if one.entry in cause.suspects
    }
    total = sum(logs.values())
    return [
        Charge(
            record,
            one,
            tuple(other for other in partners if other is not one),
            math.exp(min(0.0, total - logs[one.entry])),
        )
        for one in partners
        if one.entry in cause.suspects and one.chance
    ]


def odds_of(chance: float) -> float:
    """The odds of a chance below 1."""
    return chance / (1.0 - chance)
