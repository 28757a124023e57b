"""The kind of test branch that the workflow files of a branch need.

`read` has the files read in a parser process (`workflow_files.py`); `advice_of` decides. Rules:
GitHub's "Workflow syntax" and "Events that trigger workflows" (docs/reference/queue-settings.md).
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import cast

from bot.github import ci_plans, files, workflow_files
from bot.github.client import RepositoryClient
from bot.github.workflow_files import Unread, Workflow, WorkflowJob
from service.errors import Overloaded
from service.parser_process import Job, Limits
from service.parsers import Stopped
from service.provider.ci_plans import CiPlan, PlannedJob
from service.provider.errors import Refused, Unavailable
from service.provider.values import Vehicle, VehicleAdvice
from service.vocabulary import Sha

FOLDER = ".github/workflows"
FILES_MAX = 50
FILE_BYTES_MAX = 256 * 1024
# As many files of the largest size as may be, each within the reader's own bounds, take half.
PARSER_LIMITS = Limits(computing_s=20, memory_bytes=256 * 1024 * 1024)
PATTERN = "headgate/merge/**"
NO_WORKFLOWS = f"The repository has no workflow files, so another CI must run on {PATTERN}."
TOO_MUCH = "The workflow files are too many or too large to be read."
OF_DRAFTS = (
    "Each draft uses a number of the repository and notifies watchers; a pushed branch does not."
)
NAMED_MAX = 3


@dataclass(frozen=True, slots=True)
class Workflows:
    """The workflow files of a commit: those that were read, and those that cannot be read.

    `trouble` says why none of them was read; empty if all were looked at.
    """

    found: tuple[Workflow, ...] = ()
    unread: tuple[Unread, ...] = ()
    trouble: str = ""


def advise(texts: Mapping[str, str], target: str) -> VehicleAdvice:
    """Return the kind that these workflow files need; `texts` are by file name."""
    contents = {name: text.encode("utf-8", "replace") for name, text in texts.items()}
    return advice_of(_workflows_of(list(workflow_files.pieces(contents, target))))


def advice_of(workflows: Workflows) -> VehicleAdvice:
    """Return the kind that these workflows need; what could not be read is named."""
    if workflows.trouble:
        return VehicleAdvice(None, workflows.trouble)
    advice = _advice_of(workflows.found)
    if not workflows.unread:
        return replace(advice, never=never_on_test_branches(workflows.found, advice.vehicle))
    if not workflows.found:
        return VehicleAdvice(None, _listed_unread(workflows.unread))
    return VehicleAdvice(advice.vehicle, f"{advice.reason} {_listed_unread(workflows.unread)}")


def events_of(workflow: Workflow, vehicle: Vehicle | None) -> frozenset[str]:
    """Return the events by which a workflow starts on this kind of test branch; None: on either."""
    pushed = {"push"} if workflow.on_push else set()
    is_push = vehicle is Vehicle.PUSH
    return frozenset(pushed | ({"pull_request"} if workflow.on_draft and not is_push else set()))


def jobs_on(
    found: Sequence[Workflow], vehicle: Vehicle | None, check: str
) -> list[tuple[Workflow, WorkflowJob, frozenset[str]]]:
    """Return the jobs that report a check on test branches, with the events that start them."""
    return [
        (workflow, job, events)
        for workflow in found
        if (events := events_of(workflow, vehicle))
        for job in workflow.each_job
        if job.name == check
    ]


def never_on_test_branches(found: Sequence[Workflow], vehicle: Vehicle | None) -> dict[str, str]:
    """Return where checks run whose jobs are all left out on test branches, by name."""
    never: dict[str, str] = {}
    running: set[str] = set()
    for workflow in found:
        events = events_of(workflow, vehicle)
        for job in workflow.each_job if events else ():
            if events <= job.left_out:
                never.setdefault(job.name, job.place)
            else:
                running.add(job.name)
    return {name: place for name, place in never.items() if name not in running}


def _listed_unread(unread: Sequence[Unread]) -> str:
    """Return a sentence that names the files that cannot be read, and why the first cannot."""
    names = listed([each.name for each in unread])
    return f"Headgate cannot read {names}: {unread[0].why}"


def _advice_of(found: Sequence[Workflow]) -> VehicleAdvice:
    pushed = [each.name for each in found if each.on_push]
    if pushed:
        left = [each.name for each in found if each.on_draft and not each.on_push]
        rest = f" {listed(left)} starts on pull requests alone." if left else ""
        return VehicleAdvice(Vehicle.PUSH, f"{listed(pushed)} starts on pushes to {PATTERN}.{rest}")
    skipping = [each.name for each in found if each.guarded or each.wrong_types]
    if skipping:
        return VehicleAdvice(
            Vehicle.PUSH,
            f"{listed(skipping)} skips draft pull requests. "
            f"Let it also start on pushes to {PATTERN}.",
        )
    started = [each.name for each in found if each.on_draft]
    if started:
        reason = f"{listed(started)} starts on draft pull requests. {OF_DRAFTS}"
        return VehicleAdvice(Vehicle.DRAFT_PR, reason)
    if found:
        return VehicleAdvice(
            None,
            "No workflow starts on a draft pull request or on a push to "
            f"{PATTERN}. Without another CI no test will report.",
        )
    return VehicleAdvice(None, NO_WORKFLOWS)


async def read(client: RepositoryClient, target: str, commit: Sha) -> Workflows:
    """Return the workflow files of a commit, as they concern a target branch.

    Raises the provider's errors, Unavailable also while no parser is free.
    """
    texts = await contents(client, commit)
    if texts is None:
        return Workflows(trouble=TOO_MUCH)
    if not texts:
        return Workflows()
    job = Job(workflow_files.pieces, (texts, target), PARSER_LIMITS)
    try:
        pieces = await _parsed(client, job)
    except Stopped as stopped:
        return Workflows(trouble=f"Reading the workflow files {stopped.why}.")
    return _workflows_of([cast(Workflow | Unread, each) for each in pieces])


async def plan(client: RepositoryClient, commit: Sha) -> CiPlan:
    """Return what the workflow files of a commit say about failures; empty when unreadable.

    Raises as `read`.
    """
    texts = await contents(client, commit)
    if not texts:
        return CiPlan()
    try:
        pieces = await _parsed(client, Job(ci_plans.pieces, (texts, FOLDER), PARSER_LIMITS))
    except Stopped:
        return CiPlan()
    return CiPlan(tuple(cast(PlannedJob, each) for each in pieces))


async def digest(client: RepositoryClient, commit: Sha) -> str:
    """Return a digest of the names and contents of the workflow files of a commit."""
    answer = await client.find(f"/contents/{FOLDER}", {"ref": commit}, is_kept=True)
    listed = () if answer is None else answer.objects
    rows = sorted(
        f"{each.words('type')} {each.words('name')} {each.words('sha')}" for each in listed
    )
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


async def _parsed(client: RepositoryClient, job: Job) -> Iterable[object]:
    """Return the pieces of a parser's result. Raises Stopped, and Unavailable if none is free."""
    try:
        return await client.github.parsers.run(client.repo, job, client.clock)
    except Overloaded as busy:
        later = client.clock.now() + timedelta(seconds=busy.retry_after_s)
        raise Unavailable(busy.detail, later) from busy


def _workflows_of(each_file: Sequence[Workflow | Unread]) -> Workflows:
    """Return the workflows that were read and the files that were not."""
    return Workflows(
        found=tuple(each for each in each_file if isinstance(each, Workflow)),
        unread=tuple(each for each in each_file if isinstance(each, Unread)),
    )


async def advice(client: RepositoryClient, target: str, commit: Sha) -> VehicleAdvice:
    """Return the kind that the workflow files at a commit need."""
    return advice_of(await read(client, target, commit))


async def contents(client: RepositoryClient, commit: Sha) -> Mapping[str, bytes] | None:
    """Return the workflow files of a commit by name, None when they are too many or too large."""
    answer = await client.find(f"/contents/{FOLDER}", {"ref": commit})
    if answer is None:
        return {}
    names = [name for each in answer.listed if (name := _workflow_file(each))]
    if len(names) > FILES_MAX:
        return None
    found: dict[str, bytes] = {}
    for name in names:
        try:
            content = await files.read_file(client, f"{FOLDER}/{name}", commit, FILE_BYTES_MAX)
        except Refused:
            return None
        found[name] = content or b""
    return found


def _workflow_file(entry: object) -> str | None:
    """Return the name of a workflow file in a listed folder, None for another entry."""
    if not isinstance(entry, Mapping) or entry.get("type") != "file":
        return None
    name = entry.get("name")
    return name if isinstance(name, str) and name.endswith((".yml", ".yaml")) else None


def listed(names: Sequence[str]) -> str:
    """Return some file names as text, the rest as a number."""
    shown = ", ".join(names[:NAMED_MAX])
    left = len(names) - NAMED_MAX
    return f"{shown} and {left} more" if left > 0 else shown
