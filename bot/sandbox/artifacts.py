"""Artifacts of CI: report files, packed for the workflow run.

Files of the tested commit as they are, a report made up from the tests that the CI file lists,
or the file that a command wrote. Where the archives are fetched: storage.py.
"""

import io
import zipfile
from collections.abc import Iterable
from pathlib import PurePosixPath
from xml.sax.saxutils import quoteattr

from bot.sandbox import ci_file
from bot.sandbox.ci_file import CheckPlan, TestPlan
from bot.sandbox.records import Artifact, WorkflowRun
from bot.sandbox.world import Repository, World

MADE_UP = "junit.xml"


def failing_tests(
    repository: Repository, run: WorkflowRun, plan: CheckPlan
) -> tuple[TestPlan, ...]:
    """The tests of a check that fail in this attempt; chance is drawn anew for each."""
    if plan.reports is None:
        return ()
    draw = f"{repository.world.seed}:{run.head_sha}:{plan.name}:{run.attempt}"
    return tuple(
        test
        for test in plan.reports.tests
        if ci_file.conclusion_of(
            repository.git.objects,
            test.rules,
            run.tested_sha,
            run.head_branch,
            f"{draw}/{test.name}",
        )
        != "success"
    )


def leave_reports(
    repository: Repository, run: WorkflowRun, plan: CheckPlan, written: bytes | None
) -> None:
    """Leave what a check that has ended says it leaves; `written` is its command's file."""
    if written is not None and plan.junit is not None:
        name = PurePosixPath(plan.junit).name
        leave(repository.world, run, f"junit-{plan.name}", [(name, written)])
    if plan.reports is None:
        return
    objects = repository.git.objects
    read = ((path, objects.file_at(run.tested_sha, path)) for path in plan.reports.files)
    files = [(path, content) for path, content in read if content is not None]
    if plan.reports.tests:
        failing = failing_tests(repository, run, plan)
        files.append((MADE_UP, made_up(plan.name, plan.reports.tests, failing)))
    leave(repository.world, run, plan.reports.artifact, files)


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


def made_up(suite: str, tests: tuple[TestPlan, ...], failing: tuple[TestPlan, ...]) -> bytes:
    """A JUnit report of the tests, some of which failed."""
    lines = [f"<testsuite name={quoteattr(suite)} tests='{len(tests)}' failures='{len(failing)}'>"]
    for test in tests:
        place = f" file={quoteattr(test.file)}" if test.file else ""
        case = f"<testcase classname={quoteattr(test.classname)} name={quoteattr(test.name)}{place}"
        if test in failing:
            said = quoteattr(f"AssertionError: {test.name} was wrong")
            lines.append(f"{case} time='0.01'><failure message={said}/></testcase>")
        else:
            lines.append(f"{case} time='0.01'/>")
    return "\n".join([*lines, "</testsuite>", ""]).encode()
