"""CI that sends its test results to the service, in a world whose runs end as `gates` say."""

import json
from collections.abc import Mapping
from typing import Any

import aiohttp

from bot.sandbox import ci, job_tokens, reports
from bot.sandbox.records import Actor, CheckRun
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.states import RunKind
from tests.harness import gates
from tests.harness.asking import HOST, Asker
from tests.harness.issuer import AUDIENCE
from tests.harness.world import REPO, World

Failing = Mapping[str, str]
"""Name of each test → how it failed, empty: it passed."""


def a_report(tests: Failing) -> bytes:
    """A JUnit report; each test stands in a file of its own."""
    cases = "".join(
        f'<testcase name="{name}" classname="Cart" file="tests/{name}.py">'
        + (f'<failure message="{said}"/>' if said else "")
        + "</testcase>"
        for name, said in tests.items()
    )
    return f'<testsuite name="ui">{cases}</testsuite>'.encode()


async def upload(
    ask: Asker, tests: Failing | bytes, *, by: str = "", **meta: Any
) -> dict[str, Any]:
    """Send a report, as a job by its token `by` if one is given; the answer, a success."""
    form = aiohttp.FormData()
    form.add_field("metadata", about(**meta))
    report = tests if isinstance(tests, bytes) else a_report(tests)
    form.add_field("file", report, filename="junit.xml")
    return await done(ask, "upload-test-results", data=form, by=by)


def token_of(world: World, check: CheckRun) -> str:
    """The token that CI gives to the job of a check."""
    ran = gates.workflow_run_of(world, check)
    return job_tokens.token_of(world.repository, ran, check, AUDIENCE)


def token_of_run(world: World, check: CheckRun) -> str:
    """The token of the job of a check as older servers make it: it names the run alone."""
    claims = job_tokens.claims_of(gates.workflow_run_of(world, check), check)
    del claims["check_run_id"]
    return job_tokens.signed(world.repository, claims, AUDIENCE)


def token_on_main(world: World, run_id: str, attempt: int = 1) -> str:
    """The token of the job `unit` in a CI run of the tip of `main`."""
    claims = {
        "run_id": run_id,
        "run_attempt": str(attempt),
        "check_run_id": f"{run_id}{attempt:03}",
        "event_name": "push",
        "ref": "refs/heads/main",
        "sha": str(world.repository.git.branch("main")),
        "head_ref": "",
    }
    return job_tokens.signed(world.repository, claims, AUDIENCE)


async def settle_tests(ask: Asker, name: str, **more: Any) -> dict[str, Any]:
    """Change something of the tests of the repository, by an endpoint of theirs."""
    return await done(ask, name, data=about(**more))


async def quarantine(ask: Asker, name: str, said: str) -> None:
    """Quarantine a test, which has failed once on another branch."""
    await settle_tests(ask, "update-settings", quarantine_enabled=True)
    await fails_by_tests_alone(ask)
    failing = await upload(ask, {name: said}, sha="b" * 40, branch="topic", run_id="9")
    await always_quarantine(ask, failing["failures"][0]["test_id"])


async def fails_by_tests_alone(ask: Asker, *jobs: str) -> None:
    """Say that jobs, or all of them, send no exit code and fail if tests fail, and only then."""
    codes = [f"{job}=failure" for job in jobs or ("*",)]
    await settle_tests(ask, "update-settings", test_failure_exit_codes=codes)


async def always_quarantine(ask: Asker, test_id: str) -> None:
    """Quarantine a test, whatever its status."""
    await settle_tests(
        ask,
        "set-quarantine-override",
        test_id=test_id,
        override="ALWAYS_QUARANTINE",
        reason="waits on the real clock",
    )


def about(**more: Any) -> str:
    """What a request about the tests of the repository says, as JSON."""
    owner, name = REPO.split("/")
    repo = {"host": HOST, "owner": owner, "name": name}
    return json.dumps({"repo": repo, "org_url_slug": owner, **more})


async def done(ask: Asker, name: str, **sent: Any) -> dict[str, Any]:
    """The answer to a request, which must be a success."""
    url = f"{ask.world.url}/v1/flaky-tests/{name}"
    job = sent.pop("by", "")
    headers = {"Authorization": f"Bearer {job}"} if job else {"x-api-token": ask.secret}
    if isinstance(sent.get("data"), str):
        headers["Content-Type"] = "application/json"
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, headers=headers, **sent) as answer,
    ):
        said: dict[str, Any] = await answer.json(content_type=None)
        assert answer.status == 200, said
        return said


async def on_main(ask: Asker, tests: Failing | bytes, run_id: str, **meta: Any) -> None:
    """The results of a CI run of the tip of `main`, whose job fails by failed tests alone."""
    await fails_by_tests_alone(ask)
    sha = str(ask.world.repository.git.branch("main"))
    by = token_on_main(ask.world, run_id)
    about = {"by": by, "sha": sha, "branch": "main", "run_id": run_id, "job": "unit"}
    await upload(ask, tests, **about | meta)


async def of_gate(ask: Asker, gate: gates.Gate, tests: Failing) -> None:
    """The results of the CI job that tests a run."""
    ran = gates.workflow_run_of(ask.world, gate.check)
    await upload(
        ask,
        tests,
        by=token_of(ask.world, gate.check),
        sha=gate.run.sha,
        branch=gate.run.branch,
        run_id=str(ran.id),
        run_attempt=ran.attempt,
        job="unit",
    )


async def ends(
    ask: Asker, number: int, tests: Failing, *, sends: bool = True, kind: RunKind | None = None
) -> Run:
    """End the tests of a pull request's run by their results, sent before the job is over."""
    world = ask.world
    gate = await gates.under_test(world, number, kind=kind)
    if sends:
        await of_gate(ask, gate, tests)
    conclusion = "failure" if any(tests.values()) else "success"
    actor = Actor(gate.check.suite.app.bot, gate.check.suite.app)
    fields = {"status": "completed", "conclusion": conclusion}
    ran = gates.workflow_run_of(world, gate.check)
    reports.change_run(world.repository, gate.check, actor, fields)
    ci.close_when_done(world.repository, ran)
    return gate.run
