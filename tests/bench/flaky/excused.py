"""How many real reports excuse their failures: `python -m tests.bench.flaky.excused FOLDER`.

FOLDER has JUnit files at any depth. Each file with a failure is taken for the report of a job in
which every failure is quarantined and known, and which reported the same tests on the target
branch. `before` is the rule by share: 1 of 100 tests may be missing, or all of a touched file, 1
means failed tests, and what a file declares or names beside its elements does not count.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from service.testhealth.detector import completeness
from service.testhealth.detector.completeness import (
    Account,
    Changes,
    Expectation,
    JobReport,
    MissingTest,
    Part,
)
from service.testhealth.reports import failures, reports
from service.testhealth.reports.failures import Phase
from service.testhealth.reports.reading import ReadOptions
from service.testhealth.reports.results import (
    Attempt,
    CaseResult,
    FileStatus,
    Outcome,
    ReportFile,
)

SHARE_BEFORE = 0.01

NOTHING = Changes(deletes=lambda _: False, touches=lambda _: False)
ALL_TOUCHED = Changes(deletes=lambda _: False, touches=lambda _: True)


@dataclass(frozen=True, slots=True)
class Sample:
    """What a job of one report sent, and what the change under test touches."""

    report: ReportFile
    account: Account
    changes: Changes = NOTHING
    missing: tuple[MissingTest, ...] = ()


def read(folder: Path) -> list[ReportFile]:
    """Return the reports in which a test failed, that could be read to their end."""
    files = (each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file())
    every = (reports.read(content, None, ReadOptions()) for content in files)
    return [each for each in every if each.status is FileStatus.ACCEPTED and _failed(each)]


def sample_of(report: ReportFile, runner: str = "pytest", code: int | None = 1) -> Sample:
    """Return a report as its job sends it."""
    account = Account(
        exit_code=code,
        runner=runner,
        undelivered=report.undelivered,
        is_interrupted=report.is_interrupted,
        unread_failures=report.unread_failures,
        unknown_words=report.unknown_words,
    )
    return Sample(report, account)


def is_excused(sample: Sample) -> bool:
    """Return whether the present rule excuses the failures of a report."""
    headlines = (failures.headline_of(each) for each in _failed(sample.report))
    if any(failures.phase_of(headline) is Phase.TEARDOWN for headline in headlines):
        return False
    part = Part(sample.account, len(_failed(sample.report)))
    expectation = Expectation(len(sample.report.cases), sample.missing)
    return not completeness.gaps_of(JobReport("unit", (part,), expectation), sample.changes)


def was_excused(sample: Sample) -> bool:
    """Return whether the rule by share excused them."""
    account = sample.account
    missing = [each for each in sample.missing if not sample.changes.touches(each)]
    is_whole = not account.undelivered and not account.is_interrupted
    is_present = len(missing) <= len(sample.report.cases) * SHARE_BEFORE
    return is_whole and is_present and account.exit_code in (None, 1)


def _failed(report: ReportFile) -> list[Attempt]:
    cases = (case for case in report.cases if case.outcome is Outcome.FAILED)
    return [case.attempts[-1] for case in cases]


def _lost(case: CaseResult, *, has_neighbors: bool) -> MissingTest:
    return MissingTest(case.name, case.file, case.classname, has_neighbors)


def _with_lost(sample: Sample) -> Sample:
    case = sample.report.cases[0]
    return replace(sample, missing=(_lost(case, has_neighbors=True),))


def _with_silent(sample: Sample) -> Sample:
    lost = tuple(_lost(case, has_neighbors=False) for case in sample.report.cases[:3])
    return replace(sample, missing=lost, changes=ALL_TOUCHED)


def _with_removed(sample: Sample) -> Sample:
    return replace(_with_lost(sample), changes=ALL_TOUCHED)


def _with_declared(sample: Sample) -> Sample:
    unread = sample.account.unread_failures + 1
    return replace(sample, account=replace(sample.account, unread_failures=unread))


def _by(runner: str, code: int | None) -> Callable[[Sample], Sample]:
    return lambda sample: replace(
        sample, account=replace(sample.account, runner=runner, exit_code=code)
    )


CHANGES: Sequence[tuple[str, Callable[[Sample], Sample]]] = (
    ("as it is, by a runner with a code of its own", lambda sample: sample),
    ("a test removed from a touched file", _with_removed),
    ("one test lost", _with_lost),
    ("a touched file silent", _with_silent),
    ("one more failure declared", _with_declared),
    ("ended with 1 by jest, vitest, a shell", _by("jest", 1)),
    ("no exit code", _by("", None)),
)


def table(samples: Iterable[Sample]) -> list[str]:
    """Return the table as Markdown."""
    every = list(samples)
    rows = [
        f"| {len(every)} reports with a failure | excused before | excused now |",
        "|---|---|---|",
    ]
    for name, change in CHANGES:
        changed = [change(sample) for sample in every]
        before, now = sum(map(was_excused, changed)), sum(map(is_excused, changed))
        rows.append(f"| {name} | {before} | {now} |")
    return rows


def main(folder: Path) -> None:
    """Print the table."""
    print("\n".join(table(map(sample_of, read(folder)))))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
