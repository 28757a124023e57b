"""Active evidence in a world: jobs repeat tests when they are done, within minutes a day.

The same plan function as in the service, fed once a day with what the detector says: a plan knows
the states of the midnight before, and the failures of the day. Each test takes a second.
"""

from argparse import ArgumentParser
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby

import numpy as np

from service.testhealth.detector import repeats
from service.testhealth.detector.repeats import Repeats
from service.testhealth.repeats import (
    FAILED_MAX,
    FLAKY_IN_PULLS_MAX,
    FLAKY_RESTS,
    SUSPECTED_FOR,
    SUSPECTED_FROM,
    Candidate,
    RepeatedBecause,
    planned,
    seconds_of,
)
from service.testhealth.reports.uploads import UploadClass
from service.vocabulary import Health as Status
from tests.bench.flaky import scenarios
from tests.bench.flaky.figures import Figures
from tests.bench.flaky.ledger import PR, STABLE, Ledger, Upload, bits
from tests.bench.worlds.catalogue import BY_NAME, WORLDS, World
from tests.bench.worlds.ci import Ci, ci_of, played_by
from tests.bench.worlds.laws import Losses
from tests.bench.worlds.measured import held, row_of
from tests.bench.worlds.shapes import Moment

DAILY_S, TEST_S = 3600.0, 1.0
"""An hour a day; each test takes a second."""

NEVER = datetime.min.replace(tzinfo=UTC)


class Repeating:
    """Repeats the tests of a played world, job by job."""

    def __init__(self, ci: Ci, seed: int) -> None:
        self.ci = ci
        self.chance = np.random.default_rng([seed, 7])
        self.repeats: defaultdict[int, list[Repeats]] = defaultdict(list)
        self.flaky: frozenset[int] = frozenset()
        self.observed: set[int] = set()
        self.suspicious: dict[int, int] = {}
        self.rounds: Counter[int] = Counter()
        self.today: Counter[int] = Counter()
        self.failed_at: dict[int, datetime] = {}
        self.spent = self.in_pulls = 0.0
        self.old = {new: old for old, (_, new) in ci.renames.items()}

    def play(self, uploads: Sequence[Upload]) -> Ledger:
        """Repeat tests day by day; return all that is known in the end."""
        seen: list[Upload] = []
        for day, of_day in groupby(uploads, key=lambda each: each.at.toordinal()):
            self.spent = self.in_pulls = 0.0
            self.today.clear()
            for upload in of_day:
                seen.append(upload)
                if upload.kind in (STABLE, PR) and not upload.is_mass:
                    self._repeat(upload, day)
            ledger = Ledger(seen)
            ledger.repeats = self.repeats
            suspects = {*ledger.suspects, *(no for no in self.repeats if no in ledger.failed)}
            judged = {no: ledger.judge(no) for no in sorted(suspects)}
            self.flaky = frozenset(n for n, each in judged.items() if each.value is Status.FLAKY)
            self.observed = {
                n for n, each in judged.items() if (each.numbers.score or 0) >= SUSPECTED_FROM
            }
            oldest = day - SUSPECTED_FOR.days
            self.observed |= {n for n, since in self.suspicious.items() if since > oldest}
        return ledger

    def _repeat(self, upload: Upload, day: int) -> None:
        kind = UploadClass(upload.kind)
        seconds = seconds_of(kind, upload.tests_run * TEST_S, DAILY_S, self.spent, self.in_pulls)
        portions = planned(self._candidates(upload), seconds)
        spent = TEST_S * sum(each.times for each in portions)
        self.spent += spent
        self.in_pulls += spent if kind is UploadClass.PR else 0.0
        letters = self._letters(upload, {each.no: each.times for each in portions})
        shown = [no for no, each in letters.items() if repeats.disagrees(each)]
        for no, each in letters.items():
            self.today[no] += len(each)
            if "F" in each:
                self.failed_at[no] = upload.at
            has_passed = "P" in each and upload.failing >> no & 1
            if no in shown or has_passed:
                self.rounds[no] = 0
                self.suspicious[no] = day
                self.observed.add(no)
            else:
                self.rounds[no] += len(each)
            self.repeats[no].append(
                Repeats(
                    *(upload.at, upload.digest, upload.job, upload.code, each),
                    tested=len(letters),
                    disagreeing=len(shown),
                    source=upload.source,
                    author=upload.author,
                    branch=upload.branch,
                    machine=upload.machine,
                    sha=upload.code,
                )
            )

    def _candidates(self, upload: Upload) -> Iterator[Candidate]:
        """Every test of the job that could be repeated."""
        ran, is_stable = upload.passing | upload.failing, upload.kind == STABLE
        is_broken_by_code = upload.failing.bit_count() > FAILED_MAX
        for no in sorted({*self.flaky, *self.observed, *upload.attempts}):
            if not ran >> no & 1:
                continue
            if no in self.flaky:
                if self.failed_at.get(no, NEVER) > upload.at - FLAKY_RESTS:
                    continue
                if is_stable or self.today[no] < FLAKY_IN_PULLS_MAX:
                    yield Candidate(no, RepeatedBecause.FLAKY, TEST_S, self.today[no])
            elif no in self.observed:
                yield Candidate(no, RepeatedBecause.SUSPECTED, TEST_S, self.rounds[no])
            elif upload.failing >> no & 1 and not is_broken_by_code:
                yield Candidate(no, RepeatedBecause.FAILED, TEST_S)

    def _letters(self, upload: Upload, times: dict[int, int]) -> dict[int, str]:
        """Run the tests of a plan, round by round, on the same code and machine.

        A machine that loses tests does so once in a job, not in each second: then some rounds in a
        row fail.
        """
        found = dict.fromkeys(times, "")
        moment, most = self.ci.moments[upload.digest], max(times.values(), default=0)
        lost = self._failing(moment, is_loss=True) if most else 0
        begin, end = sorted(self.chance.integers(most + 1, size=2))
        for number in range(most):
            again = replace(moment, attempt=moment.attempt + 1 + number)
            failed = self._failing(again) | (lost if begin <= number < end else 0)
            for no, count in times.items():
                if number < count:
                    found[no] += "F" if failed >> self.old.get(no, no) & 1 else "P"
        return found

    def _failing(self, moment: Moment, *, is_loss: bool = False) -> int:
        pairs = zip(self.ci.shape.laws, self.ci.laws, strict=True)
        laws = [drawn for law, drawn in pairs if isinstance(law, Losses) == is_loss]
        return bits(test for law in laws for test in law.failing(moment, self.chance))


def outcomes_of(world: World, seed: int) -> tuple[Figures, Figures]:
    """Play a world without and with repeats, and judge every test that could be flagged."""
    ci = ci_of(world.shape, seed, world.name)
    played = played_by(ci)
    uploads = sorted(played.uploads, key=lambda each: (each.at, each.digest))
    found = []
    for ledger in (Ledger(uploads), Repeating(ci, seed).play(uploads)):
        nos = {*ledger.suspects, *(no for no in ledger.repeats if no in ledger.failed)}
        judged = {no: ledger.judge(no) for no in sorted(nos)}
        found.append(held(played, scenarios.spans_of(judged, world.shape.days)))
    return found[0], found[1]


def main() -> None:
    """Print a row of each world that is named, or of all, for a seed."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=101)
    parser.add_argument("worlds", nargs="*", default=[each.name for each in WORLDS])
    asked = parser.parse_args()
    print(
        "| world | P / R | flags | delay | P / R with repeats | flags | delay |\n"
        + "|---" * 7
        + "|"
    )
    for name in asked.worlds:
        rows = (row_of(BY_NAME[name], [each]) for each in outcomes_of(BY_NAME[name], asked.seed))
        cells = (
            f"{each['precision']} / {each['recall']} | {each['flags']} | {each['delay_days']}"
            for each in rows
        )
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
