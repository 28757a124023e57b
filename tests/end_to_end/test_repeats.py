"""Real pytest under `headgate test` runs tests again: seldom failures are found, fixes proved."""

import asyncio
import re
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from service.testhealth import repeats
from service.testhealth.repeats import FLAKY_RESTS
from tests.harness import gates
from tests.harness import reporting_ci as ci
from tests.harness.asking import HOST, Asker, asker
from tests.harness.live_jobs import ROOT
from tests.harness.processes import plain_environment
from tests.harness.world import REPO, World, WorldOptions

MANY = "".join(f'<testcase name="t{at}" classname="m" time="0.5"/>' for at in range(200))
OLD = (
    f'<testsuite name="pytest">{MANY}<testcase name="test_quick" classname="test_shop"/>'
    "</testsuite>"
).encode()
TESTS = """
import os, pathlib

def test_quick():
    pass

def test_slow():
    # Fails every twelfth time, until it is mended.
    count = pathlib.Path("count")
    runs = int(count.read_text()) + 1 if count.exists() else 1
    count.write_text(str(runs))
    assert "MENDED" in os.environ or runs % 12, "too slow"
"""
PYTEST = (
    f"{sys.executable} -m pytest -q -p no:cacheprovider -p headgate_pytest --junit-xml=r.xml"
    " test_shop.py"
)


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so."""
    return WorldOptions(ci=gates.CI, permissions={"actions": "write"})


@pytest.fixture
async def ask(world: World, tmp_path: Path) -> Asker:
    """An admin of a repository whose jobs may repeat tests for ten minutes a day."""
    asking = await asker(world)
    await ci.settle_tests(asking, "update-settings", repeat_minutes_per_day=10)
    long_ago = world.runtime.clock.now() - timedelta(days=10)
    sha = str(world.repository.git.branch("main"))
    by = ci.token_on_main(world, "1")
    about = {"sha": sha, "branch": "main", "run_id": "1", "job": "unit"}
    await ci.upload(asking, OLD, by=by, ran_at=long_ago.isoformat(), **about)
    (tmp_path / "test_shop.py").write_text(TESTS)
    return asking


async def job_on_main(
    world: World, folder: Path, run_id: str, *more: str, command: str = PYTEST, **environment: str
) -> tuple[int, str]:
    """Run the job `unit` of a CI run of `main`; its exit code, and what it says of repeats."""
    sha = str(world.repository.git.branch("main"))
    options = ("--junit", "r.xml", "--sha", sha, "--job", "unit", "--no-progress", *more)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", "test", *options, "--", *command.split()),
        cwd=folder,
        env={
            **plain_environment(),
            "PYTHONPATH": str(ROOT),
            "HEADGATE_URL": world.url,
            "HEADGATE_TOKEN": ci.token_on_main(world, run_id),
            "GITHUB_ACTIONS": "true",
            "GITHUB_REPOSITORY": REPO,
            "GITHUB_SERVER_URL": f"https://{HOST}",
            "GITHUB_RUN_ID": run_id,
            "GITHUB_REF": "refs/heads/main",
            **environment,
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await process.communicate()
    said = [line for line in err.decode().splitlines() if line.startswith("headgate: ")]
    return process.returncode or 0, "\n".join(said)


async def status_of(ask: Asker, name: str = "test_slow") -> dict[str, Any]:
    """The status of a test."""
    query = {"search": name, "page_query": {"page_size": 100}}
    listed = await ci.done(ask, "list-tests", data=ci.about(**query))
    (found,) = [each for each in listed["tests"] if each["name"] == name]
    return dict(found["status"])


async def test_a_test_that_fails_seldom_becomes_flaky_by_repeats_and_is_proved_mended(
    world: World, ask: Asker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Jobs that are programs have the clock of the machine, which is ahead of the world's.
    monkeypatch.setattr(repeats, "FLAKY_RESTS", timedelta(days=-1))
    code, said = await job_on_main(world, tmp_path, "2")
    assert code == 0
    report = (tmp_path / "r.xml").read_text()
    assert "running 1 tests again" in said
    assert "test_shop::test_slow (new)" in said
    assert re.search(r"test_slow failed \d+ of 40 times on the same code", said), said
    assert 'tests="2"' in report, "the reports are those of the first run"
    assert (await status_of(ask))["value"] == "healthy", "one job proves little"
    code, said = await job_on_main(world, tmp_path, "3")
    assert code == 0
    assert "(suspected)" in said
    status = await status_of(ask)
    assert status["value"] == "flaky"
    assert "when it was repeated in 2 jobs" in status["reason"]
    # It passes in each job by itself: only repeats can tell that it is mended.
    for number in range(4, 12):
        code, said = await job_on_main(world, tmp_path, str(number), MENDED="1")
        assert "(flaky)" in said
        status = await status_of(ask)
        if status["value"] == "healthy":
            break
    assert re.search(r"verified by \d+ repeated runs on [0-9a-f]{7}", status["reason"]), status


@pytest.mark.parametrize(
    "command", ["sh tests.sh", PYTEST.replace("-m pytest", "-m coverage run -m pytest")]
)
async def test_a_command_that_is_not_the_runner_itself_is_not_run_again(
    world: World, ask: Asker, tmp_path: Path, command: str
) -> None:
    (tmp_path / "tests.sh").write_text(PYTEST)
    _, said = await job_on_main(world, tmp_path, "2", command=command)
    assert "no test is run again: The test runner of this job cannot run single tests" in said


# Stories of jobs that speak by the endpoints.

SLOW = OLD.replace(
    b"</testsuite>", b'<testcase name="test_slow" classname="test_shop"/></testsuite>'
)


class Job:
    """A job that has sent its results, and asks what to repeat."""

    def __init__(self, ask: Asker, by: str, about: dict[str, Any], upload_id: str) -> None:
        self.ask, self.by, self.about, self.upload_id = ask, by, about, upload_id

    async def plan(self, **more: Any) -> dict[str, Any]:
        """What it is asked to repeat."""
        said = {**self.about, "upload_id": self.upload_id, "able": True, **more}
        return await ci.done(self.ask, "plan-repeats", data=ci.about(**said), by=self.by)

    async def report(self, plan: dict[str, Any], runs: str, seconds: float = 1.0) -> dict[str, Any]:
        """Report the same runs of all tests of a plan."""
        tests = [{"test_id": each["test_id"], "runs": runs} for each in plan["tests"]]
        said = {**self.about, "plan_id": plan["plan_id"], "seconds": seconds, "tests": tests}
        return await ci.done(self.ask, "report-repeats", data=ci.about(**said), by=self.by)


async def on_main(ask: Asker, run_id: str, **more: str) -> Job:
    """A job of `main`, in which all tests pass."""
    sha = str(ask.world.repository.git.branch("main"))
    by = ci.token_on_main(ask.world, run_id)
    about = {"sha": sha, "branch": "main", "run_id": run_id, "job": "unit"}
    answer = await ci.upload(ask, SLOW, by=by, **about, **more)
    return Job(ask, by, about, answer["upload_id"])


async def in_pull(ask: Asker, number: int, run_id: str) -> Job:
    """A job of a pull request, in which all tests pass; it takes 100 seconds."""
    pull = ask.world.repository.issues[number].pull
    assert pull is not None
    about: dict[str, Any] = {"sha": str(pull.head_sha), "pr_number": number}
    about |= {"run_id": run_id, "job": "unit"}
    answer = await ci.upload(ask, SLOW, **about)
    return Job(ask, "", about, answer["upload_id"])


async def make_flaky(ask: Asker, ago: timedelta = timedelta()) -> None:
    """Make `test_slow` flaky by repeats in two jobs of `main` so long ago."""
    ran_at = ask.world.runtime.clock.now() - ago
    for run_id in ("2", "3"):
        job = await on_main(ask, run_id, ran_at=ran_at.isoformat())
        await job.report(await job.plan(), "P" * 9 + "F" + "P" * 10)
    assert (await status_of(ask))["value"] == "flaky"


async def test_a_flaky_test_is_not_repeated_soon_after_it_failed(ask: Asker) -> None:
    await make_flaky(ask, ago=FLAKY_RESTS / 2)
    assert (await (await on_main(ask, "4")).plan())["standing"] == "nothing", "it is flaky still"


async def test_flags_by_repeats_count_in_what_is_said_of_their_quality(ask: Asker) -> None:
    await make_flaky(ask)
    quality = await ci.done(ask, "get-detection-quality", data=ci.about())
    assert [each["name"] for each in quality["doubtful_flags"]] == ["test_slow"]
    preview = await ci.done(ask, "preview-settings", data=ci.about(sensitivity="eager"))
    assert (preview["newly_flagged"], preview["now"]["flags"]) == ([], 1)


async def test_no_job_repeats_anything_unless_a_setting_allows_it(ask: Asker) -> None:
    await ci.settle_tests(ask, "update-settings", repeat_minutes_per_day=None)
    plan = await (await on_main(ask, "2")).plan()
    assert (plan["standing"], plan["tests"]) == ("off", [])


async def test_jobs_share_the_minutes_of_a_day(ask: Asker) -> None:
    await ci.settle_tests(ask, "update-settings", repeat_minutes_per_day=1)
    first = await on_main(ask, "2")
    plan = await first.plan()
    assert (plan["standing"], plan["seconds"]) == ("planned", 15.0)
    assert (await first.plan())["standing"] == "already"
    for run_id in ("3", "4", "5"):
        assert (await (await on_main(ask, run_id)).plan())["standing"] == "planned"
    spent = await (await on_main(ask, "6")).plan()
    assert (spent["standing"], spent["tests"]) == ("spent", []), "reserved by four jobs"
    assert "repeat_minutes_per_day" in spent["message"]
    await first.report(plan, "P" * 20, seconds=2)
    plan = await (await on_main(ask, "7")).plan()
    assert (plan["standing"], plan["seconds"]) == ("planned", 13.0), "what it did not need"


async def test_nothing_is_repeated_while_a_queue_tests(world: World, ask: Asker) -> None:
    await world.make_queue(confirm_failures="OFF")
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    gate = await gates.under_test(world, number)
    assert (await (await on_main(ask, "2")).plan())["standing"] == "busy"
    ran = gates.workflow_run_of(world, gate.check)
    by = ci.token_of(world, gate.check)
    about = {"sha": gate.run.sha, "run_id": str(ran.id), "job": "unit"}
    answer = await ci.upload(ask, SLOW, by=by, **about)
    plan = await Job(ask, by, about, answer["upload_id"]).plan()
    assert plan["standing"] == "not_here", "its check is waited for"


async def test_one_pull_request_makes_no_flag_by_repeats(world: World, ask: Asker) -> None:
    number = await world.open()
    for run_id in ("20", "21", "22", "23"):
        job = await in_pull(ask, number, run_id)
        plan = await job.plan()
        assert plan["standing"] == "planned", plan
        await job.report(plan, "P" * 9 + "F" + "P" * 9)
        assert (await status_of(ask))["value"] == "healthy", "of one pull request alone"


async def test_repeats_of_pull_requests_end_no_flag(world: World, ask: Asker) -> None:
    number = await world.open()
    await make_flaky(ask, ago=FLAKY_RESTS)
    plans = []
    for run_id in ("30", "31", "32"):
        job = await in_pull(ask, number, run_id)
        plans.append(await job.plan())
        if plans[-1]["tests"]:
            await job.report(plans[-1], "P" * 100)
    assert plans[0]["tests"][0]["because"] == "flaky"
    assert plans[-1]["standing"] == "nothing", "they could not end the flag"
    assert (await status_of(ask))["value"] == "flaky"


async def test_a_forged_report_of_repeats_moves_nothing(world: World, ask: Asker) -> None:
    await make_flaky(ask, ago=FLAKY_RESTS)
    job, other = await on_main(ask, "4"), await on_main(ask, "5")
    before = await status_of(ask)
    plan = await job.plan()
    forgers = (
        Job(ask, "", job.about, job.upload_id),
        Job(ask, other.by, other.about, job.upload_id),
    )
    for forger in forgers:
        assert (await forger.plan())["standing"] == "unproved"
        with pytest.raises(AssertionError, match="not_the_job"):
            await forger.report(plan, "P" * 100)
    assert await status_of(ask) == before
    heard = await job.report(plan, "P" * 200)
    assert heard == {"tests": 1, "runs": 40, "disagreeing": []}, "no more than it was asked for"


async def test_a_test_that_cannot_run_twice_is_not_called_flaky(ask: Asker) -> None:
    for run_id in ("2", "3", "4"):
        job = await on_main(ask, run_id)
        heard = await job.report(await job.plan(), "PFFFFFFFFF/PFFFFFFFFF")
        assert heard["disagreeing"] == []
    assert (await status_of(ask))["value"] == "healthy"


async def test_no_job_says_that_it_spent_more_than_it_was_given(world: World, ask: Asker) -> None:
    number = await world.open()
    job = await in_pull(ask, number, "20")
    await job.report(await job.plan(), "P" * 9, seconds=86_400)
    assert (await (await on_main(ask, "2")).plan())["standing"] == "planned"


async def test_what_a_job_did_not_report_stays_spent(world: World, ask: Asker) -> None:
    await ci.settle_tests(ask, "update-settings", repeat_minutes_per_day=1)
    for run_id in ("2", "3", "4", "5"):
        assert (await (await on_main(ask, run_id)).plan())["standing"] == "planned"
    await world.rest(700)
    assert (await (await on_main(ask, "6")).plan())["standing"] == "spent"


async def test_nothing_is_reported_of_an_upload_that_is_removed(ask: Asker) -> None:
    job = await on_main(ask, "2")
    plan = await job.plan()
    await ci.done(ask, "delete-upload", data=ci.about(upload_id=job.upload_id))
    with pytest.raises(AssertionError, match="upload_not_found"):
        await job.report(plan, "P" * 9)
