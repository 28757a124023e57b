"""What is read of a producer's reports, held to what its samples say of themselves."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from service.testhealth.detector import completeness
from service.testhealth.detector.completeness import (
    Account,
    Changes,
    ExitCodes,
    Expectation,
    JobReport,
    MissingTest,
    Part,
)
from service.testhealth.reports import duplicates, identity, reports
from service.testhealth.reports.identity import RepositoryKey
from service.testhealth.reports.reading import ReadOptions
from service.testhealth.reports.results import CaseKind, CaseResult, FileStatus, Outcome, ReportFile
from tests.laboratory.producer import BROKEN, Producer, Scene
from tests.laboratory.record import ENDED, Ended

REPOSITORY = RepositoryKey("org", "host/owner/name")
ROOTS = {Scene.DIRECTORY: "/elsewhere"}
CHANGED = Changes(deletes=lambda _test: False, touches=lambda _test: True)
"""The worst change: it touches the file of every test and deletes none."""


class Condition(StrEnum):
    """What may happen to tests, and must be read as what it is."""

    PASS = "pass"
    FAIL = "fail"
    ERROR = "error"
    SKIP = "skip"
    FLAKE = "flake"
    CRASH = "crash"
    INTERRUPTED = "interrupted"
    UNLOADED = "does not load"
    PROJECTS = "two projects"
    AGAIN = "re-run"
    RENAMED = "rename"
    MACHINE = "two machines"
    DIRECTORY = "two directories"
    REVERSED = "two orders"
    SHARDS = "two shards"
    THRESHOLD = "threshold missed"


RIGHT = "right"
BY_CODE = "the report looks whole: the exit code alone tells"
AS_FAILURE = "the test that was struck is read as failed, and all others have ended"
NOT_HELD = "nothing tells that more went wrong"

TRUTHS: tuple[tuple[str, Condition, tuple[Outcome, ...]], ...] = (
    ("fails_once_then_passes", Condition.FLAKE, (Outcome.FAILED, Outcome.PASSED)),
    ("fails_always", Condition.FAIL, (Outcome.FAILED,)),
    ("errors_always", Condition.ERROR, (Outcome.FAILED,)),
    ("is_skipped", Condition.SKIP, (Outcome.SKIPPED,)),
    ("passes", Condition.PASS, (Outcome.PASSED,)),
)
"""Words in the names of samples, and how such a test ends; a flake shows both of its attempts."""

SAME_IDS = {
    Condition.AGAIN: Scene.AGAIN,
    Condition.MACHINE: Scene.MACHINE,
    Condition.DIRECTORY: Scene.DIRECTORY,
    Condition.REVERSED: Scene.REVERSED,
}
BROKEN_BY = {
    Condition.CRASH: Scene.CRASH,
    Condition.INTERRUPTED: Scene.INTERRUPTED,
    Condition.UNLOADED: Scene.UNLOADED,
    Condition.THRESHOLD: Scene.THRESHOLD,
}
assert set(BROKEN_BY.values()) == set(BROKEN)
STRUCK = (Scene.CRASH, Scene.INTERRUPTED)
"""Scenes in which one test is struck while it runs."""


@dataclass(frozen=True, slots=True)
class Played:
    """A scene as Headgate reads it: its files, its tests by id, and how its command ended."""

    files: tuple[ReportFile, ...]
    tests: Mapping[str, CaseResult]
    ended: Ended

    @property
    def ids(self) -> set[str]:
        """The tests."""
        return set(self.tests)


def read_scene(contents: Mapping[str, bytes], ended: Ended, scene: Scene) -> Played:
    """Read the reports of one run of a producer."""
    options = ReadOptions(source_root=ROOTS.get(scene, "/build"))
    files = tuple(reports.read(content, None, options) for content in contents.values())
    cases = [case for each in files for case in each.cases]
    found = duplicates.sorted_by_test(identity.ids_of(REPOSITORY, cases), cases)
    results = {
        **{key: duplicates.result_of([case]) for key, case in found.passed.items()},
        **found.others,
    }
    return Played(files, results, ended)


def recorded(folder: Path) -> dict[Scene, Played]:
    """Return all scenes of a producer as they were recorded."""
    ends = json.loads((folder / ENDED).read_text("utf-8"))
    return {
        Scene(name): read_scene(
            {path.name: path.read_bytes() for path in sorted((folder / name).glob("*"))},
            Ended(**ended),
            Scene(name),
        )
        for name, ended in ends.items()
    }


def judged(producer: Producer, scenes: Mapping[Scene, Played]) -> dict[Condition, str]:
    """Judge each condition that a producer has: `RIGHT`, or what is wrong in words."""
    suite = scenes[Scene.SUITE]
    cells = {condition: _outcomes(condition, suite.tests.values()) for _, condition, _ in TRUTHS}
    if not producer.has_retries:
        del cells[Condition.FLAKE]
    cells |= {
        condition: _same(suite, scenes[scene])
        for condition, scene in SAME_IDS.items()
        if scene in scenes
    }
    cells[Condition.RENAMED] = _renamed(suite, scenes[Scene.RENAMED])
    if Scene.PROJECTS in scenes:
        cells[Condition.PROJECTS] = _projects(suite, scenes[Scene.PROJECTS])
    if Scene.SHARD_1 in scenes:
        cells[Condition.SHARDS] = _shards(suite, scenes[Scene.SHARD_1], scenes[Scene.SHARD_2])
    cells |= {
        condition: _broken(suite, scenes[scene], scene)
        for condition, scene in BROKEN_BY.items()
        if scene in scenes
    }
    return cells


def _words_of(case: CaseResult) -> str:
    """Return the name of a sample in one spelling: `FailsAlways` and `fails always` alike."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", case.name)
    return re.sub(r"[^a-z]+", "_", spaced.lower())


def _is_of(condition: Condition, case: CaseResult) -> bool:
    """Whether the first truth that fits a sample is this one."""
    words = _words_of(case)
    return next((truth[1] for truth in TRUTHS if truth[0] in words), None) is condition


def _outcomes(condition: Condition, cases: Iterable[CaseResult]) -> str:
    """Hold the tests of one truth to it."""
    expected = next(truth[2] for truth in TRUTHS if truth[1] is condition)
    found = [case for case in cases if case.kind is CaseKind.TEST and _is_of(condition, case)]
    if not found:
        return "no such test is in the report"
    for case in found:
        ended = tuple(attempt.outcome for attempt in case.attempts)
        ended = ended if condition is Condition.FLAKE else (case.final_outcome,)
        if ended != expected:
            return f"`{case.name}` is read as {', '.join(ended)}"
    return RIGHT


def _same(suite: Played, other: Played) -> str:
    """Two runs of one suite name the same tests, which end alike."""
    if suite.ids != other.ids:
        gone = {case.name for key, case in suite.tests.items() if key not in other.tests}
        return f"{len(suite.ids - other.ids)} tests have other ids: {', '.join(sorted(gone)[:2])}"
    for key, case in suite.tests.items():
        if case.final_outcome is not other.tests[key].final_outcome:
            return f"`{case.name}` ends otherwise"
    return RIGHT


def _renamed(suite: Played, renamed: Played) -> str:
    """One test is gone, and one is new."""
    gone, new = suite.ids - renamed.ids, renamed.ids - suite.ids
    return RIGHT if (len(gone), len(new)) == (1, 1) else f"{len(gone)} gone, {len(new)} new"


def _projects(suite: Played, projects: Played) -> str:
    """Each test is there once for each project."""
    if len(projects.ids) == 2 * len(suite.ids):
        return RIGHT
    return f"{len(projects.ids)} tests instead of {2 * len(suite.ids)}"


def _shards(suite: Played, first: Played, second: Played) -> str:
    """Each test is in exactly one of two shards that both have some, under its own id."""
    if not first.ids or not second.ids:
        return "a shard is empty"
    if first.ids & second.ids:
        return f"{len(first.ids & second.ids)} tests are in both"
    return RIGHT if first.ids | second.ids == suite.ids else "not the tests of the suite"


def _broken(suite: Played, broken: Played, scene: Scene) -> str:
    """More than tests failed; all failed tests are quarantined, and the change touches all files.

    Nothing may be excused even if the repository named the exit code as one of failed tests.
    """
    if not broken.files:
        return RIGHT
    report = _report_of(suite, broken)
    named = replace(report, codes=ExitCodes(frozenset({broken.ended.exit_code})))
    if completeness.gaps_of(named, CHANGED):
        return RIGHT
    if scene in STRUCK and suite.ids <= broken.ids and _failures(suite) < _failures(broken):
        return AS_FAILURE
    return BY_CODE if completeness.gaps_of(report, CHANGED) else NOT_HELD


def _report_of(suite: Played, broken: Played) -> JobReport:
    files = broken.files
    account = Account(
        exit_code=broken.ended.exit_code,
        runner=broken.ended.runner,
        undelivered=sum(each.undelivered for each in files),
        is_interrupted=any(each.is_interrupted for each in files),
        unread_failures=sum(each.unread_failures for each in files),
        unknown_words=tuple(sorted({word for each in files for word in each.unknown_words})),
    )
    results = list(broken.tests.values())
    failed = sum(case.kind is CaseKind.TEST and _has_failed(case) for case in results)
    # A failure of a suite, or of a file, is no test that anybody has quarantined.
    if any(case.kind is not CaseKind.TEST and _has_failed(case) for case in results):
        account = replace(account, unread_failures=account.unread_failures + 1)
    if any(_has_failed(case) for key, case in broken.tests.items() if key not in suite.tests):
        account = replace(account, unread_failures=account.unread_failures + 1)
    is_partial = any(each.status is not FileStatus.ACCEPTED for each in files)
    near = {case.file or case.classname for case in results}
    gone = [case for key, case in suite.tests.items() if key not in broken.tests]
    missing = tuple(
        MissingTest(case.name, case.file, case.classname, (case.file or case.classname) in near)
        for case in gone
    )
    expected = Expectation(len(suite.ids), missing, has_exit_code=True)
    return JobReport("unit", (Part(account, failed, is_partial),), expected)


def _failures(played: Played) -> set[str]:
    return {key for key, case in played.tests.items() if _has_failed(case)}


def _has_failed(case: CaseResult) -> bool:
    return case.final_outcome is Outcome.FAILED
