"""GitHub behind the provider port: each verb with the priority of its calls.

An answer that cannot be read becomes `Unavailable` where the verb may be repeated, and
`OutcomeUnknown` where it may not.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from datetime import date, datetime, timedelta

from bot.github import (
    ci_runs,
    comments,
    files,
    installations,
    limits,
    people,
    refs,
    testbranches,
    tickets,
    translate,
    workflows,
)
from bot.github.artifacts import Artifacts, Downloads
from bot.github.checks import Reports
from bot.github.client import GitHubClient, RepositoryClient
from bot.github.landing import Landing
from bot.github.notices import Notices
from bot.github.options import GitHubOptions
from bot.github.pacing import Priority
from bot.github.protection import Protection
from bot.github.pull_requests import PullRequests
from bot.github.reading import Unreadable
from bot.github.translate import OwnApp
from service.clock import Clock
from service.provider.archives import Archive, NoArchive
from service.provider.ci import Artifact, CiJob, CiRun, PullRequestSource
from service.provider.errors import OutcomeUnknown, ProviderError, Unavailable
from service.provider.signals import Delivery, Signal, Where
from service.provider.tickets import Ticket, TicketRequest
from service.provider.trees import (
    Change,
    Different,
    Disjoint,
    Overlapping,
    Same,
    TreePaths,
    Unproven,
)
from service.provider.values import (
    AccessLevel,
    AdvanceRequest,
    BuildRequest,
    BuildResult,
    ChangedFiles,
    Checks,
    CommentsRead,
    Commit,
    FailedDelivery,
    LandStop,
    Merged,
    MergeRequest,
    Notice,
    NotPossible,
    PullRequest,
    Reaction,
    Reply,
    Repository,
    Required,
    VehicleAdvice,
    VehicleRef,
)
from service.telemetry import SILENT, Meter
from service.vocabulary import Actor, RepoRef, Sha


class GitHubProvider:
    """One GitHub host. Create it inside the running event loop.

    `service/provider/port.py` documents each verb, `service/provider/errors.py` the errors.
    """

    def __init__(self, options: GitHubOptions, clock: Clock, telemetry: Meter = SILENT) -> None:
        self._clock = clock
        self._options = options
        self._github = GitHubClient(options, clock, telemetry)
        self._artifacts = Artifacts(Downloads(options))
        self._protection = Protection(clock, options.app_id)
        self._reports = Reports(clock, options.app_id)
        self._notices = Notices(options.app_id)
        self._pulls = PullRequests(self._protection, options.app_id)
        self._landing = Landing(self._pulls, self._protection, self._notices)

    def signals_of(self, delivery: Delivery) -> tuple[Signal, ...]:
        """Return the signals of a delivery; see `translate.signals_of`.

        Until an answer has contained the App's slug, our own pushes look like those of another
        bot, which only costs a read. Raises ProviderError when a field we need is missing.
        """
        try:
            return translate.signals_of(delivery, self._own())
        except Unreadable as failure:
            raise ProviderError(f"{delivery.event} lacks something: {failure}.") from failure

    def _own(self) -> OwnApp:
        return OwnApp(self._options.app_id, self._github.tokens.slug or "")

    async def repositories(self) -> Sequence[Repository]:
        with self._reading():
            return await installations.repositories(self._github)

    async def repository(self, ref: RepoRef) -> Repository:
        with self._reading():
            return await installations.repository(self._at(ref, Priority.VERDICT))

    async def pull_request(self, repo: RepoRef, number: int) -> PullRequest:
        with self._reading():
            return await self._pulls.pull_request(self._at(repo, Priority.VERDICT), number)

    async def pull_requests(
        self, repo: RepoRef, numbers: Sequence[int]
    ) -> Mapping[int, PullRequest | None]:
        with self._reading():
            return await self._pulls.pull_requests(self._at(repo, Priority.SWEEP), numbers)

    async def open_pull_requests(self, repo: RepoRef, base: str) -> Sequence[tuple[int, Sha]]:
        with self._reading():
            return await self._pulls.open_pull_requests(self._at(repo, Priority.SWEEP), base)

    async def changed_files(self, repo: RepoRef, number: int) -> ChangedFiles:
        with self._reading():
            return await self._pulls.changed_files(self._at(repo, Priority.VERDICT), number)

    async def access(self, repo: RepoRef, actor: Actor) -> AccessLevel:
        with self._reading():
            return await people.access(self._at(repo, Priority.ANSWER), actor)

    async def read_file(
        self, repo: RepoRef, path: str, commit: Sha, bytes_max: int
    ) -> bytes | None:
        with self._reading():
            return await files.read_file(self._at(repo, Priority.SWEEP), path, commit, bytes_max)

    async def vehicle_advice(self, repo: RepoRef, branch: str, commit: Sha) -> VehicleAdvice:
        with self._reading():
            return await workflows.advice(self._at(repo, Priority.ANSWER), branch, commit)

    async def tree_paths(self, repo: RepoRef, commit: Sha) -> TreePaths:
        with self._reading():
            return await files.tree_paths(self._at(repo, Priority.SWEEP), commit)

    async def required(self, repo: RepoRef, branch: str) -> Required:
        with self._reading():
            return await self._protection.required(self._at(repo, Priority.VERDICT), branch)

    async def forget_rules(self, repo: RepoRef, *, keeps_queue: bool = False) -> None:
        self._protection.forget(repo, keeps_queue=keeps_queue)

    async def forget_access(self, repo: RepoRef) -> None:
        self._github.tokens.drop(repo)

    async def checks(self, repo: RepoRef, sha: Sha, *, skipped_pass: bool) -> Checks:
        client = self._at(repo, Priority.VERDICT)
        with self._reading():
            return await self._reports.checks(client, sha, skipped_pass=skipped_pass)

    async def tip(self, repo: RepoRef, branch: str) -> Commit | None:
        client = self._at(repo, Priority.VERDICT)
        with self._reading():
            return await refs.read_tip(client, branch)

    async def commit(self, repo: RepoRef, sha: Sha) -> Commit | None:
        client = self._at(repo, Priority.VERDICT)
        with self._reading():
            return await refs.read_commit(client, sha)

    async def contains(self, repo: RepoRef, ancestor: Sha, commit: Sha) -> bool:
        with self._reading():
            return await refs.is_ancestor(self._at(repo, Priority.VERDICT), ancestor, commit)

    async def build(self, request: BuildRequest) -> BuildResult:
        with self._reading():
            client = self._at(request.repo, Priority.BUILD)
            return await testbranches.build(client, self._pulls, request)

    async def discard(self, repo: RepoRef, branch: str) -> None:
        with self._reading():
            await testbranches.discard(self._at(repo, Priority.BUILD), branch)

    async def restore(self, repo: RepoRef, branch: str, sha: Sha) -> None:
        with self._reading():
            await testbranches.restore(self._at(repo, Priority.BUILD), branch, sha)

    async def vehicles(self, repo: RepoRef) -> Sequence[VehicleRef]:
        with self._reading():
            return await testbranches.vehicles(self._at(repo, Priority.SWEEP))

    async def merge(self, request: MergeRequest) -> Merged | LandStop:
        with self._writing():
            return await self._landing.merge(self._at(request.repo, Priority.LANDING), request)

    async def merged(self, request: MergeRequest) -> Merged | None:
        with self._reading():
            return await self._landing.merged(self._at(request.repo, Priority.LANDING), request)

    async def advance(self, request: AdvanceRequest) -> Merged | LandStop:
        client = self._at(request.repo, Priority.LANDING)
        with self._writing():
            return await self._landing.advance(client, request)

    async def advanced(self, request: AdvanceRequest) -> Merged | None:
        client = self._at(request.repo, Priority.LANDING)
        with self._reading():
            return await self._landing.advanced(client, request)

    async def same_change(
        self, repo: RepoRef, tested: Change, landed: Change
    ) -> Same | Different | Unproven:
        with self._reading():
            return await files.same_change(self._at(repo, Priority.LANDING), tested, landed)

    async def overlap(
        self, repo: RepoRef, one: Change, other: Change
    ) -> Disjoint | Overlapping | Unproven:
        with self._reading():
            return await files.overlap(self._at(repo, Priority.LANDING), one, other)

    async def settle_merged(self, repo: RepoRef, number: int, head_sha: Sha, commit: Sha) -> bool:
        client = self._at(repo, Priority.NOTICE)
        with self._reading():
            return await self._landing.settle_merged(client, number, head_sha, commit)

    async def say(self, repo: RepoRef, notice: Notice) -> str | None:
        is_answer = isinstance(notice, Reply | Reaction)
        client = self._at(repo, Priority.ANSWER if is_answer else Priority.NOTICE)
        with self._reading():
            return await self._notices.say(client, notice)

    async def rerun(self, repo: RepoRef, sha: Sha, names: Sequence[str]) -> NotPossible | None:
        with self._reading():
            return await ci_runs.rerun(self._at(repo, Priority.BUILD), sha, names)

    async def stop_ci(self, repo: RepoRef, sha: Sha) -> NotPossible | None:
        with self._reading():
            return await ci_runs.stop_ci(self._at(repo, Priority.BUILD), sha)

    async def ci_run(self, repo: RepoRef, run_id: str, attempt: int | None = None) -> CiRun | None:
        with self._reading():
            return await ci_runs.ci_run(self._at(repo, Priority.ANSWER), run_id, attempt)

    async def claimed_run(self, repo: RepoRef, run_id: str) -> CiRun | None:
        with self._reading():
            return await ci_runs.claimed_run(self._at(repo, Priority.ANONYMOUS), run_id)

    async def claimed_source(self, repo: RepoRef, number: int) -> PullRequestSource | None:
        with self._reading():
            return await ci_runs.claimed_source(self._at(repo, Priority.ANONYMOUS), number)

    async def ci_runs(self, repo: RepoRef, since: date) -> Sequence[CiRun]:
        with self._reading():
            return await ci_runs.ci_runs(self._at(repo, Priority.SWEEP), since)

    async def ci_jobs(self, repo: RepoRef, run_id: str, attempt: int) -> Sequence[CiJob]:
        with self._reading():
            return await ci_runs.ci_jobs(self._at(repo, Priority.NOTICE), run_id, attempt)

    async def ci_artifacts(self, repo: RepoRef, run_id: str) -> Sequence[Artifact]:
        with self._reading():
            return await ci_runs.ci_artifacts(self._at(repo, Priority.NOTICE), run_id)

    def ci_artifact(
        self, repo: RepoRef, artifact: Artifact
    ) -> AbstractAsyncContextManager[Archive | NoArchive]:
        return self._artifacts.opened(self._at(repo, Priority.NOTICE), artifact)

    async def comments_since(self, where: Where, since: datetime) -> CommentsRead:
        with self._reading():
            client = self._at(where.ref, Priority.SWEEP)
            return await comments.since(client, where, since, self._own())

    async def failed_deliveries(self, since: datetime) -> Sequence[FailedDelivery]:
        with self._reading():
            return await installations.failed_deliveries(self._github, since)

    async def redeliver(self, attempt: str) -> None:
        with self._reading():
            await installations.redeliver(self._github, attempt)

    async def ticket(self, repo: RepoRef, marker: str, number: int | None) -> Ticket | None:
        client = self._at(repo, Priority.NOTICE)
        with self._reading():
            return await tickets.ticket(client, self._options.app_id, marker, number)

    async def put_ticket(self, repo: RepoRef, request: TicketRequest) -> Ticket:
        with self._writing():
            return await tickets.put(self._at(repo, Priority.NOTICE), request)

    async def no_tickets(self, repo: RepoRef) -> NotPossible | None:
        with self._reading():
            return await tickets.no_tickets(self._at(repo, Priority.ANSWER))

    async def close(self) -> None:
        await self._github.close()
        await self._artifacts.close()

    def _at(self, repo: RepoRef, priority: Priority) -> RepositoryClient:
        return RepositoryClient(self._github, repo, priority)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Make `Unavailable` of an unreadable answer: the verb may be repeated."""
        try:
            yield
        except Unreadable as failure:
            later = self._clock.now() + timedelta(seconds=limits.UNAVAILABLE_S)
            raise Unavailable(f"GitHub's answer lacks something: {failure}.", later) from failure

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Make `OutcomeUnknown` of an unreadable answer: the verb must not be repeated."""
        try:
            yield
        except Unreadable as failure:
            raise OutcomeUnknown(f"GitHub's answer lacks something: {failure}.") from failure
