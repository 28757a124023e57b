"""What was known of failed tests when a run began, and what queues hear of uploads."""

from datetime import timedelta

import pytest

from service.database.outbox import Lane
from service.evidence import expected_tests, failed_tests, links
from service.evidence.failed_tests import Findings, ReportedCheck, RunStart
from service.mergequeue.engine.inputs import RepositoryChanged
from service.mergequeue.engine.outputs import AskEvidence
from service.mergequeue.engine.reasons import HoldReason
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import queues, turn
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.store import queues as stored_queues
from service.testhealth.operations import flags, overrides, records, settings, sweeps
from service.testhealth.operations.flags import FlagRequest
from service.testhealth.operations.judge import RepositoryTests
from service.testhealth.operations.overrides import OverrideRequest
from service.testhealth.reports.results import Attempt, FileStatus, Outcome
from service.testhealth.store import uploads
from service.testhealth.store.uploads import Upload
from service.vocabulary import SYSTEM, Flag, Override, QueueRef, Sha
from tests.harness.values import ValuesProvider
from tests.operations import upload_stage
from tests.operations.upload_stage import HOST, NOW, Stage, a_case, a_file

HEAD = Sha("c" * 40)
RUN_SHA = Sha("d" * 40)
MINUTE = timedelta(minutes=1)


@pytest.fixture
async def stage(store):
    """A repository whose CI uploads, in the evening of its day."""
    staged = await upload_stage.staged(store)
    staged.clock.present = NOW + timedelta(hours=20)
    return staged


async def looked_up(stage: Stage, *answers, heads=None, name="unit") -> Findings:
    """What was known of the tests that failed in uploads when their run began, a minute ago."""

    def look(session):
        context = records.context_of(session, stage.runtime, stage.repository, stage.clock.present)
        bench = RepositoryTests(session, stage.runtime, context)
        found = [uploads.by_id(session, each.upload_id) for each in answers]
        sent = tuple(each.upload for each in found if each is not None)
        began = RunStart(stage.clock.present - MINUTE, "main", heads or {1: HEAD})
        return failed_tests.look_up(bench, [ReportedCheck(name, sent, 1)], began)

    found, _ = await stage.runtime.store.run(look)
    return found


async def flaky_on(stage: Stage, **meta) -> None:
    """A test fails and passes on the same code, in runs of its own."""
    for minute, letters in ((1, "F"), (2, "P"), (3, "F"), (4, "P")):
        ran_at = NOW + minute * MINUTE
        stage.clock.present = ran_at
        await stage.ran({"total": letters}, ran_at=ran_at, run_id=str(minute), **meta)
    stage.clock.present = NOW + timedelta(hours=20)


async def failed_now(stage: Stage, **tests: str):
    """The upload of the run that is asked about."""
    return await stage.ran(tests or {"total": "F"}, sha=RUN_SHA, run_id="77")


async def test_a_flake_of_others_is_known_by_its_failure(stage):
    await flaky_on(stage, pr_number=5)
    (check,) = (await looked_up(stage, await failed_now(stage))).checks
    (test,) = check.tests
    assert (test.was_flaky, test.keys <= test.known_keys, test.was_quarantined) == (
        True,
        True,
        False,
    )
    assert (test.file, test.classname) == ("tests/total.py", "Cart")


async def test_who_made_a_test_flaky_is_not_excused_by_it(stage):
    await flaky_on(stage, pr_number=5)
    sent = await failed_now(stage)
    (check,) = (await looked_up(stage, sent, heads={5: HEAD})).checks
    (test,) = check.tests
    assert (test.was_flaky, test.known_keys) == (False, frozenset())


async def quarantining(stage: Stage, **more) -> None:
    """Quarantine flaky and broken tests by themselves."""
    values = {"quarantine_enabled": True, "auto_quarantine_enabled": True, **more}
    await settings.update(stage.runtime, stage.repository, values, SYSTEM)


@pytest.mark.parametrize(("suspect", "is_excused"), [(5, False), (6, True)])
async def test_who_made_a_test_flaky_is_not_excused_by_its_quarantine(stage, suspect, is_excused):
    await quarantining(stage)
    await flaky_on(stage, pr_number=5)
    sent = await failed_now(stage)
    assert sent.quarantined_failures == 1
    (check,) = (await looked_up(stage, sent, heads={suspect: HEAD})).checks
    assert [each.was_quarantined for each in check.tests] == [is_excused]


async def test_who_made_a_test_flaky_is_excused_by_a_persons_word(stage):
    await quarantining(stage)
    await flaky_on(stage, pr_number=5)
    wish = OverrideRequest(
        (await stage.case("total")).id, Override.ALWAYS_QUARANTINE, "waits on the real clock"
    )
    stage.clock.present -= timedelta(hours=1)
    await overrides.put(stage.runtime, stage.repository, wish, SYSTEM)
    stage.clock.present += timedelta(hours=1)
    sent = await failed_now(stage)
    (check,) = (await looked_up(stage, sent, heads={5: HEAD})).checks
    assert [each.was_quarantined for each in check.tests] == [True]


async def test_a_persons_word_counts_from_its_time_to_its_end(stage):
    await quarantining(stage)
    await flaky_on(stage, pr_number=5)
    test_id = (await stage.case("total")).id
    soon = stage.clock.present + timedelta(hours=1)
    wish = OverrideRequest(test_id, Override.ALWAYS_QUARANTINE, "waits on the real clock", soon)
    await overrides.put(stage.runtime, stage.repository, wish, SYSTEM)
    sent = await failed_now(stage)

    async def is_excused() -> bool:
        (check,) = (await looked_up(stage, sent, heads={5: HEAD})).checks
        return check.tests[0].was_quarantined

    assert not await is_excused()
    stage.clock.present += MINUTE
    assert await is_excused()
    stage.clock.present = soon + MINUTE
    assert not await is_excused()


async def test_what_is_said_after_the_run_began_does_not_change_what_was_known(stage):
    await flaky_on(stage, pr_number=5)
    sent = await failed_now(stage)
    wish = FlagRequest((await stage.case("total")).id, Flag.BROKEN, "it is")
    await flags.put(stage.runtime, stage.repository, wish, SYSTEM)
    (check,) = (await looked_up(stage, sent)).checks
    assert [each.was_flaky for each in check.tests] == [True]


async def test_what_nobody_could_know_when_the_run_began_was_not_known(stage):
    """The runs were before it, their results came after."""
    sent = await failed_now(stage)
    for minute, letters in ((1, "F"), (2, "P"), (3, "F"), (4, "P")):
        told = {"ran_at": NOW + minute * MINUTE, "run_id": str(minute), "pr_number": 5}
        await stage.ran({"total": letters}, **told)
    (check,) = (await looked_up(stage, sent)).checks
    assert [each.was_flaky for each in check.tests] == [False]


async def test_what_became_flaky_after_the_run_began_was_not_flaky(stage):
    sent = await failed_now(stage)
    stage.clock.present += timedelta(hours=1)
    await stage.ran({"total": "P"}, sha=RUN_SHA, run_id="78")
    stage.clock.present -= timedelta(hours=1)
    (check,) = (await looked_up(stage, sent)).checks
    assert [each.was_flaky for each in check.tests] == [False]


@pytest.mark.parametrize(("branch", "is_red"), [("main", True), ("topic", False)])
async def test_two_failures_in_a_row_on_the_target_branch_are_its_own(stage, branch, is_red):
    for minute, letters in ((1, "P"), (2, "F"), (3, "F")):
        ran_at = NOW + minute * MINUTE
        sha = Sha(str(minute) * 40)
        await stage.ran({"total": letters}, ran_at=ran_at, branch=branch, sha=sha)
    (check,) = (await looked_up(stage, await failed_now(stage))).checks
    assert [each.was_red_on_base for each in check.tests] == [is_red]


@pytest.mark.parametrize(("days", "is_red"), [(13, True), (15, False)])
async def test_a_job_that_is_silent_for_two_weeks_says_nothing_of_the_target(stage, days, is_red):
    stage.clock.present = NOW
    for minute in (1, 2):
        told = {"branch": "main", "sha": Sha(str(minute) * 40), "job": "old name"}
        await stage.ran({"total": "F"}, ran_at=NOW - 30 * MINUTE + minute * MINUTE, **told)
    stage.clock.present = NOW + timedelta(days=days)
    (check,) = (await looked_up(stage, await failed_now(stage))).checks
    assert [each.was_red_on_base for each in check.tests] == [is_red]


async def test_a_test_that_the_job_runs_no_more_says_nothing_of_the_target(stage):
    shas = iter("123456789")

    async def on_main(tests: dict[str, str], minute: int) -> None:
        told = {"branch": "main", "sha": Sha(next(shas) * 40)}
        await stage.ran(tests, ran_at=NOW + minute * MINUTE, **told)

    async def is_red() -> bool:
        (check,) = (await looked_up(stage, await failed_now(stage))).checks
        return check.tests[0].was_red_on_base

    for minute in (1, 2):
        await on_main({"total": "F"}, minute)
    for minute in range(3, 7):
        await on_main({"mail": "P"}, minute)
    assert await is_red()
    await on_main({"mail": "P"}, 7)
    assert not await is_red()


async def test_one_failure_on_the_target_branch_is_not_enough(stage):
    for minute, letters in ((1, "F"), (2, "P"), (3, "F")):
        ran_at = NOW + minute * MINUTE
        await stage.ran({"total": letters}, ran_at=ran_at, branch="main", sha=str(minute) * 40)
    (check,) = (await looked_up(stage, await failed_now(stage))).checks
    assert [each.was_red_on_base for each in check.tests] == [False]


async def test_a_pull_request_fails_alone_what_its_newest_results_do_not_pass(stage):
    earlier = NOW + MINUTE
    await stage.ran({"total": "P", "mail": "F"}, sha=HEAD, pr_number=1, run_id="1", ran_at=earlier)
    await stage.ran({"total": "F", "mail": "P"}, sha=HEAD, pr_number=1, run_id="2")
    sent = await failed_now(stage, total="F", mail="F")
    found = await looked_up(stage, sent)
    names = {case.id: name for name, case in (await stage.cases()).items()}
    assert [names[each] for each in found.fails_alone[1]] == ["total"]
    assert (await looked_up(stage, sent, heads={1: RUN_SHA})).fails_alone == {}


async def test_an_upload_in_parts_is_one_of_the_head(stage):
    told = {"sha": HEAD, "pr_number": 1, "run_id": "2"}
    await stage.ran({"total": "F"}, ran_at=NOW + MINUTE, **told)
    await stage.ran({"mail": "P"}, ran_at=NOW + MINUTE, **told)
    sent = await failed_now(stage, total="F", mail="F")
    names = {case.id: name for name, case in (await stage.cases()).items()}
    assert [names[each] for each in (await looked_up(stage, sent)).fails_alone[1]] == ["total"]


async def test_what_fails_alone_failed_at_the_head_that_is_tested_and_passed_nowhere(stage):
    now = stage.clock.present

    async def ran(days: int, **told) -> None:
        stage.clock.present = now - timedelta(days=days)
        meta = {"sha": HEAD, "pr_number": 1, "run_id": "1", "ran_at": stage.clock.present}
        tests = {name: told.pop(name) for name in list(told) if name not in {*meta, "job"}}
        await stage.ran(tests, **meta | told)

    await ran(15, job="a", forgotten="F")
    await ran(13, job="b", old="F")
    await ran(1, job="c", lone="F", retried="FP", skipped="FS", passed="F")
    await ran(1, job="d", lone="S", passed="P")
    await ran(1, job="e", of_another="F", pr_number=9)
    await ran(1, job="f", of_a_push="F", sha=RUN_SHA)
    stage.clock.present = now
    names = {case.id: name for name, case in (await stage.cases()).items()}
    sent = await failed_now(stage, **dict.fromkeys(names.values(), "F"))
    found = (await looked_up(stage, sent)).fails_alone[1]
    assert sorted(names[each] for each in found) == ["lone", "old", "skipped"]


@pytest.mark.parametrize("status", [FileStatus.PARTIAL, FileStatus.REFUSED])
async def test_what_was_not_read_whole_explains_nothing(stage, status):
    unread = a_file({"mail": "P"}, "b.xml", status=status)
    sent = await stage.send([a_file({"total": "F"}), unread])
    (check,) = (await looked_up(stage, sent)).checks
    assert (check.is_reported, check.tests) == (False, ())


async def test_a_mass_failure_names_no_test(stage):
    sent = await failed_now(stage, **{f"test_{n}": "F" for n in range(25)})
    (check,) = (await looked_up(stage, sent)).checks
    assert (check.is_reported, check.is_mass, check.tests) == (True, True, ())


async def test_a_mass_failure_names_no_test_however_many_failed(stage, monkeypatch):
    monkeypatch.setattr(failed_tests, "TESTS_MAX", 2)
    mass = await failed_now(stage, **{f"test{number}": "F" for number in range(30)})
    (check,) = (await looked_up(stage, mass)).checks
    assert (check.is_mass, check.is_reported, check.tests) == (True, True, ())


async def test_a_mass_failure_beside_a_failed_test_is_none_of_the_check(stage):
    mass = await failed_now(stage, **{f"test_{n}": "F" for n in range(25)})
    beside = await failed_now(stage, total="F")
    (check,) = (await looked_up(stage, mass, beside)).checks
    assert (check.is_reported, check.is_mass, len(check.tests)) == (True, False, 26)


async def test_more_failures_than_are_looked_at_explain_nothing(stage, monkeypatch):
    monkeypatch.setattr(failed_tests, "TESTS_MAX", 1)
    (check,) = (await looked_up(stage, await failed_now(stage, a="F", b="P"))).checks
    assert (check.is_reported, len(check.tests)) == (True, 1)
    (check,) = (await looked_up(stage, await failed_now(stage, a="F", b="F"))).checks
    assert (check.is_reported, check.tests) == (False, ())


async def test_a_test_has_failed_as_it_ended_where_its_stack_says(stage):
    failed = Attempt(Outcome.FAILED, stack='  File "src/total.py", line 3, in total')
    cases = (
        a_case("total", "F", explicit_attempts=(failed,)),
        a_case("mail", "FP"),
        a_case("cart", "FS"),
        a_case("list", "PF"),
    )
    sent = await stage.send([a_file({}, cases=cases)])
    (check,) = (await looked_up(stage, sent)).checks
    assert {each.file: sorted(each.files) for each in check.tests} == {
        "tests/total.py": ["src/total.py"],
        "tests/cart.py": [],
        "tests/list.py": [],
    }


async def test_queues_hear_of_the_first_results_and_that_none_come_any_more(stage):
    stage.runtime.providers[HOST] = ValuesProvider(HOST)
    wish = QueueRequest({}, QueueState.PAUSED)
    await queues.create(stage.runtime, stage.repository, "main", wish, SYSTEM)
    (queue,) = await stage.runtime.store.read(stored_queues.all_queues)

    async def sends() -> bool:
        return (await turn.value(stage.runtime, queue.id)).sends_results

    assert not await sends()
    away = RepositoryChanged(available=False, hold=HoldReason.PROVIDER_UNAVAILABLE)
    await turn.take(stage.runtime, queue.id, [away])
    await stage.ran({"total": "P"})
    await turn.take(stage.runtime, queue.id, [away])
    assert await sends()
    holds = (await turn.value(stage.runtime, queue.id)).holds
    assert HoldReason.PROVIDER_UNAVAILABLE in {each.reason for each in holds}
    stage.clock.present += links.SENDING_FOR
    await sweeps.expire(stage.runtime)
    assert await sends()
    stage.clock.present += MINUTE
    await sweeps.expire(stage.runtime)
    assert not await sends()


async def test_a_question_may_be_asked_again_and_stops_nothing_of_its_run(stage):
    repository = stage.repository
    queue = QueueRef(1, repository.org_id, repository.id, repository.ref, "main")
    asked = [
        turn.item(stage.runtime, queue, AskEvidence("a run", 1, (name,)), stage.clock.present)
        for name in ("unit", "lint")
    ]
    assert len({item.key for item in asked}) == 2
    assert [(item.lane, item.run) for item in asked] == [(Lane.EVIDENCE, None)] * 2
    assert len({item.supersede_key for item in asked}) == 1


def reported(run_id: str, attempt: int = 1, failures: int = 0) -> Upload:
    """An upload of a job in one attempt of a CI run."""
    return Upload(
        id=f"{run_id}.{attempt}",
        digest=f"{run_id}.{attempt}",
        kind="stable",
        code_id=f"run:{run_id}",
        sha="a" * 40,
        job="unit",
        ran_at=NOW,
        received_at=NOW,
        run_id=run_id,
        run_attempt=attempt,
        counts={"failed": failures},
    )


@pytest.mark.parametrize(
    ("newest_first", "chosen"),
    [
        ([reported("4"), reported("3"), reported("2")], ["4.1", "3.1"]),
        ([reported("4"), reported("3", failures=1), reported("2")], ["4.1", "3.1", "2.1"]),
        ([reported(run, failures=1) for run in "4321"], ["4.1", "3.1", "2.1"]),
        (
            [reported("4", 2), reported("4", 1, failures=1), reported("3"), reported("2")],
            ["4.2", "4.1", "3.1"],
        ),
    ],
)
def test_two_ci_runs_without_a_failure_say_what_a_job_reports(newest_first, chosen):
    points = expected_tests.newest_points(newest_first)
    assert [each.id for point in points for each in point] == chosen
