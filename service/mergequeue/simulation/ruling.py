"""The rules of entry of a simulated queue, as far as the past says what they read."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from service.mergequeue.engine.rules import EntryRule, Ruled, Seen
from service.mergequeue.entry_rules import judging
from service.mergequeue.simulation.history import Arrival

_NOTHING = Seen(0, "", "", "", "", (), (), draft=False, fork=False, auto_merge=False)


def ruled(rules: Iterable[EntryRule], arrival: Arrival, now: datetime) -> Ruled:
    """Return what the rules come to; those that read what is unknown are left out."""
    known = [rule for rule in rules if _can_be_judged(rule, arrival)]
    return judging.judged(known, arrival.seen or _NOTHING, None, now)


def left_out(rules: Iterable[EntryRule], arrivals: Iterable[Arrival]) -> Mapping[str, int]:
    """Return the rules that are left out for some submissions, and for how many."""
    reads = [(rule.name, judging.reads(rule)) for rule in rules]
    return Counter(
        name for one in arrivals for name, asked in reads if not asked.isdisjoint(one.unknown)
    )


def _can_be_judged(rule: EntryRule, arrival: Arrival) -> bool:
    return judging.reads(rule).isdisjoint(arrival.unknown)
