"""Row Actions, artifacts: what checks leave, how long it is there, where it is fetched."""

import io
import json
import zipfile
from datetime import timedelta

import aiohttp
import pytest

from bot.sandbox import ci, ci_file
from bot.sandbox.app import SandboxOptions, running
from tests.sandbox.client import REPO

TRIGGERS = 'triggers: { push: ["**"] }\n'
REPORTED = (
    TRIGGERS
    + """
checks:
  - name: unit
    runner: linux-1
    failed_steps: 2
    reports:
      files: [own.xml, missing.xml]
      tests:
        - { name: adds, classname: app.Sums, file: tests/sums.py }
        - { name: waits, rules: [ { flake: 0.5, conclusion: failure } ] }
        - { name: "a<b", rules: [ { exists: [bad.txt], conclusion: failure } ] }
"""
)


async def pushed(sandbox, text, **files):
    """A push of that CI file to `w`, run to its end; the workflow run."""
    files = {".sandbox/ci.yml": text, **{name.replace("_", "."): files[name] for name in files}}
    await sandbox.act("push", "bob", REPO, branch="w", files=files)
    await sandbox.settle()
    return sandbox.repository(REPO).workflow_runs[-1]


def files_of(artifact):
    archive = zipfile.ZipFile(io.BytesIO(artifact.packed))
    return {name: archive.read(name).decode() for name in archive.namelist()}


async def test_a_check_leaves_files_of_its_commit_and_a_made_up_report(sandbox):
    run = await pushed(sandbox, REPORTED, own_xml="<testsuite/>", bad_txt="x")
    (artifact,) = run.artifacts
    assert (artifact.name, artifact.attempt) == ("junit-unit", 1)
    files = files_of(artifact)
    assert files["own.xml"] == "<testsuite/>"
    assert set(files) == {"own.xml", "junit.xml"}
    lines = files["junit.xml"].splitlines()
    assert lines[1] == (
        '<testcase classname="app.Sums" name="adds" file="tests/sums.py" time=\'0.01\'/>'
    )
    assert lines[3] == (
        '<testcase classname="unit" name="a&lt;b" time=\'0.01\'>'
        '<failure message="AssertionError: a&lt;b was wrong"/></testcase>'
    )
    assert run.conclusion == "failure"


async def test_a_failing_test_fails_its_check_and_is_drawn_anew_for_each_attempt(sandbox):
    run = await pushed(sandbox, REPORTED)
    seen = set()
    for _ in range(10):
        failed = "waits was wrong" in files_of(run.artifacts[-1])["junit.xml"]
        assert run.conclusion == ("failure" if failed else "success")
        seen.add(failed)
        ci.rerun(sandbox.repository(REPO), run, failed_only=False)
        await sandbox.settle()
    assert seen == {True, False}


async def test_a_job_shows_its_machine_and_its_failed_steps(sandbox, app):
    run = await pushed(sandbox, REPORTED, bad_txt="x")
    path = f"/repos/{REPO}/actions/runs/{run.id}/attempts/1/jobs"
    (job,) = (await app.get(path))["jobs"]
    assert job["runner_name"] == "linux-1"
    assert [step["conclusion"] for step in job["steps"]] == ["failure", "failure"]


async def test_running_everything_again_clears_what_there_was(sandbox, person):
    run = await pushed(sandbox, REPORTED, bad_txt="x")
    path = f"/repos/{REPO}/actions/runs/{run.id}"
    await person("bob").call("POST", f"{path}/rerun-failed-jobs", {})
    await sandbox.settle()
    assert [one.attempt for one in run.artifacts] == [1, 2]
    ci.rerun(sandbox.repository(REPO), run, failed_only=False)
    assert run.artifacts == []
    await sandbox.settle()
    assert [one.attempt for one in run.artifacts] == [3]


async def test_runs_are_listed_by_the_day_they_were_made(sandbox, app):
    run = await pushed(sandbox, REPORTED)
    path = f"/repos/{REPO}/actions/runs?created="
    today = run.created_at.date()
    tomorrow = today + timedelta(days=1)
    listed = [(await app.get(f"{path}%3E%3D{day}"))["total_count"] for day in (today, tomorrow)]
    assert listed == [len(sandbox.repository(REPO).workflow_runs), 0]
    assert (await app.call("GET", f"{path}yesterday")).status == 422


async def test_each_attempt_is_read_by_its_number(sandbox, app):
    run = await pushed(sandbox, REPORTED, bad_txt="x")
    path = f"/repos/{REPO}/actions/runs/{run.id}"
    sandbox.world.timeline.advance(60)
    ci.rerun(sandbox.repository(REPO), run, failed_only=False)
    first, second = [await app.get(f"{path}/attempts/{number}") for number in (1, 2)]
    assert (first["run_attempt"], first["status"], first["conclusion"]) == (
        1,
        "completed",
        "failure",
    )
    assert (second["run_attempt"], second["status"], second["conclusion"]) == (
        2,
        "in_progress",
        None,
    )
    assert first["run_started_at"] < second["run_started_at"]
    assert first["created_at"] == second["created_at"]
    assert (await app.call("GET", f"{path}/attempts/3")).status == 404
    assert (await app.call("GET", f"{path}/attempts/3/jobs")).status == 404


async def test_each_attempt_that_ends_is_told(sandbox, receiver):
    run = await pushed(sandbox, REPORTED, bad_txt="x")
    ci.rerun(sandbox.repository(REPO), run, failed_only=False)
    await sandbox.settle()
    told = [each["workflow_run"] for each in receiver.payloads("workflow_run")]
    assert [each["run_attempt"] for each in told if each["status"] == "completed"] == [1, 2]


async def test_an_archive_is_fetched_elsewhere_for_a_minute_and_without_a_token(sandbox, app, http):
    run = await pushed(sandbox, REPORTED)
    listed = await app.get(f"/repos/{REPO}/actions/runs/{run.id}/artifacts")
    assert listed["total_count"] == 1
    answer = await app.call("GET", listed["artifacts"][0]["archive_download_url"])
    assert (answer.status, answer.body) == (302, b"")
    where = answer.headers["Location"]
    assert where.startswith("http://localhost:")
    assert await fetched(http, where) == (200, run.artifacts[0].packed)
    assert (await fetched(http, where, Authorization="Bearer x"))[0] == 400
    assert (await fetched(http, where + "0"))[0] == 403
    assert (await fetched(http, where.partition("?")[0]))[0] == 404
    later = sandbox.world.timeline.callers_now() + timedelta(seconds=61)
    sandbox.world.timeline.callers_now = lambda: later
    assert (await fetched(http, where))[0] == 403


async def fetched(http: aiohttp.ClientSession, url: str, **headers: str) -> tuple[int, bytes]:
    async with http.get(url, headers=headers) as answer:
        return answer.status, await answer.read()


async def test_an_expired_artifact_is_gone_and_an_unknown_one_not_found(sandbox, app):
    run = await pushed(sandbox, REPORTED)
    run.artifacts[0].expired = True
    path = f"/repos/{REPO}/actions/artifacts"
    assert (await app.call("GET", f"{path}/{run.artifacts[0].id}/zip")).status == 410
    assert (await app.call("GET", f"{path}/999/zip")).status == 404


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("echo '<testsuite/>' > out.xml; exit 1", {"out.xml": "<testsuite/>\n"}),
        ("true", None),
        ("ln -s /etc/hostname out.xml", None),
    ],
)
async def test_the_report_that_a_command_wrote_is_left(command, files):
    async with running(SandboxOptions(is_manual=True, allow_commands=True)) as sandbox:
        await sandbox.seed(repositories=[{"full_name": REPO}])
        check = f"{{ name: real, run: {json.dumps(command)}, junit: out.xml }}"
        run = await pushed(sandbox, f"{TRIGGERS}checks: [{check}]\n")
        assert [(one.name, files_of(one)) for one in run.artifacts] == (
            [] if files is None else [("junit-real", files)]
        )


@pytest.mark.parametrize(
    "check",
    [
        "{ name: a, junit: x.xml }",
        "{ name: a, kind: status, reports: {} }",
        "{ name: a, kind: status, runner: x }",
        "{ name: a, reports: { surprise: 1 } }",
        "{ name: a, reports: { tests: [ { rules: [] } ] } }",
        "{ name: a, reports: { tests: [ { name: b, rules: [ { conclusion: odd } ] } ] } }",
        "{ name: a, failed_steps: many }",
    ],
)
def test_reports_have_a_grammar(check):
    assert ci_file.parse(f"{TRIGGERS}checks: [{check}]\n".encode()).error
