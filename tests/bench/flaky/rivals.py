"""Simple detectors, to see what the real one is worth; each reads the same ledger."""

from collections.abc import Callable, Iterable

from tests.bench.flaky.figures import Spans, day_of
from tests.bench.flaky.ledger import Ledger

QUIET_DAYS = 14
ENOUGH = 3
RATE, RATE_DAYS, RATE_FAILURES = 0.02, 7, 2


def first_flip(ledger: Ledger) -> Spans:
    """Flaky from the first time it both passed and failed on the same code."""
    return {no: _after(days, 1) for no, days in _flips(ledger)}


def count(ledger: Ledger) -> Spans:
    """Flaky from the third such time in two weeks."""
    return {no: _after(days, ENOUGH) for no, days in _flips(ledger)}


def failure_rate(ledger: Ledger) -> Spans:
    """Flaky while it failed in 2 % of a week's runs, and more than once."""
    found = {}
    last = int(day_of(ledger.clock)) + 1
    for no in ledger.failed:
        known = ledger.evidence_of(no)
        failed = [int(day_of(at)) for at in known.failures]
        first = ledger.uploads[0].at.toordinal()
        days = []
        for day in range(min(failed) + 1, last):
            bad = sum(1 for each in failed if day - RATE_DAYS <= each < day)
            good = known.passes.between(first + day - RATE_DAYS, first + day - 1)
            if bad >= RATE_FAILURES and bad >= RATE * (bad + good):
                days.append((float(day), day + 1.0))
        if days:
            found[no] = _joined(days)
    return found


RIVALS: dict[str, Callable[[Ledger], Spans]] = {
    "first flip": first_flip,
    "three flips": count,
    "failure rate": failure_rate,
}


def _flips(ledger: Ledger) -> Iterable[tuple[int, list[float]]]:
    for no, events in ledger.events_a.items():
        yield no, [day_of(event.at) for event in events]


def _after(days: list[float], enough: int) -> list[tuple[float, float]]:
    """From each event that has so many in two weeks until two weeks without any."""
    found = [
        (day, day + QUIET_DAYS)
        for before, day in zip(days, days[enough - 1 :], strict=False)
        if day - before <= QUIET_DAYS
    ]
    return _joined(found)


def _joined(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Without overlaps."""
    found: list[tuple[float, float]] = []
    for since, until in spans:
        if found and since <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], until))
        else:
            found.append((since, until))
    return found
