"""GitHub behind the provider port: each verb, its priority, and what nonsense becomes.

Decides nothing. Which verb waits before which is said here once (GITHUB.md 2.5).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from datetime import date, datetime, timedelta

from bot.github import (
    ci_runs,
    comments,
    commits,
    files,
    installations,
    limits,
    people,
    tickets,
    translate,
    trees,
    workflows,
)
from bot.github.artifacts import Artifacts
from bot.github.checks import Reports
from bot.github.client import Client
from bot.github.downloads import Downloads
from bot.github.fields import Unreadable
from bot.github.landing import Landing
from bot.github.line import Line
from bot.github.notices import Notices
from bot.github.options import GitHubOptions
from bot.github.pacing import Priority
from bot.github.protection import Protection
from bot.github.pull_requests import PullRequests
from bot.github.remembered import Remembered
from bot.github.testbranches import TestBranches
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
    """One GitHub host. Made inside the running loop; errors: `provider/errors.py`."""

    def __init__(self, options: GitHubOptions, clock: Clock, telemetry: Meter = SILENT) -> None:
        self._clock = clock
        self._options = options
        self._client = Client(options, clock, telemetry)
        self._artifacts = Artifacts(Downloads(options))
        self._remembered = Remembered()
        self._protection = Protection(clock, options.app_id)
        self._reports = Reports(clock, options.app_id)
        self._notices = Notices(options.app_id)
        self._pulls = PullRequests(self._remembered, self._protection, options.app_id)
        self._branches = TestBranches(self._remembered, self._pulls)
        self._landing = Landing(self._remembered, self._pulls, self._protection, self._notices)

    def signals_of(self, delivery: Delivery) -> tuple[Signal, ...]:
        """What a delivery tells; see `translate.signals_of`.

        Until some answer told our name in addresses, our own pushes look like another bot's,
        which only costs a read. Raises ProviderError when a field we need is not there.
        """
        try:
            return translate.signals_of(delivery, self._own())
        except Unreadable as failure:
            raise ProviderError(f"{delivery.event} lacks something: {failure}.") from failure

    def _own(self) -> OwnApp:
        return OwnApp(self._options.app_id, self._client.tokens.slug or "")

    async def repositories(self) -> Sequence[Repository]:
        """See `Provider.repositories`."""
        with self._reading():
            return await installations.repositories(self._client)

    async def repository(self, ref: RepoRef) -> Repository:
        """See `Provider.repository`."""
        with self._reading():
            return await installations.repository(self._line(ref, Priority.VERDICT))

    async def pull_request(self, repo: RepoRef, number: int) -> PullRequest:
        """See `Provider.pull_request`."""
        with self._reading():
            return await self._pulls.pull_request(self._line(repo, Priority.VERDICT), number)

    async def pull_requests(
        self, repo: RepoRef, numbers: Sequence[int]
    ) -> Mapping[int, PullRequest | None]:
        """See `Provider.pull_requests`."""
        with self._reading():
            return await self._pulls.pull_requests(self._line(repo, Priority.SWEEP), numbers)

    async def open_pull_requests(self, repo: RepoRef, base: str) -> Sequence[tuple[int, Sha]]:
        """See `Provider.open_pull_requests`."""
        with self._reading():
            return await self._pulls.open_pull_requests(self._line(repo, Priority.SWEEP), base)

    async def changed_files(self, repo: RepoRef, number: int) -> ChangedFiles:
        """See `Provider.changed_files`."""
        with self._reading():
            return await self._pulls.changed_files(self._line(repo, Priority.VERDICT), number)

    async def access(self, repo: RepoRef, actor: Actor) -> AccessLevel:
        """See `Provider.access`."""
        with self._reading():
            return await people.access(self._line(repo, Priority.ANSWER), actor)

    async def read_file(
        self, repo: RepoRef, path: str, commit: Sha, bytes_max: int
    ) -> bytes | None:
        """See `Provider.read_file`."""
        with self._reading():
            return await files.read_file(self._line(repo, Priority.SWEEP), path, commit, bytes_max)

    async def vehicle_advice(self, repo: RepoRef, branch: str, commit: Sha) -> VehicleAdvice:
        """See `Provider.vehicle_advice`."""
        with self._reading():
            return await workflows.advice(self._line(repo, Priority.ANSWER), branch, commit)

    async def tree_paths(self, repo: RepoRef, commit: Sha) -> TreePaths:
        """See `Provider.tree_paths`."""
        with self._reading():
            return await files.tree_paths(self._line(repo, Priority.SWEEP), commit)

    async def required(self, repo: RepoRef, branch: str) -> Required:
        """See `Provider.required`."""
        with self._reading():
            return await self._protection.required(self._line(repo, Priority.VERDICT), branch)

    async def forget_rules(self, repo: RepoRef, *, keeps_queue: bool = False) -> None:
        """See `Provider.forget_rules`."""
        self._protection.forget(repo, keeps_queue=keeps_queue)

    async def forget_access(self, repo: RepoRef) -> None:
        """See `Provider.forget_access`."""
        self._client.tokens.drop(repo)

    async def checks(self, repo: RepoRef, sha: Sha, *, skipped_pass: bool) -> Checks:
        """See `Provider.checks`."""
        line = self._line(repo, Priority.VERDICT)
        with self._reading():
            return await self._reports.checks(line, sha, skipped_pass=skipped_pass)

    async def tip(self, repo: RepoRef, branch: str) -> Commit | None:
        """See `Provider.tip`."""
        line = self._line(repo, Priority.VERDICT)
        with self._reading():
            return await commits.tip(line, self._remembered, branch)

    async def commit(self, repo: RepoRef, sha: Sha) -> Commit | None:
        """See `Provider.commit`."""
        line = self._line(repo, Priority.VERDICT)
        with self._reading():
            return await commits.commit(line, self._remembered, sha)

    async def contains(self, repo: RepoRef, ancestor: Sha, commit: Sha) -> bool:
        """See `Provider.contains`."""
        with self._reading():
            return await commits.contains(self._line(repo, Priority.VERDICT), ancestor, commit)

    async def build(self, request: BuildRequest) -> BuildResult:
        """See `Provider.build`."""
        with self._reading():
            return await self._branches.build(self._line(request.repo, Priority.BUILD), request)

    async def discard(self, repo: RepoRef, branch: str) -> None:
        """See `Provider.discard`."""
        with self._reading():
            await self._branches.discard(self._line(repo, Priority.BUILD), branch)

    async def restore(self, repo: RepoRef, branch: str, sha: Sha) -> None:
        """See `Provider.restore`."""
        with self._reading():
            await self._branches.restore(self._line(repo, Priority.BUILD), branch, sha)

    async def vehicles(self, repo: RepoRef) -> Sequence[VehicleRef]:
        """See `Provider.vehicles`."""
        with self._reading():
            return await self._branches.vehicles(self._line(repo, Priority.SWEEP))

    async def merge(self, request: MergeRequest) -> Merged | LandStop:
        """See `Provider.merge`."""
        with self._writing():
            return await self._landing.merge(self._line(request.repo, Priority.LANDING), request)

    async def merged(self, request: MergeRequest) -> Merged | None:
        """See `Provider.merged`."""
        with self._reading():
            return await self._landing.merged(self._line(request.repo, Priority.LANDING), request)

    async def advance(self, request: AdvanceRequest) -> Merged | LandStop:
        """See `Provider.advance`."""
        line = self._line(request.repo, Priority.LANDING)
        with self._writing():
            return await self._landing.advance(line, request)

    async def advanced(self, request: AdvanceRequest) -> Merged | None:
        """See `Provider.advanced`."""
        line = self._line(request.repo, Priority.LANDING)
        with self._reading():
            return await self._landing.advanced(line, request)

    async def same_change(
        self, repo: RepoRef, tested: Change, landed: Change
    ) -> Same | Different | Unproven:
        """See `Provider.same_change`."""
        with self._reading():
            return await trees.same_change(self._line(repo, Priority.LANDING), tested, landed)

    async def overlap(
        self, repo: RepoRef, one: Change, other: Change
    ) -> Disjoint | Overlapping | Unproven:
        """See `Provider.overlap`."""
        with self._reading():
            return await trees.overlap(self._line(repo, Priority.LANDING), one, other)

    async def settle_merged(self, repo: RepoRef, number: int, head_sha: Sha, commit: Sha) -> bool:
        """See `Provider.settle_merged`."""
        line = self._line(repo, Priority.NOTICE)
        with self._reading():
            return await self._landing.settle_merged(line, number, head_sha, commit)

    async def say(self, repo: RepoRef, notice: Notice) -> str | None:
        """See `Provider.say`."""
        is_answer = isinstance(notice, Reply | Reaction)
        line = self._line(repo, Priority.ANSWER if is_answer else Priority.NOTICE)
        with self._reading():
            return await self._notices.say(line, notice)

    async def rerun(self, repo: RepoRef, sha: Sha, names: Sequence[str]) -> NotPossible | None:
        """See `Provider.rerun`."""
        with self._reading():
            return await ci_runs.rerun(self._line(repo, Priority.BUILD), sha, names)

    async def stop_ci(self, repo: RepoRef, sha: Sha) -> NotPossible | None:
        """See `Provider.stop_ci`."""
        with self._reading():
            return await ci_runs.stop_ci(self._line(repo, Priority.BUILD), sha)

    async def ci_run(self, repo: RepoRef, run_id: str, attempt: int | None = None) -> CiRun | None:
        """See `Provider.ci_run`."""
        with self._reading():
            return await ci_runs.ci_run(self._line(repo, Priority.ANSWER), run_id, attempt)

    async def claimed_run(self, repo: RepoRef, run_id: str) -> CiRun | None:
        """See `Provider.claimed_run`."""
        with self._reading():
            return await ci_runs.claimed_run(self._line(repo, Priority.STRANGER), run_id)

    async def claimed_source(self, repo: RepoRef, number: int) -> PullRequestSource | None:
        """See `Provider.claimed_source`."""
        with self._reading():
            return await ci_runs.claimed_source(self._line(repo, Priority.STRANGER), number)

    async def ci_runs(self, repo: RepoRef, since: date) -> Sequence[CiRun]:
        """See `Provider.ci_runs`."""
        with self._reading():
            return await ci_runs.ci_runs(self._line(repo, Priority.SWEEP), since)

    async def ci_jobs(self, repo: RepoRef, run_id: str, attempt: int) -> Sequence[CiJob]:
        """See `Provider.ci_jobs`."""
        with self._reading():
            return await ci_runs.ci_jobs(self._line(repo, Priority.NOTICE), run_id, attempt)

    async def ci_artifacts(self, repo: RepoRef, run_id: str) -> Sequence[Artifact]:
        """See `Provider.ci_artifacts`."""
        with self._reading():
            return await ci_runs.ci_artifacts(self._line(repo, Priority.NOTICE), run_id)

    def ci_artifact(
        self, repo: RepoRef, artifact: Artifact
    ) -> AbstractAsyncContextManager[Archive | NoArchive]:
        """See `Provider.ci_artifact`."""
        return self._artifacts.opened(self._line(repo, Priority.NOTICE), artifact)

    async def comments_since(self, where: Where, since: datetime) -> CommentsRead:
        """See `Provider.comments_since`."""
        with self._reading():
            line = self._line(where.ref, Priority.SWEEP)
            return await comments.since(line, where, since, self._own())

    async def failed_deliveries(self, since: datetime) -> Sequence[FailedDelivery]:
        """See `Provider.failed_deliveries`."""
        with self._reading():
            return await installations.failed_deliveries(self._client, since)

    async def redeliver(self, attempt: str) -> None:
        """See `Provider.redeliver`."""
        with self._reading():
            await installations.redeliver(self._client, attempt)

    async def ticket(self, repo: RepoRef, marker: str, number: int | None) -> Ticket | None:
        """See `Provider.ticket`."""
        line = self._line(repo, Priority.NOTICE)
        with self._reading():
            return await tickets.ticket(line, self._options.app_id, marker, number)

    async def put_ticket(self, repo: RepoRef, request: TicketRequest) -> Ticket:
        """See `Provider.put_ticket`."""
        with self._writing():
            return await tickets.put(self._line(repo, Priority.NOTICE), request)

    async def no_tickets(self, repo: RepoRef) -> NotPossible | None:
        """See `Provider.no_tickets`."""
        with self._reading():
            return await tickets.no_tickets(self._line(repo, Priority.ANSWER))

    async def close(self) -> None:
        """See `Provider.close`."""
        await self._client.close()
        await self._artifacts.close()

    def _line(self, repo: RepoRef, priority: Priority) -> Line:
        return Line(self._client, repo, priority)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """An answer without what we need is no answer; the verb may be repeated."""
        try:
            yield
        except Unreadable as failure:
            later = self._clock.now() + timedelta(seconds=limits.UNAVAILABLE_S)
            raise Unavailable(f"GitHub's answer lacks something: {failure}.", later) from failure

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """The same for what must not be repeated."""
        try:
            yield
        except Unreadable as failure:
            raise OutcomeUnknown(f"GitHub's answer lacks something: {failure}.") from failure
