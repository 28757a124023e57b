"""The tests that failed in a queue's test run, and their history when the run began.

Reads the database only. The rules are in `testhealth/detector/hindsight.py`. How long a queue
waits for the results of failed checks is learned from its failed runs (docs/design/evidence.md 1).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from service.database.database import Tx
from service.evidence import upload_completeness
from service.evidence.expected_tests import Lookup
from service.evidence.store import queue_facts
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import Run
from service.mergequeue.store import runs as stored_runs
from service.provenance import Proof
from service.testhealth.detector import completeness, hindsight, quarantine
from service.testhealth.detector.completeness import JobReport
from service.testhealth.detector.excuses import FailedCheck, FailedTest
from service.testhealth.detector.health import Evidence
from service.testhealth.detector.hindsight import Moment
from service.testhealth.detector.spans import Scale
from service.testhealth.operations import answers, failure_texts, judge, records
from service.testhealth.operations.judge import RepositoryTests
from service.testhealth.reports import frames, jobs
from service.testhealth.reports.results import Outcome
from service.testhealth.store import attempts as test_attempts
from service.testhealth.store import listings, uploads
from service.testhealth.store import quarantine as test_quarantine
from service.testhealth.store import states as test_states
from service.testhealth.store.attempts import StoredAttempt
from service.testhealth.store.index_cache import CachedIndex
from service.testhealth.store.listings import ListedCase
from service.testhealth.store.uploads import Upload
from service.vocabulary import CheckOutcome, Health, Override, Sha

PAST_MAX = 20
"""Failed runs that are considered, the newest of a queue."""

IN_VAIN_MIN = 2
"""A check is silent after this many failures whose results were awaited in vain."""

TIMED_MIN = 3
"""So many failures with results show how long results of a check need."""

MARGIN = timedelta(seconds=15)
"""Results are awaited so much longer than they have ever needed."""


def waits_of(session: Tx, queue_id: int) -> Mapping[str, timedelta]:
    """Return for each check how long its results are awaited, of those about which that is known.

    A check that never has results is not awaited. For the others it is the longest time that
    results needed after the queue asked, with a margin.
    """
    ids = queue_facts.runs_with_evidence_asked(session, queue_id, PAST_MAX)
    past = stored_runs.runs_of(session, queue_id, ids)
    waits = _learned(session, past)
    return waits | dict.fromkeys(_silent_in(past), timedelta(0))


def _learned(session: Tx, past: tuple[Run, ...]) -> dict[str, timedelta]:
    """Return the waits of checks by the times at which the last results of runs arrived.

    Results are those of any job of the run: they may belong to any of its failed checks.
    """
    arrived = queue_facts.results_arrived(session, [run.id for run in past])
    needed: defaultdict[str, list[timedelta]] = defaultdict(list)
    for run in past:
        if run.id in arrived and run.asked_evidence is not None:
            for name in _failed_names(run):
                needed[name].append(arrived[run.id] - run.asked_evidence)
    return {
        name: min(max(*times, timedelta(0)) + MARGIN, verdict.EVIDENCE_WAIT)
        for name, times in needed.items()
        if len(times) >= TIMED_MIN
    }


def _silent_in(past: tuple[Run, ...]) -> frozenset[str]:
    """Return the checks that had no results when they failed, in any of these runs.

    Only a run in which one check failed shows for which check its queue waited.
    """
    in_vain: Counter[str] = Counter()
    reported: set[str] = set()
    for run in past:
        explained = frozenset(run.evidence.explanations) if run.evidence is not None else set()
        silent = frozenset(run.evidence.silent) if run.evidence is not None else set()
        reported |= explained - silent
        names = _failed_names(run)
        in_vain.update(names & silent)
        if len(names) == 1 and run.evidence is None and _was_awaited(run):
            in_vain.update(names)
    return frozenset(
        name for name, count in in_vain.items() if count >= IN_VAIN_MIN and name not in reported
    )


def _failed_names(run: Run) -> frozenset[str]:
    """Return the checks that failed; the results of one that had not ended may still come."""
    return frozenset(
        one.required.name
        for one in verdict.standings_of(run)
        if one.outcome is CheckOutcome.FAILED and not one.is_revoked and one.doom is None
    )


def _was_awaited(run: Run) -> bool:
    """Return whether the run was judged only after the whole wait."""
    asked, finished = run.asked_evidence, run.finished_at
    return asked is not None and finished is not None and finished - asked >= verdict.EVIDENCE_WAIT


HEADS_SINCE = timedelta(days=14)
"""Uploads of a pull request's own head are considered for this time."""

TESTS_MAX = 500
"""If more tests fail in one check, none is examined and none is excused."""


@dataclass(frozen=True, slots=True)
class RunStart:
    """The start of a run: when, on which target branch, with which heads of pull requests."""

    at: datetime
    branch: str
    heads: Mapping[int, Sha]

    @property
    def prs(self) -> frozenset[int]:
        """Return the pull requests of the run."""
        return frozenset(self.heads)


@dataclass(frozen=True, slots=True)
class ReportedCheck:
    """A failed check with the uploads of its jobs, and the greatest number of failed steps.

    `conclusion` is the provider's; `others` are the keys under which other jobs of the CI run
    reported, or passed without a report. `contrary` are uploads that are proved less than others:
    their failures count, and they excuse nothing.
    """

    name: str
    uploads: tuple[Upload, ...]
    failed_steps: int
    conclusion: str = ""
    others: frozenset[str] = frozenset()
    contrary: tuple[Upload, ...] = ()

    @property
    def proof(self) -> Proof:
        """Return the weakest proof of the uploads."""
        proofs = (each.account.proof for each in self.uploads)
        return min(proofs, key=completeness.STRENGTH.index, default=Proof.NONE)

    @property
    def is_mass(self) -> bool:
        """Return whether all uploads with failures are mass failures."""
        failing = [each for each in self.uploads if each.failures]
        return bool(failing) and all(each.is_mass for each in failing)

    @property
    def is_whole(self) -> bool:
        """Return whether all of the uploads was read and is small enough to examine."""
        failed = sum(each.failures for each in self.uploads)
        return (self.is_mass or failed <= TESTS_MAX) and not any(
            each.is_partial for each in self.uploads
        )


@dataclass(frozen=True, slots=True)
class Findings:
    """The failed checks with their tests, and the tests that each pull request fails alone."""

    checks: tuple[FailedCheck, ...]
    fails_alone: Mapping[int, frozenset[str]]


@dataclass(slots=True)
class _Failed:
    """A test's failures in one check."""

    keys: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)
    is_quarantined: bool = True
    attempts: list[StoredAttempt] = field(default_factory=list)

    def add(self, attempt: StoredAttempt) -> None:
        self.attempts.append(attempt)
        if attempt.failure is not None:
            self.keys.add(attempt.failure)
        self.files |= frames.files_in(attempt.stack or "")
        self.is_quarantined &= attempt.is_quarantined


@dataclass(frozen=True, slots=True)
class _Flaky:
    """Flaky tests: `by_others` are flaky without the results of the run's own pull requests.

    `of_own` are flaky only with them, and no person had quarantined them.
    """

    by_others: frozenset[int] = frozenset()
    of_own: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class _History:
    """The history of the failed tests, by number."""

    cases: Mapping[int, ListedCase]
    keys: Mapping[int, frozenset[str]]
    red: frozenset[int] = frozenset()
    flaky: _Flaky = _Flaky()


def look_up(
    tests: RepositoryTests, reported: Sequence[ReportedCheck], began: RunStart
) -> tuple[Findings, CachedIndex | None]:
    """Return the history of every test that failed in these checks, and the standing to store.

    Quarantine is that of the start of the run, as it was stored with each upload.
    """
    failed = {
        each.name: {} if each.is_mass or not each.is_whole else _failed_of(tests, each)
        for each in reported
    }
    nos = sorted({no for tests in failed.values() for no in tests})
    history, kept = _history_of(tests, nos, began)
    checks = tuple(
        FailedCheck(
            name=each.name,
            is_reported=each.is_whole,
            failed_steps=each.failed_steps,
            is_mass=each.is_mass,
            tests=tuple(_test(no, attempts, history) for no, attempts in failed[each.name].items()),
            reports=() if each.is_mass or not each.uploads else _reports(tests, each, began),
        )
        for each in reported
    )
    return Findings(checks, _fails_alone(tests, history.cases, began)), kept


def _reports(
    tests: RepositoryTests, reported: ReportedCheck, began: RunStart
) -> tuple[JobReport, ...]:
    """Return the uploads of a check with what they should contain."""
    needs = Proof[tests.context.settings.excuse_proof.name]
    lookup = Lookup(tests.session, tests.sets, tests.context.repository, began.at, needs)
    reports = upload_completeness.reports_of(lookup, began.branch, reported.uploads)
    since = tests.context.now - HEADS_SINCE
    beside, every = upload_completeness.jobs_of_branch(
        lookup, began.branch, reported.uploads, since
    )
    called_so = {key for key in every if jobs.is_called(reported.name, key)}
    missing = (beside | called_so) - reported.others - {each.job for each in reported.uploads}
    ended = [replace(each, conclusion=reported.conclusion) for each in reports]
    ended[0] = replace(ended[0], jobs_missing=tuple(sorted(missing)))
    return tuple(ended)


def _failed_of(tests: RepositoryTests, reported: ReportedCheck) -> dict[int, _Failed]:
    """Return the failed tests of a check; the contrary uploads alone are no failures of it."""
    own = _failed_in(tests, reported.uploads)
    return _failed_in(tests, (*reported.uploads, *reported.contrary)) if own else own


def _failed_in(tests: RepositoryTests, sent: Iterable[Upload]) -> dict[int, _Failed]:
    """Return the tests whose last attempt in one of the uploads failed."""
    failed: defaultdict[int, _Failed] = defaultdict(_Failed)
    for upload in sent:
        attempts = test_attempts.attempts_of(tests.session, upload.id)
        last = {each.no: each for each in attempts if each.outcome is not Outcome.SKIPPED}
        for each in attempts:
            if each.outcome is Outcome.FAILED and last[each.no].outcome is Outcome.FAILED:
                failed[each.no].add(each)
    return failed


def _test(no: int, failed: _Failed, history: _History) -> FailedTest:
    case = history.cases[no]
    known_keys = history.keys.get(no, frozenset())
    return FailedTest(
        id=case.id,
        file=case.file,
        classname=case.classname,
        keys=frozenset(failed.keys),
        known_keys=known_keys,
        files=frozenset(failed.files),
        was_quarantined=failed.is_quarantined and no not in history.flaky.of_own,
        was_red_on_base=no in history.red,
        was_flaky=no in history.flaky.by_others,
        is_of_fixture=failure_texts.is_of_fixture(failed.attempts, known_keys),
    )


@dataclass(frozen=True, slots=True)
class KnownBefore:
    """Tests of a run by what was known of them when it began, or is decided of them now.

    `quarantined` are those whose failures count as passed now, `flaky` those that were flaky
    without the results of the run's own pull requests, `red` those that failed on the target.
    """

    quarantined: frozenset[int] = frozenset()
    flaky: frozenset[int] = frozenset()
    red: frozenset[int] = frozenset()


def known_before(
    tests: RepositoryTests, nos: Sequence[int], began: RunStart
) -> tuple[KnownBefore, CachedIndex | None]:
    """Return what is known of tests of which no report has arrived yet, and the index to store."""
    history, kept = _history_of(tests, nos, began)
    quarantined = frozenset(
        no
        for no, case in history.cases.items()
        if records.setting_of(tests.context, case) is not None
    )
    return KnownBefore(quarantined, history.flaky.by_others, history.red), kept


def _history_of(
    tests: RepositoryTests, nos: Sequence[int], began: RunStart
) -> tuple[_History, CachedIndex | None]:
    here, session = tests.place.repository_id, tests.session
    cases = {case.no: case for case in listings.listed_cases(session, here, nos)}
    keys = failure_texts.known_keys(session, here, nos, began.at, began.prs)
    if not nos:
        return _History(cases, keys), None
    kept, evidence = judge.evidence_now(tests, nos)
    scale = kept.index.scale
    if scale is None:
        return _History(cases, keys), kept
    red = {
        no
        for no, each in evidence.items()
        if hindsight.was_red(each, scale, Moment(began.at, began.branch))
    }
    flaky = _flaky(tests, evidence, scale, began)
    return _History(cases, keys, frozenset(red), flaky), kept


def _flaky(
    tests: RepositoryTests, evidence: Mapping[int, Evidence], scale: Scale, began: RunStart
) -> _Flaky:
    """Return the tests that were flaky then, with or without the run's own results."""
    here, session = tests.place.repository_id, tests.session
    written = test_states.histories_of(session, here, evidence)
    said = {
        no: each
        for no, each in evidence.items()
        if answers.status_at(written.get(no, ()), began.at) is Health.FLAKY
    }
    digests = {event.upload for each in said.values() for event in each.events if event.upload}
    prs = uploads.prs_of(session, here, digests)
    own = {digest for digest, tested in prs.items() if not began.prs.isdisjoint(tested)}
    moment = Moment(began.at, began.branch, own)
    by_others = {no for no, each in said.items() if hindsight.was_flaky(each, scale, moment)}
    of_own = {no for no in said.keys() - by_others if not _is_shielded(tests, no, began.at)}
    return _Flaky(frozenset(by_others), frozenset(of_own))


def _is_shielded(tests: RepositoryTests, no: int, at: datetime) -> bool:
    """Return whether a person had quarantined the test by then."""
    said = test_quarantine.override_history(tests.session, tests.place.repository_id, no)
    before = [each for each in said if each.at <= at]
    if not before:
        return False
    last = before[-1]
    return quarantine.in_force(last.override, last.expires_at, at) is Override.ALWAYS_QUARANTINE


def _fails_alone(
    tests: RepositoryTests, cases: Mapping[int, ListedCase], began: RunStart
) -> dict[int, frozenset[str]]:
    """Return by pull request the tests that the newest uploads of its head fail and none passes."""
    session, nos = tests.session, sorted(cases)
    if not nos:
        return {}
    since = tests.context.now - HEADS_SINCE
    here = tests.place.repository_id
    sent = uploads.of_heads(session, here, set(began.heads.values()), since)
    # A large set of results comes in several uploads; those of one attempt of a run are one.
    newest = {(each.pr_number, each.job): _attempt_of(each) for each in sent}
    last_sent = [each for each in sent if newest[each.pr_number, each.job] == _attempt_of(each)]
    pr_of = {
        each.id: pr
        for each in last_sent
        for pr, head in began.heads.items()
        if (each.pr_number, each.sha) == (pr, head)
    }
    failed: defaultdict[int, set[int]] = defaultdict(set)
    passed: defaultdict[int, set[int]] = defaultdict(set)
    members = tests.sets.members({each.passed for each in sent if each.passed}, nos)
    for each in last_sent:
        if each.id in pr_of:
            passed[pr_of[each.id]].update(members.get(each.passed or "", ()))
    ended = test_attempts.outcomes(session, sorted(pr_of), nos)
    last = {(each, no): outcome for each, no, outcome in ended if outcome is not Outcome.SKIPPED}
    for (upload, no), outcome in last.items():
        (failed if outcome is Outcome.FAILED else passed)[pr_of[upload]].add(no)
    return {
        pr: frozenset(cases[no].id for no in tests_failed - passed[pr])
        for pr, tests_failed in failed.items()
    }


def _attempt_of(upload: Upload) -> tuple[str, int] | str:
    """Return the attempt of the CI run that an upload belongs to; its own id if it names none."""
    return upload.id if upload.run_id is None else (upload.run_id, upload.run_attempt)
