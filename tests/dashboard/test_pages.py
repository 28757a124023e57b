"""What the pages of a test and of an upload show."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.testhealth.operations import flags, overrides, remove, tickets
from service.testhealth.operations.flags import FlagRequest
from service.testhealth.operations.overrides import OverrideRequest
from service.testhealth.operations.tickets import TicketLink
from service.testhealth.reports.results import Fault, FileStatus
from service.testhealth.runner_ends import EndReason, FileError, RunnerEnd
from service.testhealth.settings import TestSettings
from service.testhealth.store import quarantine
from service.testhealth.store.cases import Place
from service.testhealth.store.quarantine import Since
from service.vocabulary import Actor, ActorKind, Channel, Flag, Override, Role, Sensitivity, Sha
from tests.dashboard.browsing import browsing, token_of
from tests.harness.expect import expect
from tests.operations import upload_stage
from tests.operations.upload_stage import NOW, a_case, a_file

HOUR = timedelta(hours=1)
ANN = Actor(ActorKind.PERSON, "ann", "101", Channel.API)


@pytest.fixture
async def stage(store):
    return await upload_stage.staged(store)


@pytest.fixture
async def browser(stage):
    token = await token_of(stage.runtime, Role.READ)
    async with browsing(stage.runtime, token) as opened:
        yield opened


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


async def told(stage):
    """A test with a past: it flaked, was quarantined, flagged, linked to a ticket."""
    await quarantining(stage)
    here = stage.repository
    for hours, letters in ((30, "P"), (20, "FP"), (10, "F"), (5, "S")):
        sha = Sha(f"{hours:02}" * 20)
        await stage.ran(
            {"total": letters, "empty": "P"}, sha=sha, branch="main", ran_at=NOW - hours * HOUR
        )
    case = await stage.case("total")
    wish = OverrideRequest(case.id, Override.ALWAYS_QUARANTINE, "waits on #991", NOW + 50 * HOUR)
    await overrides.put(stage.runtime, here, wish, ANN)
    await flags.put(stage.runtime, here, FlagRequest(case.id, Flag.FLAKY, "real clock"), ANN)
    ticket = TicketLink(case.id, "https://github.test/octo/widgets/issues/991", None)
    await tickets.link(stage.runtime, here, ticket, ANN)
    stage.clock.present += HOUR
    await stage.ran({"total": "F", "empty": "P"}, pr_number=7, ran_at=NOW)
    return case


async def test_the_page_of_a_test_shows_all_that_is_known_of_it(stage, browser):
    case = await told(stage)
    page = await browser.see(f"/octo/widgets/tests/{case.id}")
    expect(page.text).matches("test.txt")


async def test_the_page_of_a_flagged_test_says_what_ends_its_flag_and_its_quarantine(
    stage, browser
):
    await quarantining(stage)
    await stage.ran({"total": "F"}, ran_at=NOW - HOUR)
    case = await stage.case("total")
    await flags.put(stage.runtime, stage.repository, FlagRequest(case.id, Flag.FLAKY, "clock"), ANN)
    path = f"/octo/widgets/tests/{case.id}"
    flagged = (await browser.see(path)).text
    assert "It lasts until the flag is removed (flag-test with NONE)." in flagged
    assert "The quarantine lasts until the flag is removed" in flagged
    stage.clock.present += timedelta(days=31)
    await stage.ran({"other": "P"}, ran_at=stage.clock.present)
    stale = (await browser.see(path)).text
    assert "The flag has no effect while the test does not run." in stale
    assert "Not quarantined" in stale
    await stage.ran({"total": "P"}, sha=Sha("b" * 40), ran_at=stage.clock.present)
    assert "It lasts until the flag is removed" in (await browser.see(path)).text
    await flags.put(stage.runtime, stage.repository, FlagRequest(case.id, Flag.NONE), ANN)
    removed = (await browser.see(path)).text
    assert "2026-04-22 00:00 UTC flaky → healthy, flag removed by ann" in removed
    assert "The quarantine lasts" not in removed


async def test_the_activity_leads_to_the_test_that_a_person_changed(stage):
    case = await told(stage)
    admin = await token_of(stage.runtime, Role.ADMIN)
    async with browsing(stage.runtime, admin) as browser:
        page = await browser.see("/activity?action=test.flag")
    assert f"/octo/widgets/tests/{case.id}" in page.links
    assert "total in octo/widgets" in page.text


async def test_the_activity_leads_to_no_test_of_which_only_untrusted_results_are_left(stage):
    sent = await stage.ran({"total": "P"}, ran_at=NOW - HOUR)
    case = await stage.case("total")
    await flags.put(stage.runtime, stage.repository, FlagRequest(case.id, Flag.FLAKY, "clock"), ANN)
    stranger = replace(stage.caller, token_id="")
    await stage.ran({"total": "P", "x": "P"}, ran_at=NOW, caller=stranger, pr_number=7)
    await remove.remove(stage.runtime, stage.repository, sent.upload_id, ANN)
    admin = await token_of(stage.runtime, Role.ADMIN)
    async with browsing(stage.runtime, admin) as browser:
        page = await browser.see("/activity?action=test.flag")
        path = f"/octo/widgets/tests/{case.id}"
        assert (await browser.get(path)).status == 404
    assert "test.flag" in page.text
    assert path not in page.links


async def test_a_repository_that_is_created_anew_has_no_test_of_the_one_before(stage, browser):
    case = await told(stage)
    anew = await upload_stage.created_anew(stage)
    assert (await browser.get(f"/octo/widgets/tests/{case.id}")).status == 404
    assert "Nothing found" in (await browser.see("/find?q=total")).text
    answer = await anew.ran({"total": "F"}, ran_at=NOW)
    assert (answer.quarantined_failures, answer.unquarantined_failures) == (0, 1)
    assert (await browser.get("/find?q=total")).status == 302
    page = await browser.see(f"/octo/widgets/tests/{case.id}")
    assert "Nothing since it was first seen." in page.text


async def test_a_test_that_never_failed_has_a_short_page(stage, browser):
    await stage.ran({"total": "P"}, ran_at=NOW - HOUR)
    case = await stage.case("total")
    page = await browser.see(f"/octo/widgets/tests/{case.id}")
    expect(page.text).matches("test-healthy.txt")


async def test_the_page_of_an_upload_shows_how_it_was_read_and_what_failed(stage, browser):
    case = await told(stage)
    cut = a_file(
        {"late": "F", "empty": "P"},
        "e2e.xml",
        status=FileStatus.PARTIAL,
        fault=Fault("The file ends in the middle of an element.", 12, 3),
    )
    odd = a_case("total", "F")
    odd = odd._replace(
        explicit_attempts=(odd.explicit_attempts[0]._replace(message="TimeoutError: no answer"),)
    )
    whole = a_file({"other": "S"})
    whole = a_file({"other": "S"}, cases=(*whole.cases, odd))
    answer = await stage.send(
        [whole, cut],
        sha=Sha("b" * 40),
        pr_number=7,
        branch="topic",
        run_id="4711",
        run_attempt=2,
        run_url="https://github.test/octo/widgets/actions/runs/4711",
        machine="runner-3",
        command_exit_code=1,
        ran_at=NOW,
    )
    page = await browser.see(f"/octo/widgets/uploads/{answer.upload_id}")
    expect(page.text).matches("upload.txt")
    assert f"/octo/widgets/tests/{case.id}" in page.links
    assert "https://github.test/octo/widgets/actions/runs/4711" in page.links


async def test_the_page_of_an_upload_says_what_its_sender_was_told(stage, browser):
    await told(stage)
    odd = a_case("total", "F")
    odd = odd._replace(
        explicit_attempts=(odd.explicit_attempts[0]._replace(message="OSError: no space left"),)
    )
    report = a_file({"other": "P"})
    report = a_file({"other": "P"}, cases=(*report.cases, odd))
    answer = await stage.send([report], branch="topic", command_exit_code=1, ran_at=NOW)
    assert (answer.quarantined_failures, answer.verdict.exit_code) == (1, 1)
    page = await browser.see(f"/octo/widgets/uploads/{answer.upload_id}")
    assert f"failed {answer.verdict.message}" in page.text
    assert "but not excused" in page.text
    assert "flaky quarantined, not excused" in page.text


async def test_a_run_leads_to_its_upload_and_a_failure_to_its_test(stage, browser):
    answer = await stage.ran({"total": "F"}, ran_at=NOW)
    case = await stage.case("total")
    test, upload = f"/octo/widgets/tests/{case.id}", f"/octo/widgets/uploads/{answer.upload_id}"
    assert upload in (await browser.see(test)).links
    assert test in (await browser.see(upload)).links


async def test_the_address_that_the_answer_gives_is_the_page(stage, browser):
    answer = await stage.ran({"total": "F"}, ran_at=NOW)
    public = stage.runtime.options.public_url
    assert answer.html_url.startswith(f"{public}/octo/widgets/uploads/")
    await browser.see(answer.html_url.removeprefix(public))


async def test_the_newest_sixty_runs_stand_in_the_strip(stage, browser):
    for minute in range(65):
        letters = "F" if minute == 1 else "P"
        ran_at = NOW - timedelta(minutes=minute)
        await stage.ran({"total": letters}, sha=Sha(f"{minute:02}" * 20), ran_at=ran_at)
    case = await stage.case("total")
    page = await browser.see(f"/octo/widgets/tests/{case.id}")
    labels = [attrs.get("aria-label") for tag, attrs in page.tags if tag == "svg"]
    assert "The last 60 runs: 59 passed, 1 failed" in labels
    assert "M117 0v20" in [attrs.get("d") for tag, attrs in page.tags if tag == "path"]


async def test_a_large_quarantine_is_told_where_tests_are_looked_at(stage, browser):
    await quarantining(stage)
    names = {f"test {number}": "FP" for number in range(22)}
    for hours in (5, 4):
        for number, (name, letters) in enumerate(names.items()):
            sha = Sha(f"{hours}{number:039}")
            ran_at = NOW - hours * HOUR + timedelta(seconds=number)
            answer = await stage.ran({name: letters}, sha=sha, ran_at=ran_at)
    page = await browser.see(f"/octo/widgets/uploads/{answer.upload_id}")
    assert "Many tests are quarantined: 22 of 22." in page.text
    case = await stage.case("test 1")
    page = await browser.see(f"/octo/widgets/tests/{case.id}")
    assert "Many tests are quarantined: 22 of 22." in page.text


async def test_an_upload_shows_what_its_runners_said(stage, browser):
    errors = (FileError("tests/b.py", "SyntaxError: <b>"),)
    end = RunnerEnd("1", "pytest", EndReason.UNLOADED, 1, planned=2, passed=2, unloaded=errors)
    answer = await stage.ran({"total": "P"}, runner_ends=(replace(end, unloaded_more=3),))
    page = await browser.see(f"/octo/widgets/uploads/{answer.upload_id}")
    assert "pytest: unloaded, exit code 1" in page.text
    assert "tests/b.py did not load SyntaxError: <b>" in page.text
    assert "and 3 more" in page.text


async def test_an_upload_names_the_tests_whose_status_it_changed(stage, browser):
    await quarantining(stage)
    names = [f"test {number:02}" for number in range(23)]
    sha = Sha("c" * 40)
    for number, name in enumerate(names):
        ran_at = NOW - 9 * HOUR + timedelta(minutes=number)
        await stage.ran({name: "F"}, sha=sha, ran_at=ran_at, run_id=f"first {number}")
    stage.clock.present += HOUR
    few = await stage.ran({"test 00": "P", "new": "P"}, sha=sha, run_id="few", ran_at=NOW)
    page = await browser.see(f"/octo/widgets/uploads/{few.upload_id}")
    assert "healthy → flaky test 00\nFiles" in page.text
    stage.clock.present += HOUR
    passing = dict.fromkeys(names[1:], "P")
    many = await stage.ran(passing, sha=sha, run_id="many", ran_at=NOW)
    page = await browser.see(f"/octo/widgets/uploads/{many.upload_id}")
    assert "22 tests have another status since." in page.text
    assert "flaky test 20\nand 2 more\n" in page.text
