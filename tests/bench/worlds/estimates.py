"""`python -m tests.bench.worlds.estimates`: estimates of quality beside the hidden truth.

The table of docs/design/quality-on-history.md 4. Each world is judged as a repository that is older
than its evidence, so flags and failures count from day 14 on. Options: `--seed N`, `--limit K`;
`--daily` compares with a judgement after each day instead.
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby

from service.testhealth.detector import quality, score
from service.testhealth.detector.evidence import WINDOW_DAYS
from service.testhealth.detector.health import Health
from service.testhealth.detector.index import EvidenceIndex
from service.testhealth.detector.quality import PastFlag, Quality, Share
from service.testhealth.reports.uploads import EvidenceUpload, UploadClass
from tests.bench.flaky.figures import day_of
from tests.bench.flaky.ledger import Upload
from tests.bench.flaky.worlds import DAY, START
from tests.bench.worlds import ci
from tests.bench.worlds.catalogue import WORLDS, World
from tests.bench.worlds.ci import Played

SEEDS, WORKERS = 2, 2
THRESHOLD = score.THRESHOLDS["normal"]
CARRIED_DAYS = 0.6
"""Pull requests carry old code for so long, so a test is flaky a little after its fix."""


class Sets:
    """Sets of passed tests, named by their bits."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, ...]] = {}

    def key_of(self, bits: int) -> str | None:
        """Return the name of a set, None for the empty one."""
        if not bits:
            return None
        key = f"{bits:x}"
        if key not in self._known:
            digits = f"{bits:b}"[::-1]
            self._known[key] = tuple(no for no, digit in enumerate(digits) if digit == "1")
        return key

    def members(self, keys: Iterable[str], nos: Sequence[int]) -> Mapping[str, Sequence[int]]:
        """As `PassedSets`."""
        wanted = frozenset(nos)
        return {key: [no for no in self._known[key] if no in wanted] for key in keys}

    def numbers(self, key: str) -> Iterable[int]:
        """As `PassedSets`."""
        return self._known[key]


def evidence_of(upload: Upload, sets: Sets) -> EvidenceUpload:
    """Return an upload of the ledger as it is stored."""
    return EvidenceUpload(
        id=upload.digest,
        digest=upload.digest,
        at=upload.at,
        kind=UploadClass(upload.kind),
        job=upload.job,
        code=upload.code,
        sha=upload.code.partition(":")[2],
        is_mass=upload.is_mass,
        passed=sets.key_of(upload.passed),
        passed_size=upload.passed.bit_count(),
        run=upload.run,
        run_attempt=upload.run_attempt,
        machine=upload.machine,
        branch=upload.branch,
        pr=upload.pr,
        attempts=upload.attempts,
        muddled=upload.muddled,
        position=upload.position,
    )


@dataclass(frozen=True)
class Beside:
    """What was estimated; truly `right` flags, and `caught` of the `expected` failures."""

    estimated: Quality = field(default_factory=Quality)
    right: int = 0
    caught: float = 0.0
    expected: float = 0.0

    def __add__(self, other: "Beside") -> "Beside":
        """Return the sums."""
        return Beside(
            self.estimated + other.estimated,
            self.right + other.right,
            self.caught + other.caught,
            self.expected + other.expected,
        )

    @property
    def precision(self) -> float:
        """Share of flags that began while their test was flaky."""
        return self.right / self.estimated.flags if self.estimated.flags else 1.0

    @property
    def recall(self) -> float:
        """Share of the expected failures that fell on flagged tests."""
        return self.caught / self.expected if self.expected else 1.0


def measured(world: World, seed: int, threshold: float) -> Beside:
    """Return both for a world of a seed."""
    played, sets = ci.played(world.shape, seed, world.name), Sets()
    index = EvidenceIndex(threshold)
    index.change([evidence_of(each, sets) for each in played.uploads], (), sets)
    since, lives = START + DAY * WINDOW_DAYS, _lives_of(played)
    total, right = Quality(), 0
    flagged: dict[int, tuple[PastFlag, ...]] = {}
    for no in index.evidence.uploads.nos:
        health, evidence = index.judge(no), index.evidence_of(no)
        if health is None or evidence is None:
            continue
        flagged[no] = quality.flags_of(evidence, health, since)
        failures = quality.failures_of(evidence.events, since)
        total += quality.quality_of(flagged[no], failures, since)
        begun = (day_of(flag.since) for flag in flagged[no] if flag.since >= since)
        right += sum(
            any(begin <= day < end + CARRIED_DAYS for begin, end in lives.get(no, ()))
            for day in begun
        )
    expected = sum(each.failures_within(WINDOW_DAYS, world.shape.days) for each in played.truths)
    caught = sum(
        each.failures_within(*span)
        for each in played.truths
        for span in _spans_of(flagged.get(each.number, ()), world.shape.days)
    )
    return Beside(total, right, caught, expected)


def _lives_of(played: Played) -> dict[int, list[tuple[float, float]]]:
    found: dict[int, list[tuple[float, float]]] = {}
    for life in played.lives:
        found.setdefault(life.test, []).append((life.begin, life.end))
    return found


def _spans_of(flags: Iterable[PastFlag], days: int) -> Iterator[tuple[float, float]]:
    """Return when a test was flagged, in days; what lies before the first counted day is cut."""
    for flag in flags:
        yield (
            max(WINDOW_DAYS, day_of(flag.since)),
            days if flag.until is None else day_of(flag.until),
        )


def differing(world: World, seed: int) -> tuple[int, int]:
    """Return on how many days tests were flagged, and on how many a judgement of that day differs.

    A day counts by its last upload: flagged by all evidence, or by what had come by then.
    """
    played, sets = ci.played(world.shape, seed, world.name), Sets()
    uploads = sorted((evidence_of(each, sets) for each in played.uploads), key=lambda each: each.at)
    whole, growing = EvidenceIndex(THRESHOLD), EvidenceIndex(THRESHOLD)
    whole.change(uploads, (), sets)
    last = {no: whole.judge(no) for no, events in whole.evidence.events.items() if events}
    flagged = wrong = 0
    for _, of_day in groupby(uploads, key=lambda each: each.day):
        together = list(of_day)
        growing.change(together, (), sets)
        for no, known in last.items():
            said = growing.judge(no) if no in growing.evidence.uploads.bits else None
            pair = _is_flagged(known, together[-1].at), _is_flagged(said, together[-1].at)
            flagged, wrong = flagged + any(pair), wrong + (pair[0] != pair[1])
    return flagged, wrong


def _is_flagged(health: Health | None, at: datetime) -> bool:
    spans = health.fold.spans if health else ()
    return any(span.since <= at and (span.until is None or span.until > at) for span in spans)


def row_of(name: str, found: Beside) -> str:
    """Return the row of a table in Markdown."""
    counts = found.estimated
    precision, recall = counts.precision, counts.recall
    sure = f"{counts.confirmed} / {counts.unconfirmed} / {counts.open}"
    least = _missing(precision, "flags") or f"≥ {precision.low:.2f}"
    between = _missing(recall, "failures") or f"{recall.low:.2f} to {recall.high:.2f}"
    return f"| {name} | {sure} | {least} | {found.precision:.2f} | {between} | {found.recall:.2f} |"


def _missing(share: Share, what: str) -> str:
    return f"{share.missing} {what} missing" if share.low is None else ""


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=201)
    parser.add_argument("--limit", type=float, default=THRESHOLD)
    parser.add_argument("--daily", action="store_true")
    given = parser.parse_args()
    if given.daily:
        for world in WORLDS:
            flagged, wrong = differing(world, given.seed)
            print(f"{world.name}: {wrong} of {flagged} flagged days differ", flush=True)
        return
    with ProcessPoolExecutor(WORKERS) as pool:
        pending = {
            world.name: [
                pool.submit(measured, world, given.seed + nth, given.limit) for nth in range(SEEDS)
            ]
            for world in WORLDS
        }
        for name, seeds in pending.items():
            print(row_of(name, sum((each.result() for each in seeds), Beside())), flush=True)


if __name__ == "__main__":
    main()
