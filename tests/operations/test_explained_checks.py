"""Which uploads explain the failed check of a run to its queue, and what must prove them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from service.database.database import Tx
from service.evidence import failed_checks, run_failures
from service.http.callers import Caller
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.inputs import EvidenceReported, Input, PassRevoked, Submit
from service.mergequeue.engine.model import Member, MergeQueue, Run
from service.mergequeue.engine.outputs import AskEvidence, Step
from service.mergequeue.engine.reported import Evidence
from service.mergequeue.engine.states import EntryState
from service.mergequeue.operations import admission, naming, turn
from service.mergequeue.store import queues as stored_queues
from service.mergequeue.store.cache import QueueCache
from service.provenance import Proof
from service.provider.ci import CiJob, CiRun, CiTrigger
from service.provider.errors import Gone, GoneKind
from service.provider.values import ChangedFiles
from service.testhealth.operations import settings
from service.vocabulary import SYSTEM, CheckOutcome, ExcuseProof, Explanation, Role, Sha
from tests.harness.values import ValuesProvider
from tests.operations.test_result_waits import RUN_SHA, keep, queue_of, stage
from tests.operations.test_revocations import (
    BEGAN,
    MINUTE,
    RUN,
    database_url,
    ours,
    proved,
)
from tests.operations.upload_stage import HOST, NOW, Stage
from tests.store import test_submissions as heads
from tests.store.builders import a_check, an_entry

__all__ = ["database_url", "ours", "stage"]

UNIT = replace(a_check("unit", CheckOutcome.FAILED), id="90", raw="failure")
FAILING = replace(RUN, checks=(UNIT,), asked_evidence=BEGAN)
EXCUSED, UNEXPLAINED = Explanation.QUARANTINED, Explanation.UNEXPLAINED
INCOMPLETE = "incomplete"
"""In place of an explanation: something is missing in the reports."""


class Ci(ValuesProvider):
    """A host whose CI run 7 has failed in the job `unit`; pull requests change one file each."""

    def __init__(self) -> None:
        super().__init__(HOST)
        self.failing = {"90": "unit"}
        self.passing = {"91": "lint"}
        self.run: CiRun | None = None
        self.gone: GoneKind | None = None
        self.complete = True
        self.changed: list[int] = []

    async def ci_jobs(self, repo: Any, run_id: str, attempt: int) -> Sequence[CiJob]:
        if run_id != "7":
            return ()
        ended = [(self.failing, CheckOutcome.FAILED), (self.passing, CheckOutcome.PASSED)]
        return [
            CiJob(id_, name, "CI", "", outcome, 1, None, None)
            for jobs, outcome in ended
            for id_, name in jobs.items()
        ]

    async def ci_run(self, repo: Any, run_id: str, attempt: int | None = None) -> CiRun | None:
        return self.run

    async def changed_files(self, repo: Any, number: int) -> ChangedFiles:
        self.changed.append(number)
        if self.gone is not None:
            raise Gone("It is gone.", self.gone)
        return ChangedFiles((f"src/{number}.py",), self.complete)


@pytest.fixture
def host(stage: Stage) -> Ci:
    """The host of the repository."""
    made = Ci()
    stage.runtime = replace(stage.runtime, providers={HOST: made})
    return made


@pytest.fixture
async def failing(stage: Stage, host: Ci) -> Stage:
    """A run under test whose job `unit` has failed; its test `total` is quarantined."""
    switches = {"quarantine_enabled": True, "auto_quarantine_enabled": True}
    codes = {"test_failure_exit_codes": ("*=failure",)}
    await settings.update(stage.runtime, stage.repository, {**switches, **codes}, SYSTEM)
    for minute, letters in enumerate("FPFP", 1):
        stage.clock.present = NOW + minute * MINUTE
        told = {"run_id": f"early {minute}", "pr_number": 5}
        await stage.ran({"total": letters}, ran_at=stage.clock.present, **told)
    for minute in (10, 11):
        stage.clock.present = NOW + minute * MINUTE
        sha, run_id = Sha(f"{minute}" * 20), f"{minute}"
        job = proved(stage, "main", run_id=run_id, sha=sha, check_run_id=run_id)
        about = {"run_id": run_id, "branch": "main", "sha": sha, "caller": job}
        await stage.ran({"total": "P"}, ran_at=stage.clock.present, **about)
    stage.clock.present = BEGAN + MINUTE
    await keep(stage, FAILING)
    return stage


def sender(stage: Stage, proof: Proof, check_run: str = "90") -> Caller:
    """Who can prove so much."""
    if proof in (Proof.JOB, Proof.RUN):
        claims = {"check_run_id": check_run} if proof is Proof.JOB else {}
        return proved(stage, naming.test_branch(RUN), **claims)
    return stage.caller if proof is Proof.TOKEN else replace(stage.caller, role=Role.CI)


async def sends(
    stage: Stage, proof: Proof = Proof.JOB, test: str = "total", check_run: str = "90", **told: Any
) -> None:
    """A sender who can prove so much reports that a test of the run has failed."""
    by = sender(stage, proof, check_run)
    await stage.ran({test: "F"}, **{"sha": RUN_SHA, "run_id": "7", "caller": by, **told})


async def evidence(stage: Stage, run: Run = FAILING) -> Evidence | None:
    """What is known of the failures of a run, None: not all of it yet."""
    told = await changed(stage, run)
    return next((one.evidence for one in told if isinstance(one, EvidenceReported)), None)


async def explanation(stage: Stage, run: Run = FAILING) -> str | None:
    """Why `unit` failed, None: that is not known yet."""
    found = await evidence(stage, run)
    return None if found is None else found.explanations.get("unit", INCOMPLETE)


async def answered(stage: Stage, run: Run = FAILING) -> Evidence | None:
    """What the queue hears when it asks about a run."""
    queue = await queue_of(stage)
    before = await turn.value(stage.runtime, queue.id)
    entry = an_entry(3, state=EntryState.TESTING, run=run.id, rank=1)
    after = replace(before, tip=run.base_tip, entries={3: entry}, runs={run.id: run})
    step = Step(after, (), (), None, None)
    await stage.runtime.store.run(stored_queues.save, before, step)
    stage.runtime.store.caches.of(QueueCache).drop(queue.id)
    asked = AskEvidence(run.id, FAILING.attempt, ("unit",))
    await failed_checks.answer(stage.runtime, queue, asked)
    return (await turn.value(stage.runtime, queue.id)).runs[run.id].evidence


async def by_now(stage: Stage, run: Run = FAILING) -> bool:
    """Whether all failures of a run are explained by now."""
    return await failed_checks.explained_by_now(stage.runtime, await queue_of(stage), run)


async def changed(stage: Stage, run: Run) -> Sequence[Input]:
    """What a run hears of results since it passed."""
    return await failed_checks.changed_since(stage.runtime, await queue_of(stage), run)


async def needing(stage: Stage, proof: ExcuseProof) -> None:
    """Let the repository need so much."""
    await settings.update(stage.runtime, stage.repository, {"excuse_proof": proof}, SYSTEM)


@pytest.mark.parametrize("proof", [Proof.JOB, Proof.RUN, Proof.TOKEN, Proof.NONE])
async def test_a_report_excuses_by_the_proof_that_the_repository_needs(
    failing: Stage, proof: Proof
) -> None:
    await sends(failing, proof)
    strength = [Proof.NONE, Proof.TOKEN, Proof.RUN, Proof.JOB]
    for needs in ExcuseProof:
        await needing(failing, needs)
        is_enough = strength.index(proof) >= strength.index(Proof[needs.name])
        found = await evidence(failing)
        assert found is not None
        assert found.explanations == ({"unit": EXCUSED} if is_enough else {})
        assert found.proofs == ({"unit": proof} if is_enough else {})
        assert list(found.gaps) == ([] if is_enough else ["unit"])
        assert await by_now(failing) is is_enough


async def test_a_failure_that_is_not_quarantined_is_not_explained(failing: Stage) -> None:
    await sends(failing, test="mail")
    assert await explanation(failing) is UNEXPLAINED
    assert not await by_now(failing)


async def test_nothing_is_said_while_results_are_awaited(failing: Stage) -> None:
    assert await changed(failing, FAILING) == []
    assert not await by_now(failing)
    await sends(failing, job="lint", check_run="91", test="mail")
    assert await answered(failing) is None
    failing.clock.present = BEGAN + verdict.EVIDENCE_WAIT
    found = await answered(failing)
    assert found is not None
    assert (found.explanations, found.silent) == ({"unit": UNEXPLAINED}, ("unit",))


@pytest.mark.parametrize("attempt", [1, 2])
async def test_only_the_present_attempt_is_explained(failing: Stage, attempt: int) -> None:
    await sends(failing)
    found = await answered(failing, replace(FAILING, attempt=attempt))
    assert (found is not None) is (attempt == FAILING.attempt)


async def test_a_run_without_a_failure_is_not_explained(failing: Stage) -> None:
    await sends(failing)
    passed = replace(FAILING, checks=(replace(UNIT, outcome=CheckOutcome.PASSED),))
    assert not await by_now(failing, passed)
    assert await changed(failing, passed) == []


async def test_a_run_that_is_gone_or_has_no_commit_is_not_explained(failing: Stage) -> None:
    queue = await queue_of(failing)
    await failed_checks.answer(failing.runtime, queue, AskEvidence("gone", 1, ("unit",)))
    await sends(failing)
    assert await explanation(failing, replace(FAILING, sha=None)) is None


async def test_a_pass_that_was_contradicted_is_revoked(ours: Stage, host: Ci) -> None:
    passed = await changed(ours, RUN)
    told = {"sha": RUN_SHA, "run_id": "7", "session": "a secret"}
    await ours.ran({"mail": "F"}, **told)
    assert (passed, await changed(ours, RUN)) == ([], [PassRevoked(RUN.id, ("90",))])


RUN_7 = CiRun(
    *("7", 1, CiTrigger.HEAD, RUN_SHA, naming.test_branch(RUN), False, (), False),
    *(CheckOutcome.FAILED, NOW, ""),
)
RUNS: dict[str, tuple[CiRun | None, bool]] = {
    "of the commit": (RUN_7, True),
    "unknown": (None, False),
    "of another commit": (replace(RUN_7, head_sha=Sha("e" * 40)), False),
    "of a fork": (replace(RUN_7, of_fork=True), False),
    "of unknown code": (replace(RUN_7, trigger=CiTrigger.UNKNOWN), False),
}


async def test_a_ci_run_that_was_not_known_when_its_report_came_is_looked_up(
    failing: Stage, host: Ci
) -> None:
    await needing(failing, ExcuseProof.TOKEN)
    await sends(failing, Proof.NONE)
    for what, (run, is_proved) in RUNS.items():
        host.run = run
        assert await explanation(failing) == (EXCUSED if is_proved else INCOMPLETE), what


@pytest.mark.parametrize(
    ("job", "by", "explained"),
    [
        ("unit", "90", EXCUSED),
        ("lint", "90", INCOMPLETE),
        ("unit", "91", INCOMPLETE),
        ("lint", "91", None),
    ],
)
async def test_a_report_under_the_name_of_another_job_proves_nothing(
    failing: Stage, host: Ci, job: str, by: str, explained: str | None
) -> None:
    """The host did not answer when it arrived, so the name was not compared then."""
    failing.runtime = replace(failing.runtime, providers={})
    await sends(failing, job=job, check_run=by)
    failing.runtime = replace(failing.runtime, providers={HOST: host})
    assert await explanation(failing) == explained


@pytest.mark.parametrize("run_id", [None, "a build", "8"])
async def test_a_report_of_no_ci_run_or_another_explains_nothing(
    failing: Stage, run_id: str | None
) -> None:
    await sends(failing, Proof.TOKEN, run_id=run_id)
    assert await explanation(failing) is None


async def test_of_two_jobs_of_a_check_each_must_report_a_failure(failing: Stage, host: Ci) -> None:
    host.failing = {"90": "unit", "92": "unit"}
    other = replace(UNIT, id="92", group="72", source_id="9")
    run = replace(FAILING, checks=(UNIT, other))
    await sends(failing)
    assert await explanation(failing, run) is None
    by = sender(failing, Proof.JOB, "92")
    told = {"sha": RUN_SHA, "run_id": "7", "caller": by}
    await failing.ran({"post": "P"}, **told)
    assert await explanation(failing, run) is None
    await failing.ran({"total": "F", "page": "P"}, **told)
    assert await explanation(failing, run) is EXCUSED


async def test_a_failure_that_the_job_has_not_proved_speaks_against_it(failing: Stage) -> None:
    await sends(failing)
    await sends(failing, Proof.TOKEN, test="mail")
    assert await explanation(failing) is UNEXPLAINED


@pytest.mark.parametrize("gone", [None, GoneKind.PULL_REQUEST])
async def test_who_may_have_changed_a_quarantined_test_is_not_excused(
    failing: Stage, host: Ci, gone: GoneKind | None
) -> None:
    host.gone, host.complete = gone, gone is not None
    await sends(failing)
    assert await explanation(failing) is UNEXPLAINED


@pytest.mark.parametrize("gone", [GoneKind.REPOSITORY, GoneKind.INSTALLATION])
async def test_a_repository_that_is_gone_is_the_trouble_of_the_queue(
    failing: Stage, host: Ci, gone: GoneKind
) -> None:
    host.gone = gone
    await sends(failing)
    with pytest.raises(Gone):
        await evidence(failing)


@pytest.mark.parametrize("test", ["total", "page"])
async def test_pull_requests_of_the_base_are_asked_about_missing_tests_alone(
    failing: Stage, host: Ci, test: str
) -> None:
    below = Member(4, "e4", Sha("4" * 40))
    await sends(failing, test=test)
    assert await explanation(failing, replace(FAILING, base=(below,))) is not None
    assert host.changed == ([3] if test == "total" else [3, 4])


JOB_PAGE, BUILD_PAGE = "https://ci.test/jobs/1", "https://ci.test/builds/1"


SHOWN: dict[str, dict[str, tuple[str | None, str | None]]] = {
    "unit": {JOB_PAGE: (EXCUSED, EXCUSED), BUILD_PAGE: (INCOMPLETE, EXCUSED)},
    "lint": {JOB_PAGE: (INCOMPLETE, INCOMPLETE), BUILD_PAGE: (None, None)},
}
"""Job key → page that the check shows → its explanation if a job or a run has to prove it."""


@pytest.mark.parametrize("job", SHOWN)
async def test_results_of_another_ci_are_of_the_check_that_shows_their_page(
    failing: Stage, job: str
) -> None:
    claims = {"check_run_id": JOB_PAGE, "run_id": BUILD_PAGE, "is_of_other_ci": True}
    by = proved(failing, naming.test_branch(RUN), **claims)
    await failing.ran({"total": "F"}, sha=RUN_SHA, caller=by, job=job)
    elsewhere = INCOMPLETE if job == "unit" else None
    for place, needs in enumerate((ExcuseProof.JOB, ExcuseProof.RUN)):
        await needing(failing, needs)
        for url, explained in {**SHOWN[job], f"{BUILD_PAGE}2": (elsewhere, elsewhere)}.items():
            run = replace(FAILING, checks=(replace(UNIT, id="500", url=url),))
            assert await explanation(failing, run) == explained[place], (url, needs)


async def test_a_blamed_head_is_free_once_its_failure_is_explained(failing: Stage) -> None:
    queue, head, runtime = await queue_of(failing), Sha("f" * 40), failing.runtime
    ended = {"sha": RUN_SHA, "checks": (UNIT,), "created_at": BEGAN}

    def fails(session: Tx) -> MergeQueue:
        value = heads.ended(session, stored_queues.load(session, queue.id))
        return heads.failing(session, value, heads.failed(3, "r9"), **ended)

    value = await runtime.store.run(fails)
    assert await admission.taken_back(runtime, queue, head) is None
    await sends(failing)
    assert await admission.taken_back(runtime, queue, head) == "r9"
    assert await admission.taken_back(runtime, queue, Sha("d" * 40)) is None
    wish = Submit(replace(an_entry(3).facts, head=head), SYSTEM)
    now = runtime.clock.now()
    (told,) = await runtime.store.run(admission.with_past, runtime, value, [wish], now)
    assert isinstance(told, Submit)
    assert told.past.blamed is not None
    assert (told.past.blamed.run, told.past.blamed.tests) == ("r9", ("total",))


@pytest.mark.parametrize("excused", [(), ("unit",)])
async def test_a_quarantined_failure_is_shown_as_excused_in_a_run_that_was(
    failing: Stage, excused: tuple[str, ...]
) -> None:
    await sends(failing)
    queue, run = await queue_of(failing), replace(FAILING, excused=excused)
    (shown,) = await failing.runtime.store.read(run_failures.listed_in, queue, run)
    assert (shown.name, shown.excused) == ("total", bool(excused))
