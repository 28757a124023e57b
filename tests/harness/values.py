"""A provider made of values: answers at once, keeps a little state, calls nobody.

For benchmarks and tests of operations that are not about a provider's ways.
"""

import hashlib
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, date, datetime

from service.landed_work import WorkJudged
from service.provenance import ProviderTime
from service.provider import markers
from service.provider.archives import NoArchive
from service.provider.audits import AuditSubject, DryTest, DryTestRequest, Finding
from service.provider.budget import Budget, Pressure
from service.provider.ci import (
    Artifact,
    CiJob,
    CiProgress,
    CiRun,
    Judged,
    PullRequestSource,
    Subject,
)
from service.provider.ci_plans import CiPlan
from service.provider.labels import LabelChange
from service.provider.overlaps import OverlapRequest, Overlaps
from service.provider.reverts import OpenedRevert, RevertRequest
from service.provider.signals import Delivery, FailedDelivery, Where
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
    Built,
    ChangedFiles,
    Checks,
    CommentsRead,
    Commit,
    CommitAuthor,
    Known,
    LandedByUs,
    LandedPull,
    LandStop,
    ListedPullRequest,
    Merged,
    MergeRequest,
    Notice,
    NotPossible,
    Prefix,
    PullRequest,
    Rehearsed,
    Repository,
    Required,
    StatusPosted,
    VehicleAdvice,
    VehicleRef,
)
from service.vocabulary import (
    Actor,
    Check,
    CheckKind,
    CheckOutcome,
    Mergeability,
    MergeMethod,
    PullRequestState,
    RepoId,
    RepoRef,
    RequiredName,
    Sha,
)


def sha_of(*words: object) -> Sha:
    """A commit or tree id that the words alone determine."""
    return Sha(hashlib.sha1("/".join(map(str, words)).encode(), usedforsecurity=False).hexdigest())


SHOWN_AT = ProviderTime(datetime(2025, 1, 1, tzinfo=UTC))
"""When every pull request of `ValuesProvider` was changed last."""


class ValuesProvider:
    """`octo/widgets` with as many open pull requests as anybody asks for.

    Every commit in `green` has passed `unit`; a merge moves `main` to the tested tree.
    """

    def __init__(self, host: str = "values.test") -> None:
        self.ref = RepoRef(host, "octo", "widgets")
        self.main = Commit(sha_of("main"), sha_of("tree"), ())
        self.green: set[str] = set()
        self.merged_at: dict[int, Sha] = {}
        self.trees: dict[int, Sha] = {}
        self.said: list[Notice] = []
        self.failed: list[FailedDelivery] = []
        self.comments: list[Delivery] = []
        self.redelivered: list[str] = []
        self.files: dict[str, bytes] = {}
        self.tickets: dict[int, Ticket] = {}
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.pressure = Pressure.NONE

    async def repositories(self) -> Sequence[Repository]:
        return [await self.repository(self.ref)]

    async def repository(self, ref: RepoRef) -> Repository:
        return Repository(
            ref=self.ref,
            id=RepoId(ref.host, "1"),
            owner_id="1",
            default_branch="main",
            merge_methods=frozenset(MergeMethod),
            archived=False,
            url=f"https://{ref.host}/octo/widgets",
        )

    async def pull_request(
        self, repo: RepoRef, number: int, *, awaits_mergeability: bool = True
    ) -> PullRequest:
        merged = self.merged_at.get(number)
        return PullRequest(
            number=number,
            title=f"Change {number}",
            body="",
            author="alice",
            author_id="1",
            state=PullRequestState.OPEN if merged is None else PullRequestState.MERGED,
            draft=False,
            base_branch="main",
            base_tip=self.main.sha,
            head_branch=f"topic-{number}",
            head_sha=sha_of("head", number),
            head_repo=repo.slug,
            is_fork=False,
            merge_commit=merged,
            mergeability=Mergeability.MERGEABLE,
            blockers=(),
            labels=(),
            url=f"https://{repo.host}/octo/widgets/pull/{number}",
            shown_at=SHOWN_AT,
        )

    async def pull_requests(
        self, repo: RepoRef, numbers: Sequence[int]
    ) -> Mapping[int, PullRequest | None]:
        return {number: await self.pull_request(repo, number) for number in numbers}

    async def open_pull_requests(self, repo: RepoRef, base: str) -> Sequence[ListedPullRequest]:
        return []

    async def commit_authors(self, repo: RepoRef, number: int) -> Sequence[CommitAuthor]:
        return ()

    async def changed_files(self, repo: RepoRef, number: int) -> ChangedFiles:
        paths, head = (f"file-{number}",), sha_of("head", number)
        return ChangedFiles(paths, complete=True, head=head, base="main")

    async def access(self, repo: RepoRef, actor: Actor) -> AccessLevel:
        return AccessLevel.ADMIN

    async def read_file(
        self, repo: RepoRef, path: str, commit: Sha, bytes_max: int
    ) -> bytes | None:
        return self.files.get(path)

    async def tree_paths(self, repo: RepoRef, commit: Sha) -> TreePaths:
        ids = {path: sha_of(path, content) for path, content in self.files.items()}
        return TreePaths(ids, complete=True)

    async def vehicle_advice(self, repo: RepoRef, branch: str, commit: Sha) -> VehicleAdvice:
        return VehicleAdvice(None, "The branch has no workflow files.")

    async def required(self, repo: RepoRef, branch: str, *, is_beside: bool = False) -> Required:
        return Known((RequiredName("unit"),), None, ())

    async def forget_rules(self, repo: RepoRef, *, only_free: bool = False) -> None:
        return None

    async def forget_access(self, repo: RepoRef) -> None:
        return None

    async def checks(self, repo: RepoRef, sha: Sha, *, skipped_pass: bool) -> Checks:
        outcome = CheckOutcome.PASSED if sha in self.green else CheckOutcome.RUNNING
        word = "success" if sha in self.green else "in_progress"
        unit = Check(CheckKind.SUITE_RUN, "unit", "7", "1", "1", outcome, word, "https://ci.test/1")
        return Checks(sha, (unit,), complete=True)

    async def checks_of_many(
        self, repo: RepoRef, shas: Sequence[Sha], *, skipped_pass: bool
    ) -> Mapping[Sha, Checks]:
        return {sha: await self.checks(repo, sha, skipped_pass=skipped_pass) for sha in shas}

    async def judged(self, repo: RepoRef, pull: PullRequest, checks: Checks) -> tuple[Judged, ...]:
        return tuple(Judged(check, Subject.MERGE) for check in checks.items)

    async def tip(self, repo: RepoRef, branch: str) -> Commit | None:
        return self.main

    async def new_name(self, repo: RepoRef, branch: str) -> str | None:
        return None

    async def commit(self, repo: RepoRef, sha: Sha) -> Commit | None:
        return self.main if sha == self.main.sha else None

    async def contains(self, repo: RepoRef, ancestor: Sha, commit: Sha) -> bool:
        return ancestor == commit

    async def position(self, repo: RepoRef, sha: Sha) -> int | None:
        return 1 if sha == self.main.sha else None

    async def build(self, request: BuildRequest) -> BuildResult:
        prefixes = []
        words: list[object] = [request.base_sha]
        for step in request.steps:
            words.append(step.head_sha)
            commit = step.commit or sha_of("commit", *words)
            prefixes.append(Prefix(step.number, commit, sha_of("tree", *words), contained=False))
        tip = prefixes[-1].commit
        return Built(tip, tuple(prefixes), request.branch, True, 1000, None)

    async def audit(self, subject: AuditSubject) -> Sequence[Finding]:
        return ()

    async def start_dry_test(self, request: DryTestRequest) -> DryTest:
        return DryTest(request.branch, sha_of("dry test", request.tip))

    async def open_revert(self, request: RevertRequest) -> OpenedRevert | NotPossible:
        return OpenedRevert(1, sha_of("revert", request.commit))

    async def follow(self, repo: RepoRef, branch: str, sha: Sha) -> None:
        return None

    async def rehearse(self, request: BuildRequest) -> Rehearsed | None:
        return None

    async def overlaps(self, request: OverlapRequest) -> Overlaps | None:
        return None

    async def judge(self, request: BuildRequest) -> Mapping[int, WorkJudged]:
        return {}

    async def repeats_commits(self, repo: RepoRef, target: str) -> bool:
        return False

    async def prepare(self, repo: RepoRef, target: str) -> None:
        return None

    async def discard(self, repo: RepoRef, branch: str) -> None:
        return None

    async def restore(self, repo: RepoRef, branch: str, sha: Sha) -> None:
        return None

    async def vehicles(self, repo: RepoRef) -> Sequence[VehicleRef]:
        return []

    async def merge(self, request: MergeRequest) -> Merged | LandStop:
        landed = sha_of("landed", request.number)
        tree = self.trees.get(request.number, sha_of("tree"))
        self.main = Commit(landed, tree, (request.expect_parent,))
        self.merged_at[request.number] = landed
        return Merged(landed, (self.main,))

    async def merged(self, request: MergeRequest) -> Merged | None:
        return None

    async def advance(self, request: AdvanceRequest) -> Merged | LandStop:
        raise NotImplementedError

    async def advanced(self, request: AdvanceRequest) -> Merged | None:
        return None

    async def same_change(
        self, repo: RepoRef, tested: TreeChange, landed: TreeChange
    ) -> Same | Different | Unproven:
        return Same()

    async def overlap(
        self, repo: RepoRef, one: TreeChange, other: TreeChange
    ) -> Disjoint | Overlapping | Unproven:
        return Disjoint()

    async def settle_merged(self, repo: RepoRef, landed: LandedPull) -> bool:
        return True

    async def landed_by_us(self, repo: RepoRef, number: int) -> LandedByUs | None:
        return None

    async def shows_end(self, repo: RepoRef, sha: Sha, name: str, submission: str) -> bool:
        return False

    async def statuses_posted(
        self, repo: RepoRef, marker: str, since: datetime
    ) -> Sequence[StatusPosted]:
        return ()

    async def closed_pull_requests(
        self, repo: RepoRef, base: str, since: datetime
    ) -> Sequence[ListedPullRequest]:
        return ()

    async def delete_head(self, repo: RepoRef, number: int, head_sha: Sha) -> NotPossible | None:
        return NotPossible("no branches here")

    async def merged_from(self, repo: RepoRef, branch: str) -> MergedFrom | None:
        return None

    async def dismisses_approvals(self, repo: RepoRef, branch: str) -> bool:
        return False

    async def chain(self, repo: RepoRef, pull: PullRequest) -> Stack | None:
        return None

    async def change_base(self, repo: RepoRef, number: int, branch: str) -> NotPossible | None:
        return NotPossible("no branches here")

    async def say(self, repo: RepoRef, notice: Notice) -> str | None:
        self.said.append(notice)
        return str(len(self.said))

    async def rerun(self, repo: RepoRef, sha: Sha, names: Sequence[str]) -> NotPossible | None:
        return NotPossible("no CI here")

    async def can_rerun(self, repo: RepoRef) -> bool:
        return False

    async def stop_ci(self, repo: RepoRef, sha: Sha) -> NotPossible | None:
        return None

    async def ci_run(self, repo: RepoRef, run_id: str, attempt: int | None = None) -> CiRun | None:
        return None

    async def claimed_run(self, repo: RepoRef, run_id: str) -> CiRun | None:
        return await self.ci_run(repo, run_id)

    async def claimed_source(self, repo: RepoRef, number: int) -> PullRequestSource | None:
        pull = await self.pull_request(repo, number)
        source = pull.head_repo or ""
        return PullRequestSource(number, source, pull.head_branch, pull.head_sha, pull.is_fork)

    async def ci_runs(
        self, repo: RepoRef, since: date, *, is_awaited: bool = False
    ) -> Sequence[CiRun]:
        return ()

    async def pull_request_suites(self, repo: RepoRef, sha: Sha) -> Collection[str]:
        return frozenset()

    async def foreign_suites(self, repo: RepoRef, sha: Sha, target: str) -> Collection[str]:
        return frozenset()

    async def ci_jobs(self, repo: RepoRef, run_id: str, attempt: int) -> Sequence[CiJob]:
        return ()

    async def ci_progress(
        self, repo: RepoRef, sha: Sha, groups: Collection[str], *, is_poll: bool = False
    ) -> Sequence[CiProgress]:
        return ()

    async def ci_files(self, repo: RepoRef, commit: Sha) -> str:
        return ""

    async def ci_plan(self, repo: RepoRef, commit: Sha) -> CiPlan:
        return CiPlan()

    async def ci_artifacts(
        self, repo: RepoRef, run_id: str, *, is_awaited: bool = False
    ) -> Sequence[Artifact]:
        return ()

    @asynccontextmanager
    async def ci_artifact(
        self, repo: RepoRef, artifact: Artifact, *, is_awaited: bool = False
    ) -> AsyncIterator[bytes | NoArchive]:
        yield NoArchive("no CI here")

    async def comments_since(self, where: Where, since: datetime) -> CommentsRead:
        del where
        found = [one for one in self.comments if one.received_at >= since]
        return CommentsRead(tuple(found), max((one.received_at for one in found), default=since))

    async def reviews_and_labels_since(
        self, where: Where, since: datetime, labels: Collection[str]
    ) -> CommentsRead:
        return CommentsRead((), since)

    async def label_change(self, repo: RepoRef, number: int, label: str) -> LabelChange | None:
        return None

    async def failed_deliveries(self, since: datetime) -> Sequence[FailedDelivery]:
        return [one for one in self.failed if one.at >= since]

    async def redeliver(self, attempt: str) -> None:
        self.redelivered.append(attempt)

    async def ticket(self, repo: RepoRef, marker: str, number: int | None) -> Ticket | None:
        if number is not None:
            return self.tickets.get(number)
        found = [each for each in self.tickets.values() if markers.is_marked(each.body, marker)]
        return found[-1] if found else None

    async def put_ticket(self, repo: RepoRef, request: TicketRequest) -> Ticket:
        made = request.found
        if made is None:
            number = 1000 + len(self.tickets)
            made = Ticket(number, f"https://{repo.host}/octo/widgets/issues/{number}", "", "")
        closed_at = made.closed_at
        if request.is_open is not None:
            closed_at = None if request.is_open else closed_at or self.now
        made = replace(made, title=request.title, body=request.body, closed_at=closed_at)
        self.tickets[made.number] = made
        return made

    async def no_tickets(self, repo: RepoRef) -> NotPossible | None:
        return None

    def budget(self, repo: RepoRef) -> Budget | None:
        return Budget(self.pressure, (), {}, 0)

    async def close(self) -> None:
        return None
