"""What earlier uploads let us expect of a job: its tests, and what its exit codes mean."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection

from service.accounts.store import access
from service.accounts.tenants import RepositoryRecord
from service.evidence import expected_tests, upload_completeness
from service.evidence.expected_tests import Lookup
from service.mergequeue.engine.outputs import Step
from service.mergequeue.engine.states import RunPhase, RunStatus
from service.mergequeue.landing_records import LandingState
from service.mergequeue.store import landings, queues
from service.mergequeue.store.landings import LandingOutcome
from service.provenance import Proof
from service.testhealth.detector.completeness import (
    Account,
    ExitCodes,
    Expectation,
    JobReport,
    MissingTest,
)
from service.testhealth.reports.identity import RepositoryKey
from service.testhealth.runner_ends import EndReason, RunnerEnd
from service.testhealth.settings import TestSettings
from service.testhealth.store import quarantine
from service.testhealth.store.cases import Place
from service.testhealth.store.quarantine import Since
from service.testhealth.store.sets import OutcomeSets, StoredSets
from service.testhealth.store.uploads import Upload
from service.vocabulary import Sha
from tests.harness import databases
from tests.harness.evidence import Ledger, Ran, an_upload
from tests.store.builders import a_run
from tests.store.conftest import NOW, a_repository, a_stored_queue
from tests.store.test_landings import a_land

MINUTE = timedelta(minutes=1)
PROVED, BY_TOKEN = Account(proof=Proof.JOB), Account(proof=Proof.TOKEN)
HERE = "77"
"""The CI run that is asked about."""


@dataclass
class Jobs:
    """CI jobs that report to one repository, and what is expected of them."""

    session: Connection
    repository: RepositoryRecord
    ledger: Ledger
    number: int = 0

    def reports(self, tests: str, kind: str, run: str | None, **facts: Any) -> Upload:
        """Store a report that is newer than all before; `total mail=s`: `mail` was skipped.

        What is not said of the upload is as in a report that the job `unit` has proved.
        """
        self.number += 1
        words = (each.partition("=") for each in tests.split())
        did = {name: word or "p" for name, _, word in words}
        told = {"kind": kind, "run_id": run, "account": PROVED, **facts}
        told["prs"] = (told["pr_number"],) if "pr_number" in told else told.get("prs", ())
        at = NOW - 60 * MINUTE + self.number * MINUTE
        return self.ledger.take_in(self.session, Ran(at, did, facts=told))

    def on_main(self, tests: str, run: str, **facts: Any) -> Upload:
        """A report of a CI run of the target branch."""
        kind = facts.pop("kind", "stable")
        return self.reports(tests, kind, run, **{"branch": "main", **facts})

    def tested(self, tests: str, **facts: Any) -> Upload:
        """A report of the test run of a queue."""
        return self.reports(tests, "queue", HERE, **facts)

    @property
    def lookup(self) -> Lookup:
        sets = StoredSets(self.session, OutcomeSets(), self.repository.id)
        return Lookup(self.session, sets, self.repository, NOW, Proof.JOB)

    def report(self, *sent: Upload, is_command: bool = False, branch: str = "main") -> JobReport:
        """What is known of the one job that has sent these."""
        (report,) = upload_completeness.reports_of(self.lookup, branch, sent, is_command=is_command)
        return report

    def codes(self, *sent: Upload) -> ExitCodes:
        """The exit codes of that job that mean failed tests."""
        return self.report(*sent).codes

    def settles(self, **settings: Any) -> None:
        """Change settings of the repository."""
        place = self.ledger.place
        quarantine.put_settings(self.session, place, TestSettings(**settings), Since())

    def expected(self, *sent: Upload, is_command: bool = False) -> Expectation:
        """What is expected of that job."""
        expectation = self.report(*sent, is_command=is_command).expectation
        assert expectation is not None
        return expectation

    def missing(self, *sent: Upload, is_command: bool = False) -> list[str]:
        """The names of the tests that the job should have reported, and has not."""
        return names(self.expected(*sent, is_command=is_command).missing)

    def skipped(self, *sent: Upload) -> list[str]:
        """The names of the tests that the job has skipped for no known reason."""
        return names(self.expected(*sent).skipped)


def names(tests: Iterable[MissingTest]) -> list[str]:
    return sorted(each.name for each in tests)


@pytest.fixture
def session(sqlite_url: str) -> Iterator[Connection]:
    """Nothing of this depends on the kind of database."""
    with databases.connected(sqlite_url) as connection:
        connection.exec_driver_sql("BEGIN")
        yield connection


@pytest.fixture
def jobs(session: Connection) -> Jobs:
    org = access.ensure_organization(session, "github.test", "7", "octo")
    repository = access.upsert_repository(session, org.id, a_repository())
    ledger = Ledger(Place(org.id, repository.id), RepositoryKey("octo", "github.test/x"), NOW)
    return Jobs(session, repository, ledger)


def a_report(run: str, attempt: int = 1, account: Account = PROVED, **facts: Any) -> Upload:
    """An upload of one attempt of a CI run, outside of a database."""
    told = {"id": f"{run}.{attempt}", "run_id": run, "run_attempt": attempt, "account": account}
    return an_upload(Ran(NOW, {}, facts=told | facts), None, None)


NOT_ALL_SEEN: dict[str, dict[str, Any]] = {
    "failed": {"counts": {"failed": 1}},
    "exit code": {"account": Account(exit_code=1)},
    "partial": {"is_partial": True},
    "uploads absent": {"account": Account(session="s", session_uploads=2)},
    "files unsent": {"account": Account(unsent_files=1)},
    "undelivered": {"account": Account(undelivered=1)},
    "failures unread": {"account": Account(unread_failures=1)},
    "unknown words": {"account": Account(unknown_words=("odd",))},
    "interrupted": {"account": Account(is_interrupted=True)},
    "runner stopped": {"runner_ends": (RunnerEnd("1", "pytest", EndReason.STOPPED_EARLY),)},
}
ALL_SEEN: dict[str, dict[str, Any]] = {
    "plain": {},
    "all uploads": {"account": Account(session="s", session_uploads=1, exit_code=0)},
    "runner passed": {"runner_ends": (RunnerEnd("1", "pytest", EndReason.PASSED),)},
}


@pytest.mark.parametrize("what", [*NOT_ALL_SEEN, *ALL_SEEN])
def test_a_ci_run_of_which_not_all_passed_and_arrived_is_looked_behind(what):
    newest = a_report("4", **(NOT_ALL_SEEN | ALL_SEEN)[what])
    points = expected_tests.newest_points([newest, *(a_report(run) for run in "321")])
    assert len(points) == (3 if what in NOT_ALL_SEEN else 2)


def test_uploads_without_a_ci_run_are_seen_one_by_one():
    alone = [replace(a_report(each), run_id=None) for each in "321"]
    points = expected_tests.newest_points(alone)
    assert [[each.id for each in point] for point in points] == [["3.1"], ["2.1"]]


def test_a_report_that_proves_too_little_says_nothing_of_a_test_run(jobs: Jobs):
    jobs.on_main("total mail", "1", account=BY_TOKEN)
    sent = jobs.tested("total")
    assert jobs.expected(sent) == Expectation(0, is_unproved=True)
    head = jobs.reports("total", "pr", HERE, account=BY_TOKEN)
    assert (jobs.missing(head), jobs.expected(head).expected) == (["mail"], 2)
    jobs.on_main("total post", "2")
    assert (jobs.missing(sent), jobs.expected(sent).expected) == (["post"], 2)


def test_a_report_says_nothing_of_itself_or_of_what_was_before(jobs: Jobs):
    jobs.on_main("mail", "1", job="other")
    own = jobs.on_main("total", "2", account=BY_TOKEN)
    assert jobs.expected(own) == Expectation(0)
    jobs.on_main("total mail", "3")
    sent = jobs.tested("total")
    assert jobs.missing(sent) == ["mail"]
    before = replace(jobs.lookup, before=NOW - 60 * MINUTE)
    (report,) = upload_completeness.reports_of(before, "main", [sent])
    assert report.expectation == Expectation(0)


def test_shards_may_exchange_tests_that_they_have_proved(jobs: Jobs):
    for run in "12":
        jobs.on_main("total mail", run)
        jobs.on_main("post page", run, job="unit2")
    sent = jobs.tested("total post")
    assert (jobs.missing(sent), jobs.expected(sent).expected) == (["mail"], 2)
    assert jobs.missing(sent, is_command=True) == ["mail", "page"]
    shard = jobs.tested("mail page", job="unit2", account=BY_TOKEN)
    assert jobs.missing(sent) == ["mail"]
    again = jobs.tested("mail", job="unit2")
    assert jobs.missing(sent) == ["page"]
    assert jobs.missing(sent, is_command=True) == ["page"]
    jobs.tested("page", job="unit2")
    assert (jobs.missing(sent), jobs.expected(sent).expected) == ([], 4)
    assert jobs.missing(shard, again) == []


def test_each_test_is_reported_by_as_many_jobs_as_on_the_target_branch(jobs: Jobs):
    jobs.on_main("total mail", "1")
    jobs.on_main("total", "1", job="unit2")
    jobs.on_main("total mail", "2")
    sent = jobs.tested("mail")
    jobs.tested("total", job="unit2")
    assert jobs.missing(sent) == ["total"]


def test_jobs_of_other_ci_runs_are_no_shards(jobs: Jobs):
    jobs.on_main("total mail", "1")
    jobs.on_main("total mail", "2")
    jobs.on_main("total", "3", job="unit2")
    jobs.reports("total", "queue", "78", job="unit2")
    assert jobs.missing(jobs.tested("mail")) == ["total"]
    assert jobs.missing(jobs.tested("total")) == ["mail"]


def test_a_job_without_a_ci_run_has_no_shards(jobs: Jobs):
    for name in ("unit", "unit2"):
        jobs.on_main(f"total of_{name}", "", job=name, run_id=None)
    jobs.reports("of_unit2", "queue", None, job="unit2")
    sent = jobs.reports("total", "queue", None)
    assert (jobs.missing(sent), jobs.expected(sent).expected) == (["of_unit"], 2)


def test_a_command_is_compared_with_itself_where_it_is_known(jobs: Jobs):
    def of(key: str) -> Account:
        return replace(PROVED, command_key=key)

    jobs.on_main("total mail", "1", account=of("make test"))
    jobs.on_main("post", "1", account=of("make e2e"))
    known = jobs.tested("total", account=of("make test"))
    assert jobs.missing(known, is_command=True) == ["mail"]
    assert jobs.missing(known) == ["mail", "post"]
    for key in ("make new", ""):
        sent = jobs.tested("total", account=of(key))
        assert jobs.missing(sent, is_command=True) == ["mail", "post"]
    jobs.on_main("page", "1", account=of(""))
    assert jobs.missing(jobs.tested("total", account=of("")), is_command=True) == [
        *("mail", "page", "post")
    ]


def test_a_test_run_may_not_skip_what_passes_on_the_target_branch(jobs: Jobs):
    jobs.on_main("total mail post=s page", "1", job="unit")
    jobs.on_main("hot", "1", job="unit2")
    sent = jobs.tested("total=s mail post=s page new=s hot=s", pr_number=3)
    assert jobs.skipped(sent) == ["hot", "total"]
    assert jobs.skipped(jobs.tested("total mail", pr_number=3)) == []
    assert jobs.skipped(jobs.reports("total=s", "pr", HERE)) == []


def test_a_skip_that_the_head_proves_was_seen_in_review(jobs: Jobs):
    jobs.on_main("total mail page", "1")
    sent = jobs.tested("total=s mail=s page", pr_number=3)
    jobs.reports("total=s mail", "pr", "70", pr_number=3)
    jobs.reports("mail=s", "pr", "71", pr_number=3, account=BY_TOKEN)
    jobs.reports("mail=s", "pr", "72", pr_number=4)
    assert jobs.skipped(sent) == ["mail"]


def test_names_of_what_is_no_test_are_not_missed(jobs: Jobs):
    jobs.on_main("total (suite) (unnamed) (package)", "1")
    sent = jobs.tested("total")
    assert (jobs.missing(sent), jobs.expected(sent).expected) == ([], 1)


def test_what_the_newest_run_lacks_of_its_files_was_removed_from_the_branch(jobs: Jobs):
    jobs.on_main("a.py::total a.py::mail b.py::post", "1")
    jobs.on_main("a.py::total c.py::page", "2")
    sent = jobs.tested("a.py::other")
    found = jobs.expected(sent)
    assert {each.name: each.has_neighbors for each in found.missing} == {
        **{"total": True, "post": False, "page": False}
    }
    assert found.expected == 3


def test_tests_without_a_file_are_neighbors_by_their_class(jobs: Jobs):
    jobs.on_main("::total ::mail a.py::post", "1")
    jobs.on_main("::total", "2")
    found = jobs.expected(jobs.tested("a.py::page ::other"))
    assert {each.label: each.has_neighbors for each in found.missing} == {
        **{"TestCart::total": True, "a.py::post": True}
    }


def test_a_module_that_loads_again_is_no_missing_test(jobs: Jobs):
    jobs.on_main("::TestCart a.py::post", "1")
    jobs.on_main("::total ::mail a.py::post", "2")
    sent = jobs.tested("::total ::mail a.py::post")
    assert (jobs.missing(sent), jobs.expected(sent).expected) == ([], 3)


def test_of_very_many_missing_tests_the_first_are_named(jobs: Jobs, monkeypatch):
    monkeypatch.setattr(expected_tests, "NAMED_MAX", 2)
    jobs.on_main("total mail post", "1")
    found = jobs.expected(jobs.tested("page"))
    assert (names(found.missing), found.unnamed, found.expected) == (["mail", "total"], 1, 3)


@pytest.mark.parametrize("codes", [(0, 0), (0, None), (None, None)])
def test_a_job_sends_exit_codes_if_each_of_its_reports_has_one(jobs: Jobs, codes):
    for run, code in zip("12", codes, strict=True):
        jobs.on_main("total", run, account=replace(PROVED, exit_code=code))
    assert jobs.expected(jobs.tested("total")).has_exit_code is (None not in codes)


def test_what_landed_is_compared_with_and_named(jobs: Jobs):
    queue = a_stored_queue(jobs.session)
    landed = {}
    for run, pr in (("r1", 3), ("r2", 4)):
        facts = {"sha": Sha(f"{pr}" * 40), "branch": f"headgate/{run}"}
        ended = {"status": RunStatus.SUCCEEDED, "phase": RunPhase.TESTING, "finished_at": NOW}
        landed[run] = a_run(run, (pr,), number=pr, **facts, **ended)
        jobs.reports("total mail", "queue", run, pr_number=pr, **facts)
    queues.save(jobs.session, queue, Step(replace(queue, runs=landed), (), (), None, None))
    landings.intend(jobs.session, queue.id, a_land(run="r1"))
    (landing,) = landings.landings_of_run(jobs.session, "r1")
    landings.settle(jobs.session, landing.id, LandingOutcome(LandingState.LANDED))
    jobs.on_main("total mail post", "1", pr_number=5)
    found = jobs.expected(jobs.tested("total mail post"))
    assert (found.landed, found.expected) == ((3,), 3)


@pytest.mark.parametrize(
    ("pattern", "is_meant"),
    [
        *((each, True) for each in ("unit", "CI / unit", "CI / unit @ linux", "u*", "*")),
        *((each, False) for each in ("lint", "unit @ linux", "nit", "CI", "")),
    ],
)
def test_a_setting_names_exit_codes_of_jobs(jobs: Jobs, pattern, is_meant):
    jobs.settles(test_failure_exit_codes=("lint=7", f"{pattern}=failure", f"{pattern}=3"))
    sent = jobs.tested("total", job="CI / unit @ linux")
    named = frozenset({3} if is_meant else ())
    assert jobs.codes(sent) == ExitCodes(named, names_failure=is_meant)


def an_end(code: int | None, key: str = "x", **more: Any) -> Account:
    """A proved command that ended so."""
    return replace(PROVED, exit_code=code, command_key=key, **more)


FAILED: dict[str, Any] = {"account": an_end(8), "counts": {"failed": 1}, "code_id": "A"}
GREEN: dict[str, Any] = {"account": an_end(0), "code_id": "A"}
LESSONS: dict[str, tuple[bool, list[dict[str, Any]]]] = {
    "same code passed": (True, [FAILED, GREEN]),
    "in either order": (True, [GREEN, FAILED]),
    "of pull requests": (True, [FAILED, {**GREEN, "kind": "pr", "pr_number": 4}]),
    "in two parts": (
        True,
        [
            {**FAILED, "account": an_end(8, session="s", session_uploads=2)},
            {"account": an_end(8, session="s", session_uploads=2), "code_id": "A"},
            GREEN,
        ],
    ),
    "nothing passed": (False, [FAILED]),
    "other code passed": (False, [FAILED, {**GREEN, "code_id": "B"}]),
    "other command passed": (False, [FAILED, {**GREEN, "account": an_end(0, "y")}]),
    "passed with a failure": (False, [FAILED, {**GREEN, "counts": {"failed": 1}}]),
    "ended so without a failure": (False, [FAILED, GREEN, {**FAILED, "counts": {}}]),
    "another ended so without a failure": (
        True,
        [FAILED, GREEN, {**FAILED, "counts": {}, "account": an_end(8, "y")}],
    ),
    "not whole": (False, [{**FAILED, "is_partial": True}, GREEN]),
    "not all parts": (
        False,
        [{**FAILED, "account": an_end(8, session="s", session_uploads=2)}, GREEN],
    ),
    "not proved": (False, [{**FAILED, "account": replace(an_end(8), proof=Proof.RUN)}, GREEN]),
    "of the one under test": (False, [{**FAILED, "kind": "pr", "pr_number": 3}, GREEN]),
    "no exit code": (False, [{**FAILED, "account": an_end(None)}, GREEN]),
    "of another job": (False, [{**FAILED, "job": "lint"}, GREEN]),
}


@pytest.mark.parametrize("what", LESSONS)
def test_a_command_shows_which_code_means_failed_tests(jobs: Jobs, what):
    is_learned, uploads = LESSONS[what]
    for facts in uploads:
        jobs.on_main("total", "1", **facts)
    learned = frozenset({("x", 8)} if is_learned else ())
    assert jobs.codes(jobs.tested("total", pr_number=3)) == ExitCodes(learned=learned)


@pytest.mark.parametrize(("code", "is_learned"), [(1, False), (2, True), (127, True), (128, False)])
def test_a_code_of_many_meanings_is_not_learned(jobs: Jobs, code, is_learned):
    jobs.on_main("total", "1", **{**FAILED, "account": an_end(code)})
    jobs.on_main("total", "1", **GREEN)
    assert bool(jobs.codes(jobs.tested("total")).learned) is is_learned


def test_parts_of_a_command_fail_together(jobs: Jobs):
    parts = an_end(0, session="s", session_uploads=2)
    jobs.on_main("total", "1", account=parts, code_id="A")
    jobs.on_main("mail", "1", account=parts, code_id="A", counts={"failed": 1})
    jobs.on_main("total", "1", **FAILED)
    assert jobs.codes(jobs.tested("total")).learned == frozenset()


def test_a_target_without_results_is_compared_with_the_default_branch(jobs: Jobs):
    own = jobs.on_main("total", "1", branch="release")
    assert jobs.report(own, branch="release").expectation is None
    jobs.on_main("total mail", "2")
    found = jobs.report(own, branch="release").expectation
    assert found is not None
    assert names(found.missing) == ["mail"]
    jobs.on_main("total post", "3", branch="release")
    found = jobs.report(own, branch="release").expectation
    assert found is not None
    assert names(found.missing) == ["post"]


def test_only_a_test_run_needs_the_proof_of_the_repository(jobs: Jobs):
    facts = {"counts": {"tests": 4, "failed": 1}, "is_partial": True}
    of_queue, of_head = jobs.tested("total", **facts), jobs.reports("total", "pr", HERE, **facts)
    for sent, needs in ((of_queue, Proof.JOB), (of_head, Proof.NONE)):
        (part,) = jobs.report(sent).parts
        told = (part.needs, part.tests, part.failed, part.is_partial)
        assert told == (needs, 4, 1, True)


def test_jobs_of_a_branch_are_those_beside_a_job_and_all_lately(jobs: Jobs):
    jobs.on_main("total", "1", job="old")
    since = NOW - 60 * MINUTE + (jobs.number + 1) * MINUTE
    for run, job in (("2", "unit"), ("2", "lint"), ("3", "docs"), (None, "alone")):
        jobs.on_main("total", "", job=job, run_id=run)
    jobs.on_main("total", "4", account=BY_TOKEN)
    jobs.on_main("total", "4", job="forged")
    jobs.on_main("total", "5", branch="release", job="elsewhere")
    sent = [jobs.tested("total")]
    found = upload_completeness.jobs_of_branch(jobs.lookup, "main", sent, since)
    assert found == (
        frozenset({"unit", "lint"}),
        frozenset({"unit", "lint", "docs", "alone", "forged"}),
    )


def test_a_branch_without_results_has_no_jobs(jobs: Jobs):
    sent = [jobs.tested("total")]
    found = upload_completeness.jobs_of_branch(jobs.lookup, "main", sent, NOW - 60 * MINUTE)
    assert found == (frozenset(), frozenset())
