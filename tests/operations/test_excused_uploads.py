"""What the sender of an upload of a test run is answered, and what queues and people hear of it."""

from dataclasses import replace
from typing import Any

import pytest

from service.database import outbox
from service.database.outbox import Lane
from service.mergequeue.engine.outputs import AskEvidence
from service.mergequeue.landing_records import LandingState
from service.mergequeue.operations import naming
from service.mergequeue.store import landings, queues
from service.mergequeue.store.landings import LandingOutcome
from service.provider.errors import Unavailable
from service.provider.values import ChangedFiles, Reply
from service.testhealth.operations import settings
from service.testhealth.operations.upload_values import UploadAnswer
from service.testhealth.reports.results import Attempt, CaseResult, Outcome
from service.vocabulary import SYSTEM, QuarantineForgives, Sha
from tests.harness.values import ValuesProvider
from tests.operations.test_result_waits import keep, queue_of
from tests.operations.test_revocations import (
    BEGAN,
    BY_COMMAND,
    MINUTE,
    RUN,
    SAME,
    database_url,
    ours,
    proved,
    stage,
)
from tests.operations.upload_stage import HOST, Stage, a_case, a_file
from tests.store.test_landings import a_land

__all__ = ["database_url", "ours", "stage"]


async def effects(stage: Stage, lane: Lane) -> list[object]:
    """What waits to be done."""
    soon = stage.clock.present + MINUTE
    return [row.effect for row in await stage.runtime.store.read(outbox.claim, soon, 99, (lane,))]


async def test_a_failure_that_contradicts_an_excuse_is_explained_again(ours: Stage) -> None:
    before = await effects(ours, Lane.EVIDENCE)
    await ours.ran({"mail": "F"}, **SAME)
    asked = await effects(ours, Lane.EVIDENCE)
    assert (before, asked) == ([], [AskEvidence(RUN.id, RUN.attempt, ())])


@pytest.mark.parametrize("has_asked", [False, True])
async def test_results_are_awaited_by_a_queue_that_asked(stage: Stage, has_asked: bool) -> None:
    await keep(stage, replace(RUN, asked_evidence=BEGAN if has_asked else None))
    await stage.ran({"mail": "P"}, **SAME)
    await stage.ran({"mail": "P"}, **SAME | {"sha": Sha("e" * 40), "run_id": "8"})
    assert len(await effects(stage, Lane.EVIDENCE)) == has_asked


async def test_a_queue_that_was_deleted_is_not_asked(ours: Stage) -> None:
    queue = await queue_of(ours)
    await ours.runtime.store.run(queues.mark_deleted, queue.id, BEGAN)
    await ours.ran({"mail": "F"}, **SAME)
    assert await effects(ours, Lane.EVIDENCE) == []


async def test_nobody_hears_of_a_late_failure_of_a_commit_that_no_queue_tests(ours: Stage) -> None:
    await ours.ran({"mail": "F"}, **SAME | {"sha": Sha("e" * 40), "run_id": "8"})
    assert await replies(ours) == []


async def landed(stage: Stage) -> None:
    """The run lands its pull request."""
    queue, store = await queue_of(stage), stage.runtime.store
    await store.run(landings.intend, queue.id, a_land(run=RUN.id))
    (landing,) = await store.read(landings.landings_of_run, RUN.id)
    await store.run(landings.settle, landing.id, LandingOutcome(LandingState.LANDED))


async def replies(stage: Stage) -> list[Reply]:
    """What people are told."""
    return [each for each in await effects(stage, Lane.NOTICE) if isinstance(each, Reply)]


async def test_people_hear_of_a_failure_behind_an_excuse_once_the_run_has_landed(
    ours: Stage,
) -> None:
    await landed(ours)
    await ours.ran({"mail": "F", "total": "F", "post": "P"}, **SAME)
    (reply,) = await replies(ours)
    assert reply.number == 3
    assert "mail" in reply.body
    assert "total" not in reply.body


SILENT: dict[str, dict[str, Any]] = {
    "only an excused test failed": {"tests": {"total": "F"}},
    "of a job that excused nothing": {"job": "lint"},
    "of another branch": {"sha": Sha("e" * 40), "branch": "topic"},
}


@pytest.mark.parametrize("what", SILENT)
async def test_people_hear_nothing_of_a_failure_that_no_excuse_hid(ours: Stage, what: str) -> None:
    await landed(ours)
    told = {"tests": {"mail": "F"}, **SAME, **SILENT[what]}
    await ours.ran(told.pop("tests"), **told)
    assert await replies(ours) == []


async def test_people_hear_nothing_of_another_commit_of_the_branch(ours: Stage) -> None:
    await landed(ours)
    other = SAME | {"sha": Sha("e" * 40), "branch": naming.test_branch(RUN)}
    for tests in ({"total": "F"}, {"mail": "F"}):
        await ours.ran(tests, **other)
    assert await replies(ours) == []


async def test_people_hear_nothing_of_failures_before_the_landing(ours: Stage) -> None:
    await ours.ran({"mail": "F"}, **SAME)
    assert await replies(ours) == []
    await landed(ours)
    await ours.ran({"mail": "F", "post": "P"}, **SAME)
    assert await replies(ours) == []


async def test_people_hear_nothing_where_all_passed_before(stage: Stage) -> None:
    stage.clock.present = BEGAN + MINUTE
    await keep(stage, RUN)
    await stage.ran({"total": "P"}, **SAME)
    await landed(stage)
    await stage.ran({"mail": "F"}, **SAME)
    assert await replies(stage) == []


async def on_main(stage: Stage, tests: dict[str, str], number: str, **told: Any) -> None:
    """The job reports so on the target branch."""
    sha = Sha(number * 20)
    job = proved(stage, "main", run_id=number, sha=sha, check_run_id=number)
    about = {"run_id": number, "branch": "main", "sha": sha, "caller": job, **BY_COMMAND}
    await stage.ran(tests, ran_at=BEGAN - MINUTE, **{**about, **told})


async def in_run(
    stage: Stage, tests: dict[str, str], session: str = "new", *cases: CaseResult, **told: Any
) -> UploadAnswer:
    """The answer to the job of the run, whose command ended with 1; a session sends one file."""
    job = proved(stage, naming.test_branch(RUN), check_run_id="90")
    about = SAME | BY_COMMAND | {"command_exit_code": 1, "session": session, "caller": job}
    file = a_file(tests, f"{session}.xml")
    return await stage.send([replace(file, cases=(*file.cases, *cases))], **about | told)


class Changing(ValuesProvider):
    """A host on which pull requests change files; it may be away."""

    def __init__(self) -> None:
        super().__init__(HOST)
        self.changes: dict[int, tuple[str, ...]] = {}
        self.deletes: dict[int, tuple[str, ...]] = {}
        self.is_away = False
        self.asked: list[int] = []

    async def changed_files(self, repo: Any, number: int) -> ChangedFiles:
        self.asked.append(number)
        if self.is_away:
            raise Unavailable("GitHub is away.", self.now)
        deleted = self.deletes.get(number, ())
        return ChangedFiles((*self.changes.get(number, ()), *deleted), True, deleted=deleted)


@pytest.fixture
def host(ours: Stage) -> Changing:
    """The host of the repository."""
    made = Changing()
    ours.runtime = replace(ours.runtime, providers={HOST: made})
    return made


@pytest.mark.parametrize("what", ["nothing", "deleted", "deleted by another", "away", "no host"])
async def test_a_test_that_is_gone_is_missed_unless_the_change_deletes_it(
    ours: Stage, host: Changing, what: str
) -> None:
    await on_main(ours, {"total": "P", "mail": "P"}, "13")
    if what == "deleted by another":
        host.deletes[4] = ("tests/mail.py",)
    elif what != "nothing":
        host.deletes[3] = ("tests/mail.py",)
    host.is_away = what == "away"
    if what == "no host":
        ours.runtime = replace(ours.runtime, providers={})
    answer = await in_run(ours, {"total": "F"})
    is_excused = what == "deleted"
    assert (answer.verdict.exit_code, answer.not_excused_because == ()) == (
        1 - is_excused,
        is_excused,
    )
    assert host.asked == ([] if what == "no host" else [3])


async def test_nothing_is_read_of_changes_where_no_test_is_missed(
    ours: Stage, host: Changing
) -> None:
    assert (await in_run(ours, {"total": "F"})).verdict.exit_code == 0
    assert host.asked == []


async def test_an_answer_is_the_same_when_it_is_asked_for_again(ours: Stage) -> None:
    await on_main(ours, {"total": "P", "mail": "P"}, "13")
    first = await in_run(ours, {"total": "F"})
    again = await in_run(ours, {"total": "F"})
    assert (again.duplicate, again.verdict) == (True, first.verdict)
    assert again.not_excused_because == first.not_excused_because != ()


async def test_the_last_part_of_a_command_answers_for_all_of_it(ours: Stage) -> None:
    first = await in_run(ours, {"total": "F"}, "both", session_uploads=2)
    assert "1 of 2 uploads has not arrived" in " ".join(first.not_excused_because)
    last = await in_run(ours, {"post": "P"}, "both", session_uploads=2)
    assert (last.verdict.exit_code, last.not_excused_because) == (0, ())


async def test_an_upload_that_excuses_nothing_is_answered_as_it_is(ours: Stage) -> None:
    await on_main(ours, {"total": "P", "mail": "P"}, "13")
    assert (await in_run(ours, {"total": "F"})).not_excused_because != ()
    assert (await in_run(ours, {"post": "P"})).not_excused_because == ()


async def test_a_part_answers_nothing_for_a_failure_that_is_not_excused(ours: Stage) -> None:
    await on_main(ours, {"total": "P", "page": "P"}, "13")
    await in_run(ours, {"mail": "F"}, "both", session_uploads=2)
    last = await in_run(ours, {"total": "F"}, "both", session_uploads=2)
    assert (last.verdict.exit_code, last.not_excused_because) == (0, ())


@pytest.mark.parametrize("session", ["", "other"])
async def test_another_job_or_command_adds_no_test(ours: Stage, session: str) -> None:
    await on_main(ours, {"total": "P", "mail": "P"}, "13")
    other = proved(ours, naming.test_branch(RUN), check_run_id="91")
    await in_run(ours, {"mail": "P"}, session, caller=other, command_exit_code=0)
    answer = await in_run(ours, {"total": "F"}, session)
    assert answer.verdict.exit_code == 1


def broken(phase: str) -> Attempt:
    """A failure of a fixture, as pytest says it."""
    return Attempt(Outcome.FAILED, 0.5, f"failed on {phase} with \"KeyError: 'cart'\"")


@pytest.mark.parametrize("phase", ["setup", "teardown"])
async def test_a_quarantined_test_does_not_excuse_a_fixture(ours: Stage, phase: str) -> None:
    case = a_case("total", "F", explicit_attempts=(broken(phase),))
    answer = await in_run(ours, {}, "new", case)
    assert "a fixture failed" in " ".join(answer.not_excused_because)


@pytest.mark.parametrize("forgives", QuarantineForgives)
async def test_a_new_failure_is_excused_where_the_setting_says_so(
    ours: Stage, forgives: QuarantineForgives
) -> None:
    is_excused = forgives is QuarantineForgives.ANY_FAILURE
    changes = {"quarantine_forgives": forgives}
    await settings.update(ours.runtime, ours.repository, changes, SYSTEM)
    assert (await in_run(ours, {"total": "F"})).verdict.exit_code == 0
    case = a_case("total", "F", explicit_attempts=(Attempt(Outcome.FAILED, 0.5, "ValueError: 7"),))
    answer = await in_run(ours, {}, "more", case)
    assert answer.verdict.exit_code == (0 if is_excused else 1)
    assert ("fails in a new way" in " ".join(answer.not_excused_because)) is not is_excused
