"""The repository at the provider: its target branch, its files, and the calls that read them."""

import asyncio
import atexit
from collections.abc import Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from bot.github import workflows
from service.mergequeue.operations import repository_file, repository_files
from service.mergequeue.operations.repository_files import Reading, Target
from service.parser_process import Job
from service.provider.values import Commit, Known, Required, Unreadable, VehicleAdvice
from service.runtime import Runtime
from service.vocabulary import MergeMethod, RepoRef, RequiredName, Sha
from tests.mergequeue import trees

T = TypeVar("T")

# One loop for all histories of this process: a new one costs as much as a history.
_RUNNER = asyncio.Runner()
atexit.register(_RUNNER.close)

BRANCH = "main"
REPO = RepoRef("github.test", "octo", "widgets")
CHAIN_MAX = 250


@dataclass(frozen=True)
class Settings:
    """What `.github/headgate.yml` says of the queue; a broken one says nothing that counts."""

    required: tuple[str, ...] | None = None
    optional: tuple[str, ...] = ()
    is_broken: bool = False

    @property
    def text(self) -> str:
        """The file."""
        lines = ["version: 1", "queues:", f"  {BRANCH}:", f"    optionalStatuses: {_list(self)}"]
        if self.required is not None:
            lines.append(f"    requiredStatuses: [{', '.join(self.required)}]")
        return "\n".join([*lines, "    concurency: 7"] if self.is_broken else lines)


def _list(settings: Settings) -> str:
    return f"[{', '.join(settings.optional)}]"


@dataclass(frozen=True)
class Workflow:
    """What the workflow file says: `elsewhere` are jobs that run in another queue alone."""

    on_push: bool = True
    elsewhere: frozenset[str] = frozenset()

    def text(self, names: Iterable[str]) -> str:
        """The file, with a job for each name."""
        event = f"push: {{branches: ['{workflows.PATTERN}']}}" if self.on_push else "pull_request:"
        lines = ["on:", f"  {event}", "jobs:"]
        for name in names:
            lines += [f"  {name}:", "    runs-on: any", "    steps: [{run: make}]"]
            if name in self.elsewhere:
                lines.append("    if: github.event_name == 'merge_group'")
        return "\n".join(lines)


@dataclass(frozen=True)
class Files:
    """The files of a commit that say something to the queue."""

    settings: Settings | None = None
    workflow: Workflow = field(default_factory=Workflow)

    def with_change(self, change: "Change | None") -> "Files":
        """The files after a pull request that changes some of them."""
        if change is None:
            return self
        settings = self.settings if change.settings is None else change.settings
        return Files(settings, change.workflow or self.workflow)


@dataclass(frozen=True)
class Change:
    """What a pull request does to these files; None: it leaves a file as it is."""

    settings: Settings | None = None
    workflow: Workflow | None = None


@dataclass
class Branch(trees.Target):
    """The target branch, with parents and files of its commits."""

    parents: dict[Sha, Sha] = field(default_factory=dict)
    files: dict[Sha, Files] = field(default_factory=dict)

    @property
    def now(self) -> Files:
        """The files at its tip."""
        return self.files.get(self.tip.sha, Files())

    def move(self, tree: trees.Tree, commit: Sha | None = None) -> Sha:
        """Add a commit, which has the files of the one before."""
        before, files = self.tip.sha, self.now
        new = super().move(tree, commit)
        self.parents[new], self.files[new] = before, files
        return new

    def change(self, change: Change | None) -> None:
        """Change files of the commit at the tip."""
        self.files[self.tip.sha] = self.now.with_change(change)

    def go_back(self, commit: Sha) -> None:
        """Somebody moves the branch back to an earlier commit."""
        self.commits.append((commit, self.tree_of(commit)))

    def chain(self, expected: Sha) -> tuple[Commit, ...] | None:
        """The commits from the tip down to the expected parent, without it."""
        found: list[Commit] = []
        at = self.tip.sha
        while at != expected:
            if at not in self.parents or len(found) == CHAIN_MAX:
                return None
            parent = self.parents[at]
            found.append(Commit(at, trees.tree_id(self.tree_of(at)), (parent,)))
            at = parent
        return tuple(found)


@dataclass
class Github:
    """The provider as the rules about files and required names ask it.

    `heads` are the heads of pull requests that change files, the newest last.
    """

    target: Branch
    names: tuple[str, ...]
    required_names: tuple[RequiredName, ...] = ()
    is_unreadable: bool = False
    heads: dict[Sha, Files] = field(default_factory=dict)

    @property
    def newest_head(self) -> Sha | None:
        """The head that was pushed last."""
        return next(reversed(self.heads), None)

    def files_of(self, commit: Sha) -> Files:
        """The files at a commit of the target or at a head."""
        return self.heads.get(commit) or self.target.files.get(commit, Files())

    async def read_file(self, _repo: RepoRef, path: str, commit: Sha, _max: int) -> bytes | None:
        """A file at a commit."""
        settings = self.files_of(commit).settings
        is_ours = path == repository_file.PATH and settings is not None
        return settings.text.encode() if is_ours and settings else None

    async def required(self, _repo: RepoRef, _branch: str, *, is_beside: bool = False) -> Required:
        """What the rules of the branch require."""
        if self.is_unreadable:
            return Unreadable("GitHub answers 500")
        return Known(self.required_names, None, ())

    async def vehicle_advice(self, _repo: RepoRef, branch: str, commit: Sha) -> VehicleAdvice:
        """What the workflow files at a commit need."""
        text = self.files_of(commit).workflow.text(self.names)
        return workflows.advise({"ci.yml": text}, branch)


class Parsers:
    """The parsers, without processes."""

    async def run(self, _repo: RepoRef, job: Job, _clock: object) -> Iterator[object]:
        """The pieces that a parser makes of a file."""
        return iter(job.parse(*job.arguments))


def runtime_of(github: Github) -> Runtime:
    """What the rules about files ask of the runtime; the rest is not reached."""
    parts = SimpleNamespace(providers={REPO.host: github}, parsers=Parsers(), clock=None)
    return cast(Runtime, parts)


def reading_of(runtime: Runtime, commit: Sha) -> Reading:
    """The repository's file of the target branch, as the service reads it."""
    target = Target(REPO, BRANCH, commit, frozenset(MergeMethod))
    return _RUNNER.run(repository_files.read_files(runtime, target))


def at_once(call: Coroutine[Any, Any, T]) -> T:
    """The result of a call that never waits: the provider answers from memory."""
    try:
        call.send(None)
    except StopIteration as done:
        return cast(T, done.value)
    raise AssertionError("it waits")
