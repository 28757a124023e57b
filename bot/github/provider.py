"""GitHub behind the provider port: each verb with the priority of its calls.

An answer that cannot be read becomes `Unavailable` where the verb may be repeated, and
`OutcomeUnknown` where it may not.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from bot.github import (
    chains,
    ci_runs,
    comments,
    files,
    installations,
    limits,
    own_work,
    people,
    refs,
    reverts,
    testbranches,
    tickets,
    translate,
    workflows,
)
from bot.github.artifacts import Artifacts
from bot.github.audits import audits
from bot.github.checks import Reports, read_judged
from bot.github.client import GitHubClient, RepositoryClient
from bot.github.comments import LabelReader
from bot.github.gitbuild.builder import GitBuilder
from bot.github.gitbuild.mirror import Mirrors
from bot.github.landing import Landing
from bot.github.notices import Notices
from bot.github.options import BuildMethod, GitHubOptions, MirrorOptions
from bot.github.pacing import Priority
from bot.github.protection import Protection
from bot.github.pull_requests import PullRequests
from bot.github.reading import Unreadable
from bot.github.translate import OwnApp
from service.clock import Clock
from service.landed_work import WorkJudged
from service.parsers import Parsers
from service.provider.archives import NoArchive
from service.provider.audits import AuditSubject, DryTest, DryTestRequest, Finding
from service.provider.budget import Budget
from service.provider.ci import Artifact, CiJob, CiProgress, CiRun, Judged, PullRequestSource
from service.provider.ci_plans import CiPlan
from service.provider.errors import OutcomeUnknown, ProviderError, Unavailable
from service.provider.labels import LabelChange, LabelRemoval, LabelReturn
from service.provider.overlaps import OverlapRequest, Overlaps
from service.provider.reverts import OpenedRevert, RevertRequest
from service.provider.signals import Delivery, FailedDelivery, PullRequestChanged, Signal, Where
from service.provider.stacks import MergedFrom, Stack
from service.provider.tickets import Ticket, TicketRequest
from service.provider.trees import (
    Different,
    Disjoint,
    Overlapping,
    Same,
    TreeChange,
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
    CommitAuthor,
    LandedByUs,
    LandedPull,
    LandStop,
    ListedPullRequest,
    Merged,
    MergeRequest,
    Notice,
    NotPossible,
    PullRequest,
    Reaction,
    Rehearsed,
    Reply,
    Repository,
    Required,
    StatusPosted,
    VehicleAdvice,
    VehicleRef,
)
from service.telemetry import SILENT, Meter
from service.troubles import Troubles
from service.vocabulary import Actor, RepoRef, Sha

NO_MIRRORS = MirrorOptions(BuildMethod.REST, Path(), 0)

P = ParamSpec("P")
T = TypeVar("T")


class GitHubProvider:
    """One GitHub host. Create it inside the running event loop.

    `service/provider/port.py` documents each verb, `service/provider/errors.py` the errors.
    """

    def __init__(
        self,
        options: GitHubOptions,
        clock: Clock,
        telemetry: Meter = SILENT,
        parsers: Parsers | None = None,
        troubles: Troubles | None = None,
    ) -> None:
        self._clock = clock
        self._options = options
        self._github = GitHubClient(options, clock, telemetry, parsers, troubles)
        self._artifacts = Artifacts(options)
        self._protection = Protection(clock, options.app_id)
        self._reports = Reports(clock, options.app_id)
        self._notices = Notices(options.app_id)
        self._pulls = PullRequests(self._protection, options.app_id)
        self._landing = Landing(self._pulls, self._protection, self._notices)
        chosen = options.mirrors or NO_MIRRORS
        mirrors = Mirrors(options.host, chosen, clock)
        readers = (self._pulls, self._protection)
        self._builder = GitBuilder(chosen, mirrors, readers, clock, telemetry)

    def signals_of(self, delivery: Delivery) -> tuple[Signal, ...]:
        """Return the signals of a delivery; see `translate.signals_of`.

        Until an answer has contained the App's slug, our own pushes look like those of another
        bot, which only costs a read. Raises ProviderError when a field we need is missing.
        """
        try:
            found = translate.signals_of(delivery, self._own())
        except Unreadable as failure:
            raise ProviderError(f"{delivery.event} lacks something: {failure}.") from failure
        for each in found:
            if isinstance(each, PullRequestChanged):
                self._note_stack(each, delivery)
        return found

    def _note_stack(self, changed: PullRequestChanged, delivery: Delivery) -> None:
        """Spare the read of its stack if the event shows none; GitHub refuses to merge a member."""
        repo, number = changed.where.ref, changed.number
        if delivery.action == "stacked":
            self._github.caches.keep_unstacked(repo, number, None)
        elif translate.shows_no_stack(delivery):
            self._github.caches.keep_unstacked(repo, number, changed.head)

    def _own(self) -> OwnApp:
        return OwnApp(self._options.app_id, self._github.tokens.slug or "")

    async def repositories(self) -> Sequence[Repository]:
        return await self._translated(installations.repositories(self._github))

    async def repository(self, ref: RepoRef) -> Repository:
        return await self._repeatable(installations.repository, ref, Priority.VERDICT)

    async def pull_request(
        self, repo: RepoRef, number: int, *, awaits_mergeability: bool = True
    ) -> PullRequest:
        read = self._pulls.pull_request if awaits_mergeability else self._pulls.pull_request_now
        return await self._repeatable(read, repo, Priority.VERDICT, number)

    async def pull_requests(
        self, repo: RepoRef, numbers: Sequence[int]
    ) -> Mapping[int, PullRequest | None]:
        return await self._repeatable(self._pulls.pull_requests, repo, Priority.SWEEP, numbers)

    async def open_pull_requests(self, repo: RepoRef, base: str) -> Sequence[ListedPullRequest]:
        return await self._repeatable(self._pulls.open_pull_requests, repo, Priority.SWEEP, base)

    async def commit_authors(self, repo: RepoRef, number: int) -> Sequence[CommitAuthor]:
        return await self._repeatable(people.commit_authors, repo, Priority.VERDICT, number)

    async def changed_files(self, repo: RepoRef, number: int) -> ChangedFiles:
        return await self._repeatable(self._pulls.changed_files, repo, Priority.VERDICT, number)

    async def access(self, repo: RepoRef, actor: Actor) -> AccessLevel:
        return await self._repeatable(people.access, repo, Priority.ANSWER, actor)

    async def read_file(
        self, repo: RepoRef, path: str, commit: Sha, bytes_max: int
    ) -> bytes | None:
        return await self._repeatable(
            files.read_file, repo, Priority.SWEEP, path, commit, bytes_max
        )

    async def vehicle_advice(self, repo: RepoRef, branch: str, commit: Sha) -> VehicleAdvice:
        return await self._repeatable(workflows.advice, repo, Priority.ANSWER, branch, commit)

    async def tree_paths(self, repo: RepoRef, commit: Sha) -> TreePaths:
        return await self._repeatable(files.tree_paths, repo, Priority.SWEEP, commit)

    async def required(self, repo: RepoRef, branch: str, *, is_beside: bool = False) -> Required:
        read = partial(self._protection.required, is_beside=is_beside)
        return await self._repeatable(read, repo, Priority.VERDICT, branch)

    async def forget_rules(self, repo: RepoRef, *, only_free: bool = False) -> None:
        self._protection.forget(repo, only_free=only_free)

    async def forget_access(self, repo: RepoRef) -> None:
        self._github.tokens.forget_name(repo)

    async def checks(self, repo: RepoRef, sha: Sha, *, skipped_pass: bool) -> Checks:
        return (await self.checks_of_many(repo, [sha], skipped_pass=skipped_pass))[sha]

    async def checks_of_many(
        self, repo: RepoRef, shas: Sequence[Sha], *, skipped_pass: bool
    ) -> Mapping[Sha, Checks]:
        return await self._repeatable(
            self._reports.checks, repo, Priority.VERDICT, shas, skipped_pass=skipped_pass
        )

    async def judged(self, repo: RepoRef, pull: PullRequest, checks: Checks) -> tuple[Judged, ...]:
        return await self._repeatable(read_judged, repo, Priority.VERDICT, pull, checks)

    async def tip(self, repo: RepoRef, branch: str) -> Commit | None:
        return await self._repeatable(refs.read_tip, repo, Priority.VERDICT, branch)

    async def new_name(self, repo: RepoRef, branch: str) -> str | None:
        return await self._repeatable(refs.read_new_name, repo, Priority.VERDICT, branch)

    async def commit(self, repo: RepoRef, sha: Sha) -> Commit | None:
        return await self._repeatable(refs.read_commit, repo, Priority.VERDICT, sha)

    async def contains(self, repo: RepoRef, ancestor: Sha, commit: Sha) -> bool:
        return await self._repeatable(refs.is_ancestor, repo, Priority.VERDICT, ancestor, commit)

    async def position(self, repo: RepoRef, sha: Sha) -> int | None:
        return await self._repeatable(refs.count_history, repo, Priority.ANSWER, sha)

    async def build(self, request: BuildRequest) -> BuildResult:
        return await self._repeatable(self._builder.build, request.repo, Priority.BUILD, request)

    async def overlaps(self, request: OverlapRequest) -> Overlaps | None:
        return await self._repeatable(self._builder.overlaps, request.repo, Priority.SWEEP, request)

    async def rehearse(self, request: BuildRequest) -> Rehearsed | None:
        return await self._repeatable(self._builder.rehearse, request.repo, Priority.BUILD, request)

    async def judge(self, request: BuildRequest) -> Mapping[int, WorkJudged]:
        return await self._repeatable(self._builder.judge, request.repo, Priority.BUILD, request)

    async def repeats_commits(self, repo: RepoRef, target: str) -> bool:
        return await self._repeatable(self._builder.repeats_commits, repo, Priority.BUILD, target)

    async def prepare(self, repo: RepoRef, target: str) -> None:
        self._builder.prepare(self._at(repo, Priority.SWEEP), target)

    async def discard(self, repo: RepoRef, branch: str) -> None:
        await self._repeatable(self._builder.discard, repo, Priority.BUILD, branch)

    async def restore(self, repo: RepoRef, branch: str, sha: Sha) -> None:
        await self._repeatable(testbranches.restore, repo, Priority.BUILD, branch, sha)

    async def vehicles(self, repo: RepoRef) -> Sequence[VehicleRef]:
        return await self._repeatable(testbranches.vehicles, repo, Priority.SWEEP)

    async def merge(self, request: MergeRequest) -> Merged | LandStop:
        done = await self._once(self._landing.merge, request.repo, Priority.LANDING, request)
        if isinstance(done, Merged):
            self._count_landed(request.repo, 1)
        return done

    async def merged(self, request: MergeRequest) -> Merged | None:
        return await self._repeatable(self._landing.merged, request.repo, Priority.LANDING, request)

    async def advance(self, request: AdvanceRequest) -> Merged | LandStop:
        done = await self._once(self._landing.advance, request.repo, Priority.LANDING, request)
        if isinstance(done, Merged):
            self._count_landed(request.repo, len(done.chain or ()))
        return done

    async def advanced(self, request: AdvanceRequest) -> Merged | None:
        return await self._repeatable(
            self._landing.advanced, request.repo, Priority.LANDING, request
        )

    async def same_change(
        self, repo: RepoRef, tested: TreeChange, landed: TreeChange
    ) -> Same | Different | Unproven:
        return await self._repeatable(files.same_change, repo, Priority.LANDING, tested, landed)

    async def overlap(
        self, repo: RepoRef, one: TreeChange, other: TreeChange
    ) -> Disjoint | Overlapping | Unproven:
        return await self._repeatable(files.overlap, repo, Priority.LANDING, one, other)

    async def settle_merged(self, repo: RepoRef, landed: LandedPull) -> bool:
        settle = self._landing.settle_merged
        return await self._repeatable(settle, repo, Priority.NOTICE, landed)

    async def landed_by_us(self, repo: RepoRef, number: int) -> LandedByUs | None:
        return await self._repeatable(own_work.landed, repo, Priority.VERDICT, number)

    async def shows_end(self, repo: RepoRef, sha: Sha, name: str, submission: str) -> bool:
        read, app_id = own_work.shows_end, self._options.app_id
        return await self._repeatable(read, repo, Priority.SWEEP, app_id, sha, name, submission)

    async def statuses_posted(
        self, repo: RepoRef, marker: str, since: datetime
    ) -> Sequence[StatusPosted]:
        read, app_id = own_work.statuses_posted, self._options.app_id
        return await self._repeatable(read, repo, Priority.SWEEP, app_id, marker, since)

    async def closed_pull_requests(
        self, repo: RepoRef, base: str, since: datetime
    ) -> Sequence[ListedPullRequest]:
        read = own_work.closed_pull_requests
        return await self._repeatable(read, repo, Priority.SWEEP, base, since)

    async def delete_head(self, repo: RepoRef, number: int, head_sha: Sha) -> NotPossible | None:
        return await self._repeatable(chains.delete, repo, Priority.SWEEP, number, head_sha)

    async def chain(self, repo: RepoRef, pull: PullRequest) -> Stack | None:
        return await self._repeatable(chains.find, repo, Priority.BUILD, pull)

    async def merged_from(self, repo: RepoRef, branch: str) -> MergedFrom | None:
        return await self._repeatable(chains.find_merged, repo, Priority.VERDICT, branch)

    async def dismisses_approvals(self, repo: RepoRef, branch: str) -> bool:
        rules = await self._repeatable(self._protection.rules, repo, Priority.VERDICT, branch)
        return rules.dismisses_approvals

    async def change_base(self, repo: RepoRef, number: int, branch: str) -> NotPossible | None:
        return await self._repeatable(chains.change_base, repo, Priority.LANDING, number, branch)

    async def say(self, repo: RepoRef, notice: Notice) -> str | None:
        if isinstance(notice, Reaction | LabelRemoval | LabelReturn):
            priority = Priority.ANSWER
        elif notice.is_final:
            priority = Priority.FINAL
        elif isinstance(notice, Reply):
            priority = Priority.ANSWER
        else:
            priority = Priority.REFRESH if notice.is_refresh else Priority.NOTICE
        return await self._repeatable(self._notices.say, repo, priority, notice)

    async def rerun(self, repo: RepoRef, sha: Sha, names: Sequence[str]) -> NotPossible | None:
        return await self._repeatable(ci_runs.rerun, repo, Priority.BUILD, sha, names)

    async def can_rerun(self, repo: RepoRef) -> bool:
        return await self._repeatable(ci_runs.can_rerun, repo, Priority.SWEEP)

    async def stop_ci(self, repo: RepoRef, sha: Sha) -> NotPossible | None:
        return await self._repeatable(ci_runs.stop_ci, repo, Priority.BUILD, sha)

    async def ci_run(self, repo: RepoRef, run_id: str, attempt: int | None = None) -> CiRun | None:
        return await self._repeatable(ci_runs.ci_run, repo, Priority.ANSWER, run_id, attempt)

    async def claimed_run(self, repo: RepoRef, run_id: str) -> CiRun | None:
        return await self._repeatable(ci_runs.claimed_run, repo, Priority.ANONYMOUS, run_id)

    async def claimed_source(self, repo: RepoRef, number: int) -> PullRequestSource | None:
        return await self._repeatable(ci_runs.claimed_source, repo, Priority.ANONYMOUS, number)

    async def ci_runs(
        self, repo: RepoRef, since: date, *, is_awaited: bool = False
    ) -> Sequence[CiRun]:
        priority = Priority.VERDICT if is_awaited else Priority.SWEEP
        return await self._repeatable(ci_runs.ci_runs, repo, priority, since)

    async def pull_request_suites(self, repo: RepoRef, sha: Sha) -> Collection[str]:
        return await self._repeatable(ci_runs.pull_request_suites, repo, Priority.VERDICT, sha)

    async def foreign_suites(self, repo: RepoRef, sha: Sha, target: str) -> Collection[str]:
        return await self._repeatable(ci_runs.foreign_suites, repo, Priority.VERDICT, sha, target)

    async def ci_jobs(self, repo: RepoRef, run_id: str, attempt: int) -> Sequence[CiJob]:
        return await self._repeatable(ci_runs.ci_jobs, repo, Priority.VERDICT, run_id, attempt)

    async def ci_progress(
        self, repo: RepoRef, sha: Sha, groups: Collection[str], *, is_poll: bool = False
    ) -> Sequence[CiProgress]:
        priority = Priority.SWEEP if is_poll else Priority.VERDICT
        return await self._repeatable(ci_runs.ci_progress, repo, priority, sha, frozenset(groups))

    async def ci_files(self, repo: RepoRef, commit: Sha) -> str:
        return await self._repeatable(workflows.digest, repo, Priority.VERDICT, commit)

    async def ci_plan(self, repo: RepoRef, commit: Sha) -> CiPlan:
        return await self._repeatable(workflows.plan, repo, Priority.VERDICT, commit)

    async def ci_artifacts(
        self, repo: RepoRef, run_id: str, *, is_awaited: bool = False
    ) -> Sequence[Artifact]:
        priority = Priority.VERDICT if is_awaited else Priority.NOTICE
        return await self._repeatable(ci_runs.ci_artifacts, repo, priority, run_id)

    def ci_artifact(
        self, repo: RepoRef, artifact: Artifact, *, is_awaited: bool = False
    ) -> AbstractAsyncContextManager[bytes | NoArchive]:
        priority = Priority.VERDICT if is_awaited else Priority.NOTICE
        return self._artifacts.opened(self._at(repo, priority), artifact, is_awaited=is_awaited)

    async def comments_since(self, where: Where, since: datetime) -> CommentsRead:
        return await self._repeatable(
            comments.since, where.ref, Priority.SWEEP, where, since, self._own()
        )

    async def reviews_and_labels_since(
        self, where: Where, since: datetime, labels: Collection[str]
    ) -> CommentsRead:
        read, reader = comments.reviews_and_labels_since, LabelReader(self._own(), labels)
        return await self._repeatable(read, where.ref, Priority.SWEEP, where, since, reader)

    async def label_change(self, repo: RepoRef, number: int, label: str) -> LabelChange | None:
        read = comments.label_change
        return await self._repeatable(read, repo, Priority.ANSWER, number, label, self._own())

    async def failed_deliveries(self, since: datetime) -> Sequence[FailedDelivery]:
        return await self._translated(installations.failed_deliveries(self._github, since))

    async def redeliver(self, attempt: str) -> None:
        await self._translated(installations.redeliver(self._github, attempt))

    async def ticket(self, repo: RepoRef, marker: str, number: int | None) -> Ticket | None:
        return await self._repeatable(
            tickets.ticket, repo, Priority.NOTICE, self._options.app_id, marker, number
        )

    async def put_ticket(self, repo: RepoRef, request: TicketRequest) -> Ticket:
        return await self._once(tickets.put, repo, Priority.NOTICE, request)

    async def no_tickets(self, repo: RepoRef) -> NotPossible | None:
        return await self._repeatable(tickets.no_tickets, repo, Priority.ANSWER)

    async def audit(self, subject: AuditSubject) -> Sequence[Finding]:
        return await self._repeatable(
            audits.run, subject.repo, Priority.ANSWER, self._protection, self._builder, subject
        )

    async def start_dry_test(self, request: DryTestRequest) -> DryTest:
        return await self._once(testbranches.start_dry_test, request.repo, Priority.BUILD, request)

    async def open_revert(self, request: RevertRequest) -> OpenedRevert | NotPossible:
        return await self._repeatable(reverts.open_revert, request.repo, Priority.BUILD, request)

    async def follow(self, repo: RepoRef, branch: str, sha: Sha) -> None:
        await self._repeatable(reverts.follow, repo, Priority.NOTICE, branch, sha)

    def budget(self, repo: RepoRef) -> Budget | None:
        pacer = self._github.pacer_of(repo)
        return None if pacer is None else pacer.budget(repo.slug)

    def _count_landed(self, repo: RepoRef, pull_requests: int) -> None:
        pacer = self._github.pacer_of(repo)
        if pacer is not None:
            pacer.counts.add_landed(pull_requests)

    async def close(self) -> None:
        await self._builder.close()
        await self._github.close()
        await self._artifacts.close()

    def _at(self, repo: RepoRef, priority: Priority) -> RepositoryClient:
        return RepositoryClient(self._github, repo, priority)

    async def _repeatable(
        self,
        verb: Callable[Concatenate[RepositoryClient, P], Awaitable[T]],
        repo: RepoRef,
        priority: Priority,
        *arguments: P.args,
        **options: P.kwargs,
    ) -> T:
        """Run a verb on a repository that may be run again after an unreadable answer."""
        return await self._translated(verb(self._at(repo, priority), *arguments, **options))

    async def _once(
        self,
        verb: Callable[Concatenate[RepositoryClient, P], Awaitable[T]],
        repo: RepoRef,
        priority: Priority,
        *arguments: P.args,
        **options: P.kwargs,
    ) -> T:
        """Run a verb that must not be repeated: an unreadable answer is an unknown outcome."""
        try:
            return await verb(self._at(repo, priority), *arguments, **options)
        except Unreadable as failure:
            raise OutcomeUnknown(f"GitHub's answer lacks something: {failure}.") from failure

    async def _translated(self, answer: Awaitable[T]) -> T:
        """Return the answer; one that cannot be read becomes `Unavailable`."""
        try:
            return await answer
        except Unreadable as failure:
            later = self._clock.now() + timedelta(seconds=limits.UNAVAILABLE_S)
            raise Unavailable(f"GitHub's answer lacks something: {failure}.", later) from failure
