"""An upload taken in: what is answered, what is stored, and whom it may change."""

from dataclasses import replace
from datetime import timedelta

import orjson
import pytest
from sqlalchemy import select

from service.errors import Invalid, Malformed, NotFound
from service.notifications.store import subscribers
from service.notifications.store.notifications import messages
from service.notifications.store.subscribers import Endpoint
from service.provider.ci import CiRun, CiTrigger, ProvedJob
from service.provider.errors import Unavailable
from service.testhealth.operations import (
    answers,
    ingest,
    overrides,
    records,
    upload_values,
)
from service.testhealth.operations import (
    settings as test_settings,
)
from service.testhealth.operations.overrides import OverrideRequest
from service.testhealth.reports import duplicates
from service.testhealth.reports.results import Fault, FileStatus
from service.testhealth.settings import TestSettings
from service.testhealth.store import quarantine
from service.testhealth.store import uploads as stored_uploads
from service.testhealth.store.cases import Place
from service.testhealth.store.quarantine import Since
from service.vocabulary import SYSTEM, CheckOutcome, Health, Override, Role, Sensitivity, Sha
from tests.harness.values import ValuesProvider
from tests.operations import upload_stage
from tests.operations.upload_stage import NOW, a_case, a_file

HOUR = timedelta(hours=1)


@pytest.fixture
async def stage(store):
    return await upload_stage.staged(store)


async def stored(stage, answer):
    """The upload as it is kept."""
    found = await stage.runtime.store.read(stored_uploads.by_id, answer.upload_id)
    return found.upload


async def quarantining(stage, **more):
    """Quarantine what is flaky or broken, and call it so at once."""
    settings = TestSettings(
        quarantine_enabled=True,
        auto_quarantine_enabled=True,
        sensitivity=Sensitivity.EAGER,
        **more,
    )
    place = Place(stage.repository.org_id, stage.repository.id)
    since = Since(NOW, NOW)
    await stage.runtime.store.run(quarantine.put_settings, place, settings, since)


async def test_a_failing_test_fails_the_upload(stage):
    answer = await stage.ran({"total": "F", "empty": "P", "later": "S", "again": "FP"})
    assert [(each.name, each.quarantined) for each in answer.failures] == [("total", False)]
    assert answer.verdict == upload_values.Verdict(
        1, False, "1 failure, not quarantined: exit code 1."
    )
    counts = answer.counts
    assert (counts.tests, counts.passed, counts.failed, counts.skipped) == (4, 2, 1, 1)
    assert answer.failures[0].summary == "AssertionError: 10.0 != 10.01"


async def test_a_quarantined_failure_passes_and_is_still_evidence(stage):
    await quarantining(stage)
    await stage.ran({"total": "P"}, ran_at=NOW - 3 * HOUR, branch="main")
    await stage.ran({"total": "FP"}, ran_at=NOW - 2 * HOUR)
    answer = await stage.ran(
        {"total": "F"}, ran_at=NOW - HOUR, command_exit_code=1, runner="pytest"
    )
    assert answer.failures[0].status is Health.FLAKY
    assert (answer.verdict.exit_code, answer.verdict.message) == (
        0,
        "1 failure, quarantined: exit code 0.",
    )
    again = await ingest.upload_answer(stage.runtime, stage.repository, answer.upload_id)
    assert again.failures[0].quarantined
    assert again.verdict == answer.verdict
    assert (await stage.case("total")).last_failed_at == NOW - HOUR


async def test_an_answer_shows_the_first_failures_and_counts_all(stage, monkeypatch):
    monkeypatch.setattr(answers, "FAILURES_MAX", 2)
    await quarantining(stage)
    await stage.ran({"a": "FP", "d": "FP"}, ran_at=NOW - 2 * HOUR)
    failing = dict.fromkeys("abcd", "F")
    answer = await stage.ran(failing, ran_at=NOW - HOUR, command_exit_code=3)
    shown = [(each.name, each.quarantined) for each in answer.failures]
    assert (shown, answer.failures_truncated) == ([("b", False), ("c", False)], True)
    assert (answer.quarantined_failures, answer.unquarantined_failures) == (2, 2)
    again = await ingest.upload_answer(stage.runtime, stage.repository, answer.upload_id)
    assert (again.quarantined_failures, again.unquarantined_failures) == (2, 2)


@pytest.mark.parametrize(("minutes", "quarantined"), [(-1, False), (0, True), (1, True)])
async def test_a_run_that_began_before_the_switch_was_on_is_excused_nothing(
    stage, minutes, quarantined
):
    await stage.ran({"total": "FP"}, ran_at=NOW - 2 * HOUR)
    case = await stage.case("total")
    said = OverrideRequest(case.id, Override.ALWAYS_QUARANTINE, "waits on the real clock")
    stage.clock.present = NOW - 2 * HOUR
    await overrides.put(stage.runtime, stage.repository, said, SYSTEM)
    stage.clock.present = NOW
    changes = {"quarantine_enabled": True}
    await test_settings.update(stage.runtime, stage.repository, changes, SYSTEM)
    since = await stage.runtime.store.read(quarantine.since_of, stage.repository.id)
    result = duplicates.result_of([a_case("total", "F")])

    def answered(session):
        context = records.context_of(session, stage.runtime, stage.repository, NOW + HOUR)
        began = since.quarantine_since + timedelta(minutes=minutes)
        failing = [(case.id, case.no, result)]
        return answers.answered(session, context, failing, "", began)

    (failure,) = (await stage.runtime.store.read(answered)).shown
    assert failure.quarantined is quarantined


async def test_the_same_content_of_the_same_run_counts_once(stage):
    first = await stage.ran({"total": "FP"}, run_id="7")
    again = await stage.ran({"total": "FP"}, run_id="7")
    other = await stage.ran({"total": "FP"}, run_id="8")
    assert (again.upload_id, again.duplicate) == (first.upload_id, True)
    assert not other.duplicate


async def test_a_dry_run_answers_and_stores_nothing(stage):
    answer = await stage.ran({"total": "F"}, dry_run=True)
    assert (answer.upload_id, answer.html_url, answer.dry_run) == (None, None, True)
    assert answer.unquarantined_failures == 1
    assert await stage.cases() == {}


async def test_what_a_fork_sends_makes_no_test_known(stage):
    stranger = replace(stage.caller, token_id="")
    answer = await stage.ran({"total": "FP"}, caller=stranger, pr_number=4)
    assert not answer.trusted
    assert await stage.cases() == {}
    await stage.ran({"total": "P"}, ran_at=NOW - HOUR)
    found = await stage.case("total")
    assert (found.first_run_at, found.last_failed_at) == (NOW - HOUR, None)
    assert await stage.states() == {}


async def test_a_forks_failures_count_among_the_pull_requests_hit(stage):
    await stage.ran({"total": "P"})
    stranger = replace(stage.caller, token_id="")
    await stage.ran({"total": "F", "new": "F"}, caller=stranger, pr_number=4)
    assert (await stage.case("total")).impact == 1


async def test_whose_results_they_are(stage):
    for meta, kind in (
        ({"pr_number": 4, "branch": "main"}, "pr"),
        ({"branch": "main"}, "stable"),
        ({"branch": "topic"}, "other"),
        ({}, "other"),
    ):
        answer = await stage.ran({"total": "P", **{str(meta): "P"}}, **meta)
        assert (await stored(stage, answer)).kind == kind


async def test_the_tree_that_was_tested_is_the_code(stage):
    bare = await stage.ran({"total": "P"})
    assert (await stored(stage, bare)).code_id == f"sha:{'a' * 40}"
    told = await stage.ran({"total": "P"}, tree_sha=Sha("b" * 40), job="other")
    assert (await stored(stage, told)).code_id == f"tree:{'b' * 40}"


async def test_a_clock_that_is_ahead_is_not_believed(stage):
    answer = await stage.ran({"total": "P"}, ran_at=NOW + HOUR)
    assert (await stored(stage, answer)).ran_at == NOW
    assert answer.warnings[0].startswith("clock_ahead")


@pytest.mark.parametrize("away", [ingest.AHEAD_MAX, -ingest.AGE_MAX])
async def test_a_time_just_within_the_limits_is_believed(stage, away):
    answer = await stage.ran({"total": "P"}, ran_at=NOW + away)
    assert (await stored(stage, answer)).ran_at == NOW + away


async def test_what_ran_long_ago_is_refused(stage):
    with pytest.raises(Malformed) as refused:
        await stage.ran({"total": "P"}, ran_at=NOW - timedelta(days=46))
    assert [(each.field, each.code) for each in refused.value.errors] == [("/ran_at", "range")]


async def test_an_upload_without_a_readable_file_is_refused(stage):
    fault = Fault("The file is empty.")
    file = a_file({}, "empty.xml", status=FileStatus.REFUSED, fault=fault, format=None)
    with pytest.raises(Invalid) as refused:
        await stage.send([file])
    assert refused.value.code == "no_results"
    (file_told,) = list(refused.value.members.values())
    assert "empty.xml" in str(file_told)


async def test_more_failures_than_can_be_kept_in_one_go_are_refused(stage, monkeypatch):
    monkeypatch.setattr(ingest, "FAILURES_MAX", 2)
    await stage.ran({"a": "FFP", "b": "PSP"})
    with pytest.raises(Invalid) as refused:
        await stage.send([a_file({"a": "FFP"}), a_file({"b": "F"}, "b.xml")])
    assert refused.value.code == "limit_reached"
    assert "3 failed attempts, more than 2" in refused.value.detail


async def test_a_refused_file_spoils_excuses_and_nothing_else(stage):
    await quarantining(stage)
    await stage.ran({"total": "FP"}, ran_at=NOW - 2 * HOUR)
    refused = a_file({}, "b.xml", status=FileStatus.REFUSED, fault=Fault("Not a report."))
    answer = await stage.send([a_file({"total": "F"}), refused], command_exit_code=2)
    assert answer.quarantined_failures == 1
    assert answer.verdict.exit_code == 2
    assert "b.xml was refused." in answer.warnings


async def test_a_mass_failure_is_no_evidence(stage):
    names = [f"test_{no}" for no in range(25)]
    await stage.ran(dict.fromkeys(names, "F"), ran_at=NOW - 2 * HOUR)
    answer = await stage.ran(dict.fromkeys(names, "P"), ran_at=NOW - HOUR)
    assert answer.unquarantined_failures == 0
    assert {state.value for state, _ in (await stage.states()).values()} == {Health.HEALTHY}


async def test_different_tests_under_one_name_do_not_disagree(stage):
    cases = (a_case("total", "P", file="a.py", line=1), a_case("total", "F", file="a.py", line=9),
             a_case("total", "P", file="a.py", line=20))  # fmt: skip
    file = a_file({"x": "P"})
    muddled = replace(file, cases=cases)
    answer = await stage.send([muddled])
    assert answer.unquarantined_failures == 1
    assert any("stand for several tests" in each for each in answer.warnings)
    (state, _) = (await stage.states())["total"]
    assert state.value is Health.HEALTHY
    assert state.numbers.a is None


async def test_owners_come_with_the_newest_upload(stage):
    await stage.ran({"total": "P"}, codeowners="tests/ @octo/web", ran_at=NOW - HOUR)
    assert (await stage.case("total")).owners == ("@octo/web",)
    await stage.ran({"total": "P"}, codeowners="* @octo/old", ran_at=NOW - 2 * HOUR)
    assert (await stage.case("total")).owners == ("@octo/web",)
    stranger = replace(stage.caller, token_id="")
    await stage.ran({"total": "P"}, codeowners="* @mallory", caller=stranger)
    assert (await stage.case("total")).owners == ("@octo/web",)


async def test_the_id_with_the_outermost_suite_alone_is_another_id_of_a_nested_test(stage):
    nested = a_case("total", "P", parent="ui/cart", outermost_suite="ui")
    file = a_file({"x": "P"})
    await stage.send([replace(file, cases=(nested,))])
    flat = await stage.ran({"total": "F"}, ran_at=NOW - HOUR)
    assert flat.failures[0].test_id == (await stage.case("total")).id
    assert len(await stage.cases()) == 1


async def test_an_upload_of_others_is_not_there(stage):
    answer = await stage.ran({"total": "P"})
    foreign = replace(stage.repository, id=stage.repository.id + 1)
    with pytest.raises(NotFound):
        await ingest.upload_answer(stage.runtime, foreign, answer.upload_id)


async def told(stage):
    """Events that were kept for an endpoint, with their bodies."""
    bodies = select(messages.c.event, messages.c.body).order_by(messages.c.event)
    found = await stage.runtime.store.read(lambda session: session.execute(bodies).all())
    return [(event, orjson.loads(body)) for event, body in found]


async def test_endpoints_are_told_of_uploads_and_of_changes(stage):
    endpoint = Endpoint(
        id="e1",
        org_id=stage.repository.org_id,
        url="https://hooks.example.org",
        events=("upload.*", "test_case.*"),
        repositories=None,
        description="",
        secret=b"",
        created_at=NOW,
    )
    await stage.runtime.store.run(subscribers.create, endpoint)
    await quarantining(stage)
    answer = await stage.ran({"total": "FP", "empty": "P"})
    changed, processed = await told(stage)
    assert (changed[0], processed[0]) == ("test_case.status_changed", "upload.processed")
    change = changed[1]["status_change"]
    assert (change["previous_status"], change["current_status"]["value"]) == ("healthy", "flaky")
    assert processed[1]["upload"] == {
        "id": answer.upload_id,
        "sha": "a" * 40,
        "tests": 2,
        "failed": 0,
        "quarantined_failures": 0,
        "html_url": answer.html_url,
    }
    await stage.ran({"total": "FP", "empty": "P"})
    assert len(await told(stage)) == 2


class Elsewhere(ValuesProvider):
    """A provider that knows where commits are, and of two runs whose they are not."""

    async def commit(self, repo, sha):
        return self.main

    async def contains(self, repo, ancestor, commit):
        return False

    RUN = CiRun(
        id="7",
        attempt=1,
        trigger=CiTrigger.HEAD,
        head_sha=Sha("a" * 40),
        head_branch="main",
        of_fork=False,
        pull_requests=(),
        is_running=True,
        outcome=CheckOutcome.RUNNING,
        started_at=NOW,
        url="",
        begun_by="501",
    )

    async def ci_run(self, repo, run_id, attempt=None):
        trigger = CiTrigger.UNKNOWN if run_id == "777" else CiTrigger.HEAD
        return replace(self.RUN, id=run_id, trigger=trigger, of_fork=run_id == "666")


@pytest.mark.parametrize(("run_id", "account"), [("7", "501"), (None, "")])
async def test_an_upload_names_the_account_that_began_its_ci_run_by_the_providers_word(
    stage, run_id, account
):
    stage.runtime.providers[stage.repository.ref.host] = Elsewhere()
    answer = await stage.ran({"total": "P"}, branch="topic", run_id=run_id)
    assert (await stored(stage, answer)).account.begun_by == account


async def test_the_token_of_a_job_names_the_account_that_began_its_ci_run(stage):
    trigger = CiTrigger.HEAD
    job = ProvedJob("1", "9", 1, trigger, Sha("a" * 40), "topic", None, "90", begun_by="502")
    caller = replace(stage.caller, token_id="", role=Role.CI, job=job)
    answer = await stage.ran({"total": "P"}, caller=caller, run_id="9")
    assert (await stored(stage, answer)).account.begun_by == "502"


async def test_a_run_of_a_fork_is_a_forks_whatever_commit_is_named(stage):
    stage.runtime.providers[stage.repository.ref.host] = Elsewhere()
    merged = await stage.ran({"total": "P"}, sha=Sha("e" * 40), run_id="666")
    assert not merged.trusted


@pytest.mark.parametrize("claimed", [{"branch": "main"}, {"pr_number": 4}, {"branch": "topic"}])
async def test_a_run_that_may_have_tested_a_forks_code_is_trusted_like_a_fork(stage, claimed):
    """A workflow that sends the reports of others stands on the default branch itself."""
    stage.runtime.providers[stage.repository.ref.host] = Elsewhere()
    answer = await stage.ran({"total": "FP"}, run_id="777", **claimed)
    assert not answer.trusted
    assert answer.warnings[0].startswith("run_unknown: CI run 777 ")
    assert await stage.cases() == {}


async def test_a_job_that_may_have_tested_a_forks_code_cannot_leave_its_run_out(stage):
    """The OIDC token of a comment's workflow names the run that the upload does not."""
    stage.runtime.providers[stage.repository.ref.host] = Elsewhere()
    job = ProvedJob("1", "777", 1, CiTrigger.UNKNOWN, Sha("a" * 40), "main", None)
    caller = replace(stage.caller, token_id="", role=Role.CI, job=job)
    answer = await stage.ran({"total": "FP"}, caller=caller, pr_number=4)
    assert not answer.trusted
    assert answer.warnings[0].startswith("run_unknown: CI run 777 ")


class Away(ValuesProvider):
    """A provider that cannot be reached."""

    async def tip(self, repo, branch):
        raise Unavailable("It is away.", NOW)

    async def position(self, repo, sha):
        raise Unavailable("It is away.", NOW)


async def test_the_provider_can_contradict_who_sends_results(stage):
    stage.runtime.providers[stage.repository.ref.host] = Elsewhere()
    claimed = await stage.ran({"total": "P"}, branch="main", run_id="7")
    assert (await stored(stage, claimed)).kind == "other"
    assert claimed.warnings[0].startswith("claim_contradicted")
    assert not (await stage.ran({"total": "P"}, pr_number=4, run_id="666")).trusted


async def test_a_vouched_claim_stands_while_the_provider_is_away(stage):
    stage.runtime.providers[stage.repository.ref.host] = Away()
    answer = await stage.ran({"total": "P"}, branch="main")
    upload = await stored(stage, answer)
    assert (upload.kind, upload.position) == ("stable", None)


class OneRun(ValuesProvider):
    """A provider that knows CI run 7, and nobody's commits."""

    run = Elsewhere.RUN

    async def ci_run(self, repo, run_id, attempt=None):
        return self.run if run_id == "7" else None

    async def commit(self, repo, sha):
        return None


@pytest.fixture
def seven(stage):
    """What CI run 7 is, seen by a job that holds a token of role `ci`."""
    provider = OneRun()
    stage.runtime.providers[stage.repository.ref.host] = provider
    stage.caller = replace(stage.caller, role=Role.CI)
    return provider


async def test_the_run_decides_branch_commit_and_attempt_and_the_answer_names_them(stage, seven):
    seven.run = replace(Elsewhere.RUN, head_branch="topic", head_sha=Sha("b" * 40))
    answer = await stage.ran({"total": "P"}, branch="main", run_id="7", run_attempt=3)
    kept = await stored(stage, answer)
    assert (kept.kind, kept.branch, kept.sha, kept.run_attempt) == ("other", "topic", "b" * 40, 1)
    assert [each.partition(" was ")[0] for each in answer.warnings] == [
        "claim_contradicted: sha",
        "claim_contradicted: branch",
        "claim_contradicted: run_attempt",
    ]


async def test_a_run_of_a_pull_request_is_never_of_a_stable_branch(stage, seven):
    trigger = CiTrigger.PULL_REQUEST
    seven.run = replace(Elsewhere.RUN, head_branch="main", trigger=trigger, pull_requests=(4,))
    answer = await stage.ran({"total": "P"}, branch="main", run_id="7")
    kept = await stored(stage, answer)
    assert (kept.kind, kept.pr_number, answer.warnings) == ("pr", 4, ())


async def test_a_pull_request_must_have_the_runs_head_or_branch(stage, seven):
    trigger = CiTrigger.PULL_REQUEST
    seven.run = replace(Elsewhere.RUN, head_branch="topic-5", trigger=trigger)
    moved_on = await stage.ran({"total": "P"}, pr_number=5, run_id="7")
    assert ((await stored(stage, moved_on)).pr_number, moved_on.warnings) == (5, ())
    others = await stage.ran({"count": "P"}, pr_number=4, run_id="7")
    kept = await stored(stage, others)
    assert (kept.kind, kept.pr_number) == ("pr", None)
    assert others.warnings[0].startswith("claim_contradicted: pr_number was sent as 4")


@pytest.mark.parametrize("run", [{}, {"run_id": "8"}, {"run_id": "jenkins-main-8"}])
async def test_a_stable_branch_that_nothing_proves_is_another_branch(stage, seven, run):
    answer = await stage.ran({"total": "P"}, branch="main", **run)
    assert (await stored(stage, answer)).kind == "other"
    assert answer.warnings[0].startswith("claim_unproved: ")
    stage.caller = replace(stage.caller, role=Role.QUEUE)
    vouched = await stage.ran({"total": "P"}, branch="main", job="vouched", **run)
    assert ((await stored(stage, vouched)).kind, vouched.warnings) == ("stable", ())


async def test_a_run_of_the_stable_branch_proves_it(stage, seven):
    answer = await stage.ran({"total": "P"}, branch="main", run_id="7")
    assert ((await stored(stage, answer)).kind, answer.warnings) == ("stable", ())
