"""Explain why the checks of a run failed, by the tests that failed in them.

The rules are in docs/design/evidence.md 3. Nothing is excused where anything is unknown: a check
whose report is missing, cut off or about more than its tests is unexplained.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from pathlib import PurePosixPath

from service.testhealth.detector import completeness
from service.testhealth.detector.completeness import Changes, JobReport, MissingTest
from service.testhealth.reports import classes
from service.testhealth.reports.identity import is_absolute
from service.vocabulary import Explanation

FINGERPRINT_FAILURES_MAX = 50
FINGERPRINT_HEX_DIGITS = 16
FAILED_TESTS_MAX = 50
"""A check in which more tests failed is known by its name alone."""

KNOWN_KEYS_ENOUGH = 5
"""A test that has failed in so many ways may fail in another one."""

EXCUSING = frozenset({Explanation.QUARANTINED, Explanation.FLAKY, Explanation.BASE_RED})
"""The explanations that spare the pull requests of a run, and so need a complete report.

INFRA is not among them: a pull request that makes nearly everything fail gains another try.
"""

NEAR, SAME_FILE, OWN_HEAD = 3.0, 8.0, 20.0
"""The factors of suspicion: a change beside an own test, of its file, one that fails it alone."""


class Relation(StrEnum):
    """The relation of a failed test to the run, the first that holds.

    `own`: the run is to be asked about it. `excused`: it was quarantined when the run began.
    `red_on_base`: it fails on the target branch as well. `known`: it was flaky before and
    fails as it has failed before.
    """

    OWN = "own"
    EXCUSED = "excused"
    RED_ON_BASE = "red_on_base"
    KNOWN = "known"


@dataclass(frozen=True, slots=True)
class FailedTest:
    """A test that failed in a check, and what was known of it when the run began.

    `keys` are those of its failures in this check, `known_keys` those of the 30 days before.
    `files` are the files of the repository that the failures' stacks name. `was_flaky` is judged
    without the events of the run's own pull requests. `is_of_fixture`: a fixture failed that other
    tests may share, and not the test itself.
    """

    id: str
    file: str
    classname: str
    keys: frozenset[str]
    known_keys: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    was_quarantined: bool = False
    was_red_on_base: bool = False
    was_flaky: bool = False
    is_of_fixture: bool = False


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A failed check and what was reported of the CI job that it is.

    `is_reported`: the job is identified, has uploads and all their files were read whole.
    `failed_steps` None: nobody knows. `is_mass`: so much failed that it says nothing of tests,
    which need not be named then. `reports` are its uploads beside what they should hold: only
    complete ones excuse anything.
    """

    name: str
    is_reported: bool
    failed_steps: int | None = None
    is_mass: bool = False
    tests: tuple[FailedTest, ...] = ()
    reports: tuple[JobReport, ...] = ()


@dataclass(frozen=True, slots=True)
class Suspect:
    """A pull request of the run: what it changes, and which tests its own head fails.

    `paths` None: nobody knows, so it may change anything. `deleted` are those of them that it
    deletes. `fails_alone` are ids of tests that the newest uploads of its pinned head fail without
    a pass.
    """

    pr: int
    paths: frozenset[str] | None
    fails_alone: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The facts known of a failed run.

    `fingerprint` groups runs that failed alike, None without own failures. `own_head` are pull
    requests whose own head fails the same tests. `weights` has those above 1. `new_texts` are
    ids of excused tests that failed in a way not seen before. `gaps` says what is missing in
    the reports of checks. One that would be excused otherwise has no explanation: more may arrive.
    `failed_tests` are the ids of all failed tests of each check whose report is complete, and
    `unexplained_tests` those of them that still need a cause. `red_on_base` are the ids of failed
    tests that failed on the target branch before the run, at most 50.
    """

    explanations: Mapping[str, Explanation]
    fingerprint: str | None = None
    own_head: tuple[int, ...] = ()
    weights: Mapping[int, float] = field(default_factory=dict)
    new_texts: tuple[str, ...] = ()
    gaps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    failed_tests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unexplained_tests: tuple[str, ...] = ()
    red_on_base: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rules:
    """The limits of what may be excused.

    `excused_max`: more excused tests in the whole run explain nothing (`maxExcusedFailures`).
    `knows_flaky` false: a known flake explains nothing either (`flakyKnowledgeEnabled`).
    `new_texts` says what a quarantined test is that fails in a way not seen before: excused,
    known (its check is run once more), or the run's own.
    """

    excused_max: int
    knows_flaky: bool = True
    new_texts: Relation = Relation.EXCUSED


def judge(
    checks: Sequence[FailedCheck],
    suspects: Sequence[Suspect],
    rules: Rules,
    below: Sequence[Suspect] = (),
) -> Knowledge:
    """Explain every failed check of a run, and say whom to suspect.

    `below` are the pull requests that the run is built on: what they delete is missing rightly.
    """
    standings = {
        check.name: [(test, relation_of(test, suspects, rules.new_texts)) for test in check.tests]
        for check in checks
    }
    every = [one for relations in standings.values() for one in relations]
    excused = {test.id for test, standing in every if standing is Relation.EXCUSED}
    is_too_much = len(excused) > rules.excused_max
    explanations, gaps, failed_tests = {}, {}, {}
    changes = changes_of((*suspects, *below))
    for check in checks:
        relations = {standing for _, standing in standings[check.name]}
        why = _why(check, relations, is_too_much=is_too_much)
        if why is Explanation.FLAKY and not rules.knows_flaky:
            why = Explanation.UNEXPLAINED
        missing = _gaps_of(check, changes)
        if why in EXCUSING and missing:
            gaps[check.name] = missing
        else:
            explanations[check.name] = why
        if not check.is_reported and missing:
            gaps[check.name] = missing
        if _names_all(check) and not missing:
            failed_tests[check.name] = tuple(sorted(test.id for test in check.tests))
    own = [test for test, standing in every if standing is Relation.OWN]
    own_ids = {test.id for test in own}
    return Knowledge(
        explanations=explanations,
        fingerprint=fingerprint_of(own),
        own_head=tuple(sorted(each.pr for each in suspects if each.fails_alone & own_ids)),
        weights=_weights(suspects, own),
        new_texts=tuple(
            sorted(
                {
                    test.id
                    for test, standing in every
                    if test.was_quarantined and not test.keys <= test.known_keys
                }
            )
        ),
        gaps=gaps,
        failed_tests=failed_tests,
        unexplained_tests=tuple(sorted(own_ids)),
        red_on_base=tuple(
            sorted({test.id for test, _ in every if test.was_red_on_base})[:FAILED_TESTS_MAX]
        ),
    )


def _names_all(check: FailedCheck) -> bool:
    """Return whether the tests of a check are all that failed in it."""
    is_known = check.is_reported and not check.is_mass and (check.failed_steps or 0) <= 1
    return is_known and 0 < len(check.tests) <= FAILED_TESTS_MAX


def _gaps_of(check: FailedCheck, changes: Changes) -> tuple[str, ...]:
    """Return what is missing in the reports of a check, each sentence once."""
    sentences = (gap for report in check.reports for gap in completeness.gaps_of(report, changes))
    return tuple(dict.fromkeys(sentences))


def relation_of(
    test: FailedTest, suspects: Iterable[Suspect], new_texts: Relation = Relation.EXCUSED
) -> Relation:
    """Return what a failed test is to a run of these pull requests; `new_texts` as in `Rules`."""
    if any(_changes(suspect, test) for suspect in suspects):
        return Relation.OWN
    if test.is_of_fixture:
        return Relation.RED_ON_BASE if test.was_red_on_base else Relation.OWN
    if test.was_quarantined:
        return Relation.EXCUSED if test.keys <= test.known_keys else new_texts
    if test.was_red_on_base:
        return Relation.RED_ON_BASE
    is_seen = test.keys <= test.known_keys or len(test.known_keys) >= KNOWN_KEYS_ENOUGH
    return Relation.KNOWN if test.was_flaky and is_seen else Relation.OWN


def fingerprint_of(own: Iterable[FailedTest]) -> str | None:
    """16 hex digits, equal for runs whose own failures are the same; None without any."""
    failures = sorted({f"{test.id}:{key}" for test in own for key in test.keys})
    if not failures:
        return None
    text = "\n".join(failures[:FINGERPRINT_FAILURES_MAX])
    return sha256(text.encode()).hexdigest()[:FINGERPRINT_HEX_DIGITS]


def _why(check: FailedCheck, relations: set[Relation], *, is_too_much: bool) -> Explanation:
    if not check.is_reported or (check.failed_steps or 0) > 1:
        return Explanation.UNEXPLAINED
    if check.is_mass:
        return Explanation.INFRA
    if not relations or Relation.OWN in relations or is_too_much:
        return Explanation.UNEXPLAINED
    if relations == {Relation.EXCUSED}:
        return Explanation.QUARANTINED
    return Explanation.BASE_RED if Relation.RED_ON_BASE in relations else Explanation.FLAKY


def changes_of(suspects: Iterable[Suspect]) -> Changes:
    """Return what these pull requests change together; unknown changes explain nothing."""
    known = [each for each in suspects if each.paths is not None]
    paths = frozenset[str]().union(*(each.paths or () for each in known))
    deleted = frozenset[str]().union(*(each.deleted for each in known))
    return Changes(
        deletes=lambda test: _has_file_of(deleted, test),
        touches=lambda test: _has_file_of(paths, test),
    )


def _changes(suspect: Suspect, test: FailedTest) -> bool:
    return suspect.paths is None or _has_file_of(suspect.paths, test)


def _has_file_of(paths: Iterable[str], test: FailedTest | MissingTest) -> bool:
    if test.file:
        return any(_is_same_file(path, test.file) for path in paths)
    return any(classes.may_hold(path, test.classname) for path in paths)


def _is_same_file(path: str, reported: str) -> bool:
    """Return whether a report means this path of the repository.

    A runner that was started in a folder names files from there, and some name them from the
    root of their machine; whose file it may be is asked about it.
    """
    if path == reported or path.endswith(f"/{reported}"):
        return True
    return is_absolute(reported) and reported.endswith(f"/{path}")


def _weights(suspects: Iterable[Suspect], own: Sequence[FailedTest]) -> dict[int, float]:
    ids = {test.id for test in own}
    files = {test.file for test in own if test.file}.union(*(test.files for test in own))
    folders = {PurePosixPath(file).parent for file in files}
    weights = {}
    for suspect in suspects:
        paths = suspect.paths or frozenset()
        if suspect.fails_alone & ids:
            weights[suspect.pr] = OWN_HEAD
        elif paths & files:
            weights[suspect.pr] = SAME_FILE
        elif any(PurePosixPath(path).parent in folders for path in paths):
            weights[suspect.pr] = NEAR
    return weights
