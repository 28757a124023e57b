"""Find the tests that a CI job should have reported, by earlier results of the target branch.

Reads the database only. The rule is in docs/design/evidence.md 5: each test is reported by as many
jobs of the CI run as on the target branch, so shards of a job may exchange tests.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime

from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.evidence.store import base_uploads
from service.provenance import Proof
from service.testhealth.detector import completeness
from service.testhealth.detector.completeness import Expectation, MissingTest, Part
from service.testhealth.detector.runner_ends import SPEAKERS
from service.testhealth.reports.reading import SUITE_FAILURE, UNNAMED
from service.testhealth.reports.uploads import UploadClass
from service.testhealth.store import listings
from service.testhealth.store.cases import ASKED_AT_ONCE
from service.testhealth.store.listings import ListedCase
from service.testhealth.store.sets import StoredSets
from service.testhealth.store.uploads import Upload

POINTS_MAX, CLEAN_POINTS = 3, 2
"""Newest runs of a job on the branch that are examined, back to the second without a failure."""

NAMED_MAX = 5 * ASKED_AT_ONCE
"""If more tests are missing, the rest is counted only."""

LANDED_MAX = 10
"""Pull requests of the newest runs that landed whose deleted files are looked up."""

NO_TESTS = frozenset({SUITE_FAILURE, UNNAMED, "(package)"})
"""Names in reports that are not tests."""

Reporting = Mapping[str, Sequence[Upload]]
"""Each job → its uploads in one CI run."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """A transaction that examines uploads of one repository.

    `before`: later results of the target branch say nothing, because they may be about newer code.
    `needs` is what must prove a report that excuses failures of a test run.
    """

    session: Tx
    sets: StoredSets
    repository: RepositoryRecord
    before: datetime
    needs: Proof

    @property
    def id(self) -> int:
        """The repository."""
        return self.repository.id

    def tests(self, sent: Sequence[Upload]) -> set[int]:
        """Return the numbers of all tests that these uploads report."""
        return base_uploads.tests_in(self.session, self.sets, sent) if sent else set()

    def ran(self, sent: Sequence[Upload]) -> set[int]:
        """Return those of them that were not skipped."""
        return base_uploads.ran_in(self.session, self.sets, sent) if sent else set()


@dataclass(frozen=True, slots=True)
class Sent:
    """The uploads of a job, and those of other jobs of the same CI run."""

    uploads: Sequence[Upload]
    siblings: Reporting

    @property
    def job(self) -> str:
        """The job key."""
        return self.uploads[0].job

    @property
    def is_of_queue(self) -> bool:
        """Return whether a queue's test run is among what was tested, so that excuses may land."""
        return any(each.kind == UploadClass.QUEUE.value for each in self.uploads)


def expectation(
    lookup: Lookup, branch: str, sent: Sent, *, is_command: bool = False
) -> Expectation:
    """Return what is expected of a job, and which tests are missing.

    `is_command`: the uploads are those of one command. Of a job with several commands only this
    command's tests are expected, where the target branch knows the command; and tests of other
    jobs only if this job has exchanged tests with them, since those may still run.
    """
    points = newest_points(_base_of(lookup, branch, sent, is_command=is_command))
    base = [each for point in points for each in point]
    if not base:
        return Expectation(0, is_unproved=_has_unproved(lookup, branch, sent))
    siblings = _siblings_on_base(lookup, points, sent)
    runs = [_by_job(lookup, point, siblings, sent.job) for point in points]
    present = {
        sent.job: lookup.tests(sent.uploads),
        **{job: lookup.tests(uploads) for job, uploads in sent.siblings.items()},
    }
    beside = _jobs_beside(runs, present, sent, is_command=is_command)
    tests = set[int]().union(*(run[job] for run in runs for job in run if job in beside))
    reporting = beside | sent.siblings.keys()
    wanted, found = _most(runs, reporting), _counted(present, {sent.job, *siblings})
    missing = {no for no in tests - present[sent.job] if found[no] < wanted[no]}
    expected = Expectation(
        expected=len(tests),
        skipped=_skipped(lookup, base, siblings, sent),
        has_exit_code=all(each.account.exit_code is not None for each in base),
        landed=_landed(base),
        speaking=_speaking(base),
    )
    newest = set[int]().union(*runs[0].values())
    return _named(lookup, expected, missing, set[int]().union(*present.values()), newest)


def _base_of(lookup: Lookup, branch: str, sent: Sent, *, is_command: bool) -> list[Upload]:
    own = {each.id for each in sent.uploads}
    base = [each for each in proved_of_job(lookup, branch, sent) if each.id not in own]
    keys = {each.account.command_key for each in sent.uploads}
    if is_command and "" not in keys:
        return [each for each in base if each.account.command_key in keys] or base
    return base


def proved_of_job(lookup: Lookup, branch: str, sent: Sent) -> list[Upload]:
    """Return the newest uploads of a job on the target branch that may say what is expected.

    For a test run of a queue they are proved as far as its own reports must be: others could leave
    tests out, and displace the results that have them.
    """
    found = base_uploads.of_job(lookup.session, lookup.id, branch, sent.job, lookup.before)
    return [each for each in found if _may_say(lookup, each, sent)]


def _may_say(lookup: Lookup, upload: Upload, sent: Sent) -> bool:
    return not sent.is_of_queue or is_from_its_sender(lookup, upload)


def _has_unproved(lookup: Lookup, branch: str, sent: Sent) -> bool:
    """Return whether the job has reported on the branch, and nothing proves that it was the job."""
    own = {each.id for each in sent.uploads}
    found = base_uploads.of_job(lookup.session, lookup.id, branch, sent.job, lookup.before)
    return any(each.id not in own and not _may_say(lookup, each, sent) for each in found)


def newest_points(base: Sequence[Upload]) -> list[list[Upload]]:
    """Return the uploads of the newest CI runs of a job, back to the second without a failure.

    All attempts of a run count together: a later attempt may repeat only the tests that failed. One
    run is not enough: it may have been canceled after half of its results, or still be reporting.
    Tests that were deleted since are in older runs alone.
    """
    points: dict[str, list[Upload]] = {}
    for upload in base:
        points.setdefault(upload.run_id or upload.id, []).append(upload)
    chosen: list[list[Upload]] = []
    clean = 0
    for point in list(points.values())[:POINTS_MAX]:
        chosen.append(point)
        last_attempt = max(each.run_attempt for each in point)
        clean += _is_clean([each for each in point if each.run_attempt == last_attempt])
        if clean == CLEAN_POINTS:
            break
    return chosen


def _is_clean(point: Sequence[Upload]) -> bool:
    """Return whether uploads are all that was announced, are whole, and hold no failure."""
    return not any(each.failures or each.account.exit_code for each in point) and is_whole(point)


def is_whole(point: Sequence[Upload]) -> bool:
    """Return whether uploads are all that was announced, and have been read to their end."""
    parts = [Part(each.account, each.failures) for each in point]
    return completeness.is_sealed(parts) and not any(
        each.is_partial
        or each.account.unsent_files
        or each.account.undelivered
        or each.account.unread_failures
        or each.account.unknown_words
        or each.account.is_interrupted
        or not all(end.is_plain for end in each.runner_ends)
        for each in point
    )


def _siblings_on_base(
    lookup: Lookup, points: Sequence[Sequence[Upload]], sent: Sent
) -> dict[str, list[Upload]]:
    """Return the uploads of other jobs in the same CI runs of the target branch."""
    run_ids = sorted({each.run_id for point in points for each in point if each.run_id})
    found: dict[str, list[Upload]] = {}
    for each in base_uploads.of_runs(lookup.session, lookup.id, run_ids):
        if each.job != sent.job and _may_say(lookup, each, sent):
            found.setdefault(each.job, []).append(each)
    return found


def _by_job(
    lookup: Lookup, point: Sequence[Upload], siblings: Reporting, job: str
) -> dict[str, set[int]]:
    """Return the tests that each job reported in one CI run of the target branch."""
    run_id = point[0].run_id
    others = {
        name: [each for each in uploads if run_id is not None and each.run_id == run_id]
        for name, uploads in siblings.items()
    }
    return {job: lookup.tests(point), **{name: lookup.tests(of) for name, of in others.items()}}


def _jobs_beside(
    runs: Sequence[Mapping[str, set[int]]],
    present: Mapping[str, set[int]],
    sent: Sent,
    *,
    is_command: bool,
) -> Set[str]:
    """Return the jobs whose tests are expected: this one, and others."""
    if not is_command:
        return {sent.job, *sent.siblings}
    own = set[int]().union(*(run[sent.job] for run in runs))
    others = {job: set[int]().union(*(run[job] for run in runs)) for job in runs[0]}
    gained = present[sent.job] - own
    return {sent.job, *(job for job, tests in others.items() if tests & gained)}


def _most(runs: Iterable[Mapping[str, set[int]]], jobs: Set[str]) -> Counter[int]:
    """Return how many of these jobs reported each test, in the CI run in which most did."""
    most: Counter[int] = Counter()
    for run in runs:
        most |= _counted(run, jobs)
    return most


def _counted(tests: Mapping[str, set[int]], jobs: Set[str]) -> Counter[int]:
    counted: Counter[int] = Counter()
    for job, nos in tests.items():
        if job in jobs:
            counted.update(nos)
    return counted


def _speaking(base: Iterable[Upload]) -> frozenset[str]:
    """Return the runners that said in all of their uploads how they ended."""
    spoke: dict[str, bool] = {}
    for each in base:
        speaker = SPEAKERS.get(each.account.runner)
        if speaker is not None:
            has_spoken = any(end.runner == speaker for end in each.runner_ends)
            spoke[speaker] = spoke.get(speaker, True) and has_spoken
    return frozenset(speaker for speaker, has_spoken in spoke.items() if has_spoken)


def _landed(base: Iterable[Upload]) -> tuple[int, ...]:
    tested = (pr for each in base if each.kind == UploadClass.QUEUE.value for pr in each.prs)
    return tuple(dict.fromkeys(tested))[:LANDED_MAX]


def _skipped(
    lookup: Lookup, base: Sequence[Upload], siblings: Reporting, sent: Sent
) -> tuple[MissingTest, ...]:
    """Return tests of a queue's test run that are skipped although they passed on the target.

    A skip that the own head of a pull request has had as well was seen where it was reviewed.
    """
    if any(each.kind != UploadClass.QUEUE.value for each in sent.uploads):
        return ()
    skipped = lookup.tests(sent.uploads) - lookup.ran(sent.uploads)
    if not skipped:
        return ()
    others = [each for uploads in siblings.values() for each in uploads]
    suspicious = skipped & (lookup.ran(base) | (lookup.ran(others) - lookup.tests(base)))
    if suspicious:
        prs = sorted({pr for each in sent.uploads for pr in each.prs})
        heads = base_uploads.of_pull_requests(lookup.session, lookup.id, sent.job, prs)
        proved = [each for each in heads if is_from_its_sender(lookup, each)]
        suspicious -= lookup.tests(proved) - lookup.ran(proved)
    return tuple(_test(case) for case in _cases(lookup, suspicious))


def is_from_its_sender(lookup: Lookup, upload: Upload) -> bool:
    """Return whether it is proved, as far as the repository asks, that its job has sent it."""
    return completeness.is_enough(upload.account.proof, lookup.needs)


def _named(
    lookup: Lookup,
    expected: Expectation,
    missing: Set[int],
    present: Set[int],
    newest: Set[int],
) -> Expectation:
    """Return the expectation with the missing tests by name, without those that are no tests.

    What the newest run of the target branch lacks as well, while it has others of the same file,
    was removed from the target branch.
    """
    cases = _cases(lookup, missing)
    neighbors = _neighbors(lookup, cases)
    named = []
    for case in cases:
        near = neighbors[_place(case)]
        if case.no in newest or not near & newest:
            named.append(replace(_test(case), has_neighbors=bool(near & present)))
    unnamed = max(0, len(missing) - NAMED_MAX)
    dropped = len(missing) - unnamed - len(named)
    return replace(
        expected, expected=expected.expected - dropped, missing=tuple(named), unnamed=unnamed
    )


def _cases(lookup: Lookup, nos: Set[int]) -> list[ListedCase]:
    """Return the first of these tests by name, without those that are no tests."""
    chosen = sorted(nos)[:NAMED_MAX]
    cases: list[ListedCase] = []
    for first in range(0, len(chosen), ASKED_AT_ONCE):
        some = chosen[first : first + ASKED_AT_ONCE]
        cases += listings.listed_cases(lookup.session, lookup.id, some)
    return [case for case in cases if case.name not in NO_TESTS]


def _test(case: ListedCase) -> MissingTest:
    return MissingTest(case.name, case.file, case.classname)


def _place(case: ListedCase) -> tuple[str, str]:
    """Return where a test is: its file, or its class if the report names no file.

    A module that did not load, or is skipped as a whole, may be a case without either: its name is
    the class of the module's tests.
    """
    return (case.file, "") if case.file else ("", case.classname or case.name)


def _neighbors(lookup: Lookup, cases: Iterable[ListedCase]) -> Mapping[tuple[str, str], Set[int]]:
    """Return the numbers of all tests at the places of these."""
    return base_uploads.tests_at(lookup.session, lookup.id, {_place(case) for case in cases})
