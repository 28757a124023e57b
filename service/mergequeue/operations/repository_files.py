"""Read the repository's file on a target branch and bring the queue up to date with it.

Only the target branch's own file counts: nothing here reads the head of a pull request. The file
is read when a queue is made, when a push to the target touches it, and by the sweep of all queues,
once for each commit. Rules: docs/design/engine.md 6.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import cast

import structlog
from cachetools import LRUCache

from service.accounts.store import access
from service.accounts.tenants import RepositoryRecord
from service.errors import Overloaded
from service.memory import QUEUES_MAX
from service.mergequeue.engine.config import (
    RULES_NEED_LANDING,
    ConfigValue,
    QueueConfig,
    changed,
)
from service.mergequeue.engine.inputs import Input, RepositoryFileRead
from service.mergequeue.engine.model import FileFault, MergeQueue, RepositoryFile
from service.mergequeue.operations import repository_file, requirements, turn, vehicles
from service.mergequeue.operations.repository_file import PATH, STATUSES, TRUNK_PATH, Checked
from service.mergequeue.operations.requirements import Override
from service.parser_process import Job, Limits
from service.parsers import Stopped
from service.provider.errors import Refused, Unavailable
from service.repofile import document
from service.repofile.document import BYTES_MAX, Document, Unreadable
from service.runtime import Runtime
from service.vocabulary import MergeMethod, QueueRef, RepoRef, Sha

PATHS = frozenset({PATH, TRUNK_PATH})
# The largest file within the reader's own bounds takes a tenth of this.
PARSER_LIMITS = Limits(computing_s=5, memory_bytes=256 * 1024 * 1024)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Target:
    """A target branch at one commit, and the merge methods that its repository allows."""

    repo: RepoRef
    branch: str
    commit: Sha
    merge_methods: frozenset[MergeMethod]


@dataclass(frozen=True, slots=True)
class Reading:
    """The files of a target branch as read at a commit.

    `settings` are those for the branch, by field name; `faults` non-empty: they are empty.
    """

    commit: Sha
    digest: str
    settings: Mapping[str, ConfigValue]
    required_path: str | None
    faults: tuple[FileFault, ...]

    @property
    def exists(self) -> bool:
        """Return whether there is a file that says something, rightly or wrongly."""
        return bool(self.settings or self.faults)


async def read_files(runtime: Runtime, target: Target) -> Reading:
    """Read our file, and the one of Trunk if ours lists no required statuses.

    Raises the provider's errors.
    """
    own = await content_at(runtime, target.repo, PATH, target.commit)
    if isinstance(own, FileFault):
        return _broken(target, (own,))
    checked = await checked_of(runtime, target.repo, own or b"")
    faults = () if own is None else checked.faults
    settings = dict(checked.settings_for(target.branch))
    faults += method_faults(checked, target.branch, target.merge_methods)
    if faults:
        return _broken(target, faults, own or b"")
    if STATUSES in settings:
        return Reading(target.commit, _digest(target, own), settings, PATH, ())
    return await _with_trunk(runtime, target, own, settings)


def method_faults(
    checked: Checked, branch: str, allowed: frozenset[MergeMethod]
) -> tuple[FileFault, ...]:
    """Return the fault of a merge method that the repository does not allow, if it is one.

    Also that of rules for conflicts which do not fit the way in which the file lets land.
    """
    method = checked.settings_for(branch).get("merge_method")
    if method is None or method in allowed:
        return _rules_faults(checked, branch)
    names = ", ".join(sorted(one.value for one in allowed)) or "none"
    message = f"is not allowed by the repository. Allowed: {names}."
    return (checked.fault_at(branch, "merge_method", message),)


def _rules_faults(checked: Checked, branch: str) -> tuple[FileFault, ...]:
    """Return the fault of rules for conflicts without a way of landing for them."""
    given = changed(QueueConfig(), checked.settings_for(branch))
    if len(given.conflict_rules) == len(given.rules_for_conflicts):
        return ()
    message = f"{RULES_NEED_LANDING}, in this file."
    return (checked.fault_at(branch, "conflict_rules", message),)


async def _with_trunk(
    runtime: Runtime, target: Target, own: bytes | None, settings: Mapping[str, ConfigValue]
) -> Reading:
    other = await content_at(runtime, target.repo, TRUNK_PATH, target.commit)
    if isinstance(other, FileFault):
        return _broken(target, (other,), own or b"")
    if other is None:
        return Reading(target.commit, _digest(target, own), settings, None, ())
    read_file = await _document_of(runtime, target.repo, other)
    names, faults = repository_file.trunk_statuses(read_file)
    if faults:
        return _broken(target, faults, own or b"", other)
    if names is None:
        return Reading(target.commit, _digest(target, own), settings, None, ())
    both = {**settings, STATUSES: names}
    return Reading(target.commit, _digest(target, own, other), both, TRUNK_PATH, ())


async def content_at(
    runtime: Runtime, repo: RepoRef, path: str, commit: Sha
) -> bytes | FileFault | None:
    """Return a file of a commit, None if there is none, or the fault that it cannot be read."""
    try:
        return await runtime.providers[repo.host].read_file(repo, path, commit, BYTES_MAX)
    except Refused as refused:
        return FileFault(path, None, "", refused.message)


async def checked_of(runtime: Runtime, repo: RepoRef, content: bytes) -> Checked:
    """Return what our file of a repository says. Raises Unavailable while no parser is free."""
    read_file = await _document_of(runtime, repo, content)
    return await asyncio.to_thread(repository_file.checked, read_file)


async def _document_of(runtime: Runtime, repo: RepoRef, content: bytes) -> Document | Unreadable:
    """Return what a parser process reads in a file of settings (docs/design/security.md 8)."""
    if not content:
        return document.read(content)
    job = Job(document.pieces, (content,), PARSER_LIMITS)
    try:
        (found,) = await runtime.parsers.run(repo, job, runtime.clock)
    except Stopped as stopped:
        return Unreadable(f"Reading this file {stopped.why}. Shorten it.")
    except Overloaded as busy:
        later = runtime.clock.now() + timedelta(seconds=busy.retry_after_s)
        raise Unavailable(busy.detail, later) from busy
    return cast(Document | Unreadable, found)


def _broken(target: Target, faults: tuple[FileFault, ...], *contents: bytes) -> Reading:
    digest = _digest(target, *contents, repr(faults).encode())
    return Reading(target.commit, digest, {}, None, faults)


def _digest(target: Target, *contents: bytes | None) -> str:
    """Return a digest of the branch and the files; a missing one differs from an empty one."""
    parts = [b"-" if each is None else hashlib.sha256(each).digest() for each in contents]
    return hashlib.sha256(b"\0".join((target.branch.encode(), *parts))).hexdigest()


def file_of(reading: Reading, known: RepositoryFile | None) -> RepositoryFile | None:
    """Return what the queue keeps of a reading; None: there is no file and there was none.

    With faults the settings of the last valid version stay in force.
    """
    if reading.faults:
        last = known or RepositoryFile(reading.commit, reading.digest)
        return replace(last, commit=reading.commit, digest=reading.digest, faults=reading.faults)
    if not reading.settings:
        return None
    names = tuple(sorted(reading.settings))
    path, commit = reading.required_path, reading.commit
    return RepositoryFile(commit, reading.digest, names, path, (), commit)


def override_of(reading: Reading, queue: MergeQueue) -> Override | None:
    """Return the required statuses that the queue will have with this reading."""
    if reading.faults:
        return requirements.override_of(queue)
    if STATUSES in reading.settings:
        return required_by(reading)
    own = (queue.own_config or queue.config).required_statuses
    return None if own is None else Override(own)


def required_by(reading: Reading) -> Override | None:
    """Return the required statuses that the file lists."""
    names = reading.settings.get(STATUSES)
    return Override(tuple(map(str, names)), True) if isinstance(names, tuple) else None


async def future_reading(
    runtime: Runtime, repository: RepositoryRecord, branch: str
) -> Reading | None:
    """Return the reading of the files for a queue that is to be made; None: there is no branch."""
    tip = await runtime.providers[repository.ref.host].tip(repository.ref, branch)
    if tip is None:
        return None
    target = Target(repository.ref, branch, tip.sha, repository.merge_methods)
    return await read_files(runtime, target)


async def future_override(
    runtime: Runtime, repository: RepositoryRecord, branch: str
) -> Override | None:
    """Return the required statuses that the file will add to a queue that is to be made."""
    reading = await future_reading(runtime, repository, branch)
    return None if reading is None else required_by(reading)


def with_file(queue: MergeQueue, reading: Reading) -> MergeQueue:
    """Return a new queue with the settings of the file over its own."""
    file = file_of(reading, None)
    if not reading.settings:
        return replace(queue, file=file)
    config = changed(queue.config, reading.settings)
    return replace(queue, config=config, own_config=queue.config, file=file)


class FilesRead(LRUCache[int, tuple[str, str]]):
    """Branch and commit at which this process has read the files last, by queue."""

    def __init__(self) -> None:
        super().__init__(QUEUES_MAX)


async def look(runtime: Runtime, queue: QueueRef, *, is_touched: bool = False) -> None:
    """Read the files at the target's tip and report what differs; once for each commit.

    `is_touched`: a push may have changed them. Raises the provider's errors.
    """
    value = await turn.value(runtime, queue.id)
    known = runtime.memory.of(FilesRead).get(queue.id)
    if not is_touched and value.tip is not None and (queue.branch, value.tip.sha) == known:
        return
    tip = await runtime.providers[queue.repo.host].tip(queue.repo, queue.branch)
    if tip is None or (queue.branch, tip.sha) == known:
        return
    repository = await runtime.store.read(access.repository, queue.repository_id)
    target = Target(queue.repo, queue.branch, tip.sha, repository.merge_methods)
    reading = await read_files(runtime, target)
    inputs = await _inputs(runtime, queue, reading)
    if inputs:
        await turn.take(runtime, queue.id, inputs)
        log.info("repository_file_read", queue=queue.id, faults=len(reading.faults))
    runtime.memory.of(FilesRead)[queue.id] = (queue.branch, tip.sha)


async def _inputs(runtime: Runtime, queue: QueueRef, reading: Reading) -> list[Input]:
    value = await turn.value(runtime, queue.id)
    if value.file is None and not reading.exists:
        return []
    if value.file is not None and value.file.digest == reading.digest:
        return []
    new = with_file(replace(value, config=value.own_config or value.config), reading)
    resolved = await requirements.resolve(
        runtime, queue.repo, queue.branch, override_of(reading, value), new
    )
    reason = await _test_branch_reason(runtime, queue, value, reading)
    settings = None if reading.faults else reading.settings
    report = RepositoryFileRead(file_of(reading, value.file), settings, reason)
    return [report, *requirements.reports(value, resolved)]


async def _test_branch_reason(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, reading: Reading
) -> str | None:
    """Return the reason for the kind of test branch if the file sets it, or no longer does."""
    was_set = value.file is not None and vehicles.SETTING in value.file.names
    given = reading.settings.get(vehicles.SETTING)
    if reading.faults or (given is None and not was_set):
        return None
    if given is None and vehicles.SETTING in value.chosen:
        given = (value.own_config or QueueConfig()).create_prs_for_testing_branches
    choice = await vehicles.choose(runtime, queue.repo, queue.branch, reading.commit, given)
    return choice.reason
