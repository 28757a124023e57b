"""Artifacts of CI: report files, packed for the workflow run, and their download.

Files of the tested commit as they are, a report made up from the tests that the CI file lists,
or the file that a command wrote. Archives are served at signed addresses that are valid for a
minute; like GitHub's storage, they refuse a request with a token.
"""

import hashlib
import io
import zipfile
from collections.abc import Iterable
from datetime import timedelta
from pathlib import PurePosixPath
from xml.sax.saxutils import quoteattr

from aiohttp import web

from bot.sandbox import ci_file
from bot.sandbox.ci_file import CasePlan, CheckPlan
from bot.sandbox.records import Artifact
from bot.sandbox.world import Repository, WorkflowRun, World

MADE_UP = "junit.xml"
STORAGE = "/_storage/"
GOOD_FOR = timedelta(minutes=1)


def failing_tests(
    repository: Repository, run: WorkflowRun, plan: CheckPlan
) -> tuple[CasePlan, ...]:
    """The tests of a check that fail in this attempt; chance is drawn anew for each."""
    if plan.reports is None:
        return ()
    draw = f"{repository.world.seed}:{run.head_sha}:{plan.name}:{run.attempt}"
    return tuple(
        test
        for test in plan.reports.tests
        if ci_file.conclusion_of(
            repository.git.objects,
            ci_file.of_attempt(test.rules, run.attempt),
            run.tested_sha,
            run.head_branch,
            f"{draw}/{test.name}",
        )
        != "success"
    )


def leave_reports(
    repository: Repository, run: WorkflowRun, plan: CheckPlan, written: bytes | None
) -> None:
    """Leave the artifacts of a check that has ended; `written` is its command's file."""
    if written is not None and plan.junit is not None:
        name = PurePosixPath(plan.junit).name
        leave(repository.world, run, f"junit-{plan.name}", [(name, written)])
    if plan.reports is not None:
        name = plan.reports.artifact or f"junit-{plan.name}"
        leave(repository.world, run, name, _files_of(repository, run, plan))


def reports_of(
    repository: Repository, run: WorkflowRun, plan: CheckPlan, written: bytes | None
) -> list[tuple[str, bytes]]:
    """Return the report files of a check that has ended, with their names."""
    own = [] if written is None or plan.junit is None else [(plan.junit, written)]
    return own + _files_of(repository, run, plan)


def _files_of(repository: Repository, run: WorkflowRun, plan: CheckPlan) -> list[tuple[str, bytes]]:
    """Return files of the commit, and a report made up from the tests of the CI file."""
    if plan.reports is None:
        return []
    objects = repository.git.objects
    read = ((path, objects.file_at(run.tested_sha, path)) for path in plan.reports.files)
    files = [(path, content) for path, content in read if content is not None]
    if plan.reports.tests:
        failing = failing_tests(repository, run, plan)
        files.append((MADE_UP, made_up(plan.name, plan.reports.tests, failing)))
    return files


def leave(
    world: World, run: WorkflowRun, name: str, files: Iterable[tuple[str, bytes]]
) -> Artifact:
    """One more artifact of the present attempt, in place of one of that name and attempt."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files:
            archive.writestr(path, content)
    made = Artifact(world.new_id(), name, packed.getvalue(), run.attempt, world.now())
    run.artifacts = [
        one for one in run.artifacts if (one.name, one.attempt) != (name, run.attempt)
    ] + [made]
    return made


def made_up(suite: str, tests: tuple[CasePlan, ...], failing: tuple[CasePlan, ...]) -> bytes:
    """A JUnit report of the tests, some of which failed."""
    lines = [f"<testsuite name={quoteattr(suite)} tests='{len(tests)}' failures='{len(failing)}'>"]
    for test in tests:
        place = f" file={quoteattr(test.file)}" if test.file else ""
        named = f"classname={quoteattr(test.classname or suite)} name={quoteattr(test.name)}"
        case = f"<testcase {named}{place}"
        if test in failing:
            message = quoteattr(f"AssertionError: {test.name} was wrong")
            lines.append(f"{case} time='0.01'><failure message={message}/></testcase>")
        else:
            lines.append(f"{case} time='0.01'/>")
    return "\n".join([*lines, "</testsuite>", ""]).encode()


def address_of(world: World, artifact: Artifact) -> str:
    """Return an address of the archive, valid for the next minute."""
    until = int((world.timeline.callers_now() + GOOD_FOR).timestamp())
    query = f"until={until}&sig={_signature(world, artifact, until)}"
    # Another host to clients, which therefore do not send their token.
    storage = world.web.replace("//127.0.0.1", "//localhost")
    return f"{storage}{STORAGE}{artifact.id}?{query}"


def _signature(world: World, artifact: Artifact, until: int) -> str:
    return hashlib.sha256(f"{world.seed}:{artifact.id}:{until}".encode()).hexdigest()


def find(repository: Repository, number: int) -> Artifact | None:
    """Return the artifact of an id, None without one."""
    artifacts = (one for run in repository.workflow_runs for one in run.artifacts)
    return next((one for one in artifacts if one.id == number), None)


async def serve(world: World, request: web.Request) -> web.Response:
    """The archive; 400 with a token, 403 for an address that is wrong or no longer valid."""
    if "Authorization" in request.headers:
        return web.Response(status=400, text="InvalidAuthenticationInfo\n")
    number, until = int(request.match_info["id"]), request.query.get("until", "")
    stored = [find(repository, number) for repository in world.repositories.values()]
    artifact = next(filter(None, stored), None)
    if artifact is None or not until.isdecimal():
        return web.Response(status=404, text="BlobNotFound\n")
    is_signed = request.query.get("sig") == _signature(world, artifact, int(until))
    if not is_signed or world.timeline.callers_now().timestamp() > int(until):
        return web.Response(status=403, text="AuthenticationFailed\n")
    return web.Response(body=artifact.packed, content_type="application/zip")
