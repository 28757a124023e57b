"""Real pytest with coverage under `headgate test`: what it says itself decides what is excused."""

import html
import re
from pathlib import Path

import pytest

from service.testhealth.store import uploads
from tests.end_to_end.test_failed_tests_told import PUBLIC, page_of
from tests.end_to_end.test_live_tests import GREEN, RED
from tests.harness import gates, live_jobs
from tests.harness import reporting_ci as ci
from tests.harness.asking import Asker, asker
from tests.harness.world import World, WorldOptions

KILLED = 137


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so."""
    settings = {"public_url": PUBLIC}
    return WorldOptions(ci=gates.CI, permissions={"actions": "write"}, settings=settings)


@pytest.fixture
async def ask(world: World) -> Asker:
    """An admin; `test_total` is quarantined."""
    asking = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    end = {"run": "1", "runner": "pytest", "reason": "passed", "exit_code": 0}
    counts = dict.fromkeys(("planned", "passed"), GREEN.count(b"<testcase"))
    await ci.on_main(asking, GREEN, "1", runner="pytest", runner_ends=[end | counts])
    settings = {"quarantine_enabled": True, "quarantine_forgives": "ANY_FAILURE"}
    await ci.settle_tests(asking, "update-settings", **settings)
    failing = await ci.upload(asking, RED, sha="b" * 40, branch="topic", run_id="9", job="unit")
    await ci.always_quarantine(asking, failing["failures"][0]["test_id"])
    return asking


async def test_only_a_threshold_that_was_met_lets_a_quarantined_failure_pass(
    world: World, ask: Asker, tmp_path: Path
) -> None:
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    gate = await gates.under_test(world, number)
    measured = f"{live_jobs.PYTEST} --cov=. --cov-fail-under="
    stories = {
        "met": (f"{measured}10", 0, "all quarantined: exit code 0"),
        "missed": (f"{measured}100", 1, "`pytest` says that a threshold was missed"),
        "without a word": (
            f"{measured}10".replace("-p headgate_pytest", ""),
            1,
            "nothing shows that it does so for failed tests alone",
        ),
    }
    for name, (script, expected, said) in stories.items():
        folder = tmp_path / name.replace(" ", "-")
        folder.mkdir()
        async with live_jobs.running(world, gate, folder, script, TOTAL="1") as job:
            code, err = await job.ends()
        assert (code, said in err) == (expected, True), (name, err)


async def test_a_runner_that_is_killed_before_it_wrote_a_report_is_told_wherever_people_look(
    world: World, ask: Asker, tmp_path: Path
) -> None:
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    gate = await gates.under_test(world, number)
    dies = "import os, signal\ndef test_dies(): os.kill(os.getpid(), signal.SIGKILL)\n"
    (tmp_path / "test_dies.py").write_text(dies)
    script = live_jobs.PYTEST.replace("test_shop.py", "test_dies.py")
    async with live_jobs.running(world, gate, tmp_path, script) as job:
        _, err = await job.process.communicate()
    assert job.process.returncode == KILLED
    assert not (tmp_path / "r.xml").exists()
    found = re.search(rf"results: {PUBLIC}(\S+)", err.decode())
    assert found is not None, err.decode()
    assert err.decode().rstrip().endswith(f"ended by signal 9: exit code {KILLED}.")
    run = await gates.fails(world, number)
    await world.settle()
    assert await world.state(number) == "FAILED"

    why = f"in job unit, as when its memory runs out (exit code {KILLED}): it began and never said"
    said = f"The test runner pytest was killed {why} how it ended."
    assert said in world.comment_on(number).replace("`", "")
    assert said in await ask.headgate("explain", str(number))
    for path in (f"/octo/widgets/main/pull/{number}", f"/octo/widgets/runs/{run.id}"):
        assert said in text_of(await page_of(world, path))
    upload = text_of(await page_of(world, found[1]))
    assert "no report file came; this only says how the test runner ended." in upload
    # It is no evidence: the job has not reported.
    here = (await world.queue()).repository_id
    assert run.sha is not None
    assert await world.runtime.store.read(uploads.of_test_run, here, run.sha, run.created_at) == ()


def text_of(page: str) -> str:
    """The words of a page without its marks."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", page)).split())
