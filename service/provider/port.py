"""The outward half of the seam: what the service may ask of a provider.

Nothing else may call a provider (docs/design/provider.md 1). Every verb may raise the errors of
`provider/errors.py`; a write that may have happened raises `OutcomeUnknown`. What goes in and comes
back: `provider/values.py`.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import date, datetime
from typing import Protocol

from service.landed_work import WorkJudged
from service.provider.archives import NoArchive
from service.provider.audits import AuditSubject, DryTest, DryTestRequest, Finding
from service.provider.budget import Budget
from service.provider.ci import Artifact, CiJob, CiProgress, CiRun, Judged, PullRequestSource
from service.provider.ci_plans import CiPlan
from service.provider.labels import LabelChange
from service.provider.overlaps import OverlapRequest, Overlaps
from service.provider.reverts import OpenedRevert, RevertRequest
from service.provider.signals import FailedDelivery, Where
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
    Rehearsed,
    Repository,
    Required,
    StatusPosted,
    VehicleAdvice,
    VehicleRef,
)
from service.vocabulary import Actor, RepoRef, Sha


class Provider(Protocol):
    """A host of repositories. Reads are fresh unless a docstring says otherwise."""

    async def repositories(self) -> Sequence[Repository]:
        """Every repository our App is installed on, all pages."""
        ...

    async def repository(self, ref: RepoRef) -> Repository:
        """The repository now, followed through a rename. Raises Gone(REPOSITORY)."""
        ...

    async def pull_request(
        self, repo: RepoRef, number: int, *, awaits_mergeability: bool = True
    ) -> PullRequest:
        """Facts of one pull request. Raises Gone(PULL_REQUEST).

        `awaits_mergeability`: read again, for half a minute, until the provider knows it.
        """
        ...

    async def pull_requests(
        self, repo: RepoRef, numbers: Sequence[int]
    ) -> Mapping[int, PullRequest | None]:
        """Fresh facts of many, None for one that is gone; only for sweeps.

        Does not wait until the provider knows whether they merge: until then `in_progress`.
        """
        ...

    async def open_pull_requests(self, repo: RepoRef, base: str) -> Sequence[ListedPullRequest]:
        """The open pull requests onto `base`; only for sweeps."""
        ...

    async def commit_authors(self, repo: RepoRef, number: int) -> Sequence[CommitAuthor]:
        """Authors and co-authors of its commits, oldest commit first, each once.

        Those of its first 300 commits. Raises Gone(PULL_REQUEST).
        """
        ...

    async def changed_files(self, repo: RepoRef, number: int) -> ChangedFiles:
        """Paths it touches, at most 3,000."""
        ...

    async def access(self, repo: RepoRef, actor: Actor) -> AccessLevel:
        """Rights of the numeric user id, asked afresh; doubt is NONE.

        See docs/design/provider.md 13.
        """
        ...

    async def read_file(
        self, repo: RepoRef, path: str, commit: Sha, bytes_max: int
    ) -> bytes | None:
        """Return a file's content at a commit, None where there is no file; never of a fork's head.

        Raises Refused(TOO_LARGE).
        """
        ...

    async def tree_paths(self, repo: RepoRef, commit: Sha) -> TreePaths:
        """All files of a commit, by one read, which may be long; incomplete when unknown."""
        ...

    async def vehicle_advice(self, repo: RepoRef, branch: str, commit: Sha) -> VehicleAdvice:
        """The kind of test branch that the CI files of a target branch call for."""
        ...

    async def required(self, repo: RepoRef, branch: str, *, is_beside: bool = False) -> Required:
        """Statuses the branch's rules require; kept up to 5 minutes unless rules changed.

        Raises Refused(PROVIDER_QUEUE) when the provider's own queue owns the branch, unless
        nothing is to be landed beside it.
        """
        ...

    async def forget_rules(self, repo: RepoRef, *, only_free: bool = False) -> None:
        """Drop what `required` keeps, so that its next answer is fresh.

        `only_free`: but for what costs a call of the limits even when nothing has changed, which
        the refusal of a landing shows as well.
        """
        ...

    async def forget_access(self, repo: RepoRef) -> None:
        """Drop what we hold to act there, so that the next call has the rights of now."""
        ...

    async def checks(self, repo: RepoRef, sha: Sha, *, skipped_pass: bool) -> Checks:
        """All reports on exactly `sha`; never cached. `skipped_pass` is a setting.

        See docs/design/provider.md 8.1.
        """
        ...

    async def checks_of_many(
        self, repo: RepoRef, shas: Sequence[Sha], *, skipped_pass: bool
    ) -> Mapping[Sha, Checks]:
        """The same for several commits, with fewer calls."""
        ...

    async def judged(self, repo: RepoRef, pull: PullRequest, checks: Checks) -> tuple[Judged, ...]:
        """Return what each of these reports on its head has judged (docs/design/landing.md 12)."""
        ...

    async def tip(self, repo: RepoRef, branch: str) -> Commit | None:
        """The branch's newest commit, None when the branch does not exist; never cached."""
        ...

    async def new_name(self, repo: RepoRef, branch: str) -> str | None:
        """The branch to which the provider redirects the name of one that is gone.

        None while the branch exists, and for one that was deleted.
        """
        ...

    async def commit(self, repo: RepoRef, sha: Sha) -> Commit | None:
        """One commit, None when unknown."""
        ...

    async def contains(self, repo: RepoRef, ancestor: Sha, commit: Sha) -> bool:
        """Return whether `ancestor` is `commit` or reachable from it."""
        ...

    async def position(self, repo: RepoRef, sha: Sha) -> int | None:
        """Return how many commits the history of `sha` has, itself too; None when `sha` is unknown.

        On a branch whose history is not rewritten a later commit has more than an earlier one.
        """
        ...

    async def build(self, request: BuildRequest) -> BuildResult:
        """Make, or find and complete, the test branch (docs/design/provider.md 7); safe to repeat.

        Raises Refused.
        """
        ...

    async def rehearse(self, request: BuildRequest) -> Rehearsed | None:
        """Return the first conflict of such a build, found without making its branch.

        None: the provider cannot tell now without making one. `culprit` is the only earlier step
        that adds commits, or the step whose head is the `fork`.
        """
        ...

    async def overlaps(self, request: OverlapRequest) -> Overlaps | None:
        """Compare open pull requests with each other; None where the provider cannot tell now.

        Asks the provider for heads alone, and for none twice.
        """
        ...

    async def judge(self, request: BuildRequest) -> Mapping[int, WorkJudged]:
        """Return how the tested heads of such a build stand to landed work, by number.

        Without making its branch, and within a few seconds (docs/design/undone-work.md 6).
        """
        ...

    async def repeats_commits(self, repo: RepoRef, target: str) -> bool:
        """Return whether a build gives the same commits as another one that merges the same heads.

        Then none has to wait for another. Asks the provider for nothing that it knows already.
        """
        ...

    async def prepare(self, repo: RepoRef, target: str) -> None:
        """Begin what makes the first test branch of a target branch quick.

        Ask and wait for nothing; `audit` shows what fails.
        """
        ...

    async def discard(self, repo: RepoRef, branch: str) -> None:
        """Delete the branch and close its draft pull request; absent is done."""
        ...

    async def restore(self, repo: RepoRef, branch: str, sha: Sha) -> None:
        """Put a lost test branch back at `sha`; present at `sha` is done.

        Raises Refused(NAME_TAKEN) when it points elsewhere.
        """
        ...

    async def vehicles(self, repo: RepoRef) -> Sequence[VehicleRef]:
        """Branches under our prefix."""
        ...

    async def merge(self, request: MergeRequest) -> Merged | LandStop:
        """Land one pull request by the provider's merge call, sent once.

        Raises OutcomeUnknown.
        """
        ...

    async def merged(self, request: MergeRequest) -> Merged | None:
        """Read back a merge call: what landed, or None when nothing or another merged it."""
        ...

    async def advance(self, request: AdvanceRequest) -> Merged | LandStop:
        """Move the target by one atomic compare-and-swap, sent once. Raises OutcomeUnknown."""
        ...

    async def advanced(self, request: AdvanceRequest) -> Merged | None:
        """Read back an advance: what landed, or None if `to` is not in the target.

        If the advance was done and the target shows its old tip, `chain` is empty: a person has
        moved the target back. Raises OutcomeUnknown while that may be an old answer.
        """
        ...

    async def same_change(
        self, repo: RepoRef, tested: TreeChange, landed: TreeChange
    ) -> Same | Different | Unproven:
        """Return whether two changes leave the same files behind (docs/design/provider.md 12)."""
        ...

    async def overlap(
        self, repo: RepoRef, one: TreeChange, other: TreeChange
    ) -> Disjoint | Overlapping | Unproven:
        """Return whether two changes touch the same paths (docs/design/provider.md 12)."""
        ...

    async def settle_merged(self, repo: RepoRef, landed: LandedPull) -> bool:
        """Make the provider show an advanced pull request as merged, else close it (5.5).

        One that has another head or base by now is left open.
        """
        ...

    async def landed_by_us(self, repo: RepoRef, number: int) -> LandedByUs | None:
        """Return how our App landed a pull request, as the provider itself says; None: it did not.

        For a queue that has no record of it. Raises Gone(PULL_REQUEST).
        """
        ...

    async def shows_end(self, repo: RepoRef, sha: Sha, name: str, submission: str) -> bool:
        """Return whether our newest check run about this submission says that it left unmerged."""
        ...

    async def statuses_posted(
        self, repo: RepoRef, marker: str, since: datetime
    ) -> Sequence[StatusPosted]:
        """Return our status comments with this marker that changed since then, newest first.

        Those among the newest 500 comments of the repository.
        """
        ...

    async def closed_pull_requests(
        self, repo: RepoRef, base: str, since: datetime
    ) -> Sequence[ListedPullRequest]:
        """Return the pull requests onto `base` that were closed since then.

        Those among the 500 closed ones that changed last.
        """
        ...

    async def delete_head(self, repo: RepoRef, number: int, head_sha: Sha) -> NotPossible | None:
        """Delete a landed pull request's branch (docs/design/landing.md 8); absent is done.

        None when deleted. Raises Unavailable while the pull request is still shown as open.
        """
        ...

    async def chain(self, repo: RepoRef, pull: PullRequest) -> Stack | None:
        """The open pull requests on whose branches this one rests; None if its base is no such."""
        ...

    async def merged_from(self, repo: RepoRef, branch: str) -> MergedFrom | None:
        """The pull request of which this branch is a left-over; None if it may be in use."""
        ...

    async def dismisses_approvals(self, repo: RepoRef, branch: str) -> bool:
        """Return whether rules of the branch dismiss needed approvals when the base is changed."""
        ...

    async def change_base(self, repo: RepoRef, number: int, branch: str) -> NotPossible | None:
        """Base a pull request on another branch; None when it is."""
        ...

    async def say(self, repo: RepoRef, notice: Notice) -> str | None:
        """Write one notice; the id of what stands there now, None when it was dropped."""
        ...

    async def rerun(self, repo: RepoRef, sha: Sha, names: Sequence[str]) -> NotPossible | None:
        """Run the named checks of a commit once more, and those that need them; None when started.

        Nothing is started unless all of them can be. The commit's other checks keep their reports.
        """
        ...

    async def can_rerun(self, repo: RepoRef) -> bool:
        """Return whether we have the right to run checks of a commit once more."""
        ...

    async def stop_ci(self, repo: RepoRef, sha: Sha) -> NotPossible | None:
        """Stop what still runs on a commit; None when asked for."""
        ...

    async def ci_run(self, repo: RepoRef, run_id: str, attempt: int | None = None) -> CiRun | None:
        """An attempt of a run of the provider's CI, the newest if none is named; None: none such.

        What is true of one attempt does not change once it ended.
        """
        ...

    async def pull_request_suites(self, repo: RepoRef, sha: Sha) -> Collection[str]:
        """Return the check suites on a commit that a pull request began, perhaps of a fork.

        Empty if the provider does not tell.
        """
        ...

    async def foreign_suites(self, repo: RepoRef, sha: Sha, target: str) -> Collection[str]:
        """Return the check suites on a commit that CI made for others than the queue of a branch.

        For a pull request of somebody, perhaps of a fork, whose head is a commit of a test branch
        or of the target. Empty if the provider does not tell.
        """
        ...

    async def claimed_run(self, repo: RepoRef, run_id: str) -> CiRun | None:
        """The newest attempt of a run that a caller without a token names; None: none such.

        Raises Throttled at once when such callers have used their share of the rate limit.
        """
        ...

    async def claimed_source(self, repo: RepoRef, number: int) -> PullRequestSource | None:
        """Return where an open pull request comes from that a caller without a token names.

        None: there is no such pull request, or it is closed. Raises as `claimed_run`.
        """
        ...

    async def ci_runs(
        self, repo: RepoRef, since: date, *, is_awaited: bool = False
    ) -> Sequence[CiRun]:
        """Runs that have ended, begun on that day (UTC) or later: the newest 200, newest first.

        Each by its newest attempt; only for sweeps. `is_awaited`: a queue waits for what they
        left, so that the read goes before notices and other sweeps.
        """
        ...

    async def ci_jobs(self, repo: RepoRef, run_id: str, attempt: int) -> Sequence[CiJob]:
        """The jobs of one attempt, in the provider's order; empty for an unknown one."""
        ...

    async def ci_progress(
        self, repo: RepoRef, sha: Sha, groups: Collection[str], *, is_poll: bool = False
    ) -> Sequence[CiProgress]:
        """Return the jobs of the CI runs on a commit by now, of these suites of its checks.

        While a run goes on as well: then it shows the steps that have failed by now. `is_poll`:
        nothing has been reported, so that the read goes behind all that decide.
        """
        ...

    async def ci_files(self, repo: RepoRef, commit: Sha) -> str:
        """Return a digest of the CI files of a commit: equal digests mean equal files."""
        ...

    async def ci_plan(self, repo: RepoRef, commit: Sha) -> CiPlan:
        """Return what the CI files of a commit say about failures; empty when unreadable."""
        ...

    async def ci_artifacts(
        self, repo: RepoRef, run_id: str, *, is_awaited: bool = False
    ) -> Sequence[Artifact]:
        """Return what a run left so far, oldest first, also of earlier attempts as far as kept.

        A provider may forget them when the run is started again: look as soon as it ends.
        `is_awaited` as in `ci_runs`.
        """
        ...

    def ci_artifact(
        self, repo: RepoRef, artifact: Artifact, *, is_awaited: bool = False
    ) -> AbstractAsyncContextManager[bytes | NoArchive]:
        """An artifact as a ZIP archive, which was not read yet, as long as the context lasts.

        One that is awaited (see `ci_runs`) and one other are open at a time, the rest waits: each
        holds up to 100 MiB.
        """
        ...

    async def comments_since(self, where: Where, since: datetime) -> CommentsRead:
        """Commands in comments changed since then, as deliveries that the translator reads.

        At most 300 comments a call. A comment that was edited is left out: what counts is what
        it said when it was made.
        """
        ...

    async def reviews_and_labels_since(
        self, where: Where, since: datetime, labels: Collection[str]
    ) -> CommentsRead:
        """Commands in reviews of open pull requests that changed after that, in the same form.

        Also the newest change of each of `labels` on them, if it is newer too. At most the 90 that
        changed last. A review that was edited is left out.
        """
        ...

    async def label_change(self, repo: RepoRef, number: int, label: str) -> LabelChange | None:
        """The newest change of a label of a pull request that our own App did not make.

        None if the provider shows none.
        Raises Gone(PULL_REQUEST).
        """
        ...

    async def failed_deliveries(self, since: datetime) -> Sequence[FailedDelivery]:
        """Deliveries of which a try since then failed, each by its newest such try, oldest first.

        One that came through at another try may be among them.
        """
        ...

    async def redeliver(self, attempt: str) -> None:
        """Have a delivery sent again under its old id; one too old for that is done."""
        ...

    async def ticket(self, repo: RepoRef, marker: str, number: int | None) -> Ticket | None:
        """Our issue of that number, or without one the newest of ours that the marker stands for.

        None: there is none, or none any more. Looks through the newest 1,000 of ours.
        """
        ...

    async def put_ticket(self, repo: RepoRef, request: TicketRequest) -> Ticket:
        """Make the issue, or change what of it is different; as it stands then.

        Raises OutcomeUnknown, after which `ticket` says what stands; NotPermitted; Refused
        where the repository has no issues.
        """
        ...

    async def no_tickets(self, repo: RepoRef) -> NotPossible | None:
        """Why our App cannot write issues there, asked afresh; None when it can."""
        ...

    async def audit(self, subject: AuditSubject) -> Sequence[Finding]:
        """Return what of the provider's settings keeps a queue from working; all is read afresh.

        What cannot be read is itself a finding.
        """
        ...

    async def start_dry_test(self, request: DryTestRequest) -> DryTest:
        """Show CI a test branch that changes nothing. `discard` removes it. Raises Refused."""
        ...

    async def open_revert(self, request: RevertRequest) -> OpenedRevert | NotPossible:
        """Make a revert's branch and open its pull request, or find it; safe to repeat.

        NotPossible: it conflicts with later commits, or they have undone the change. `discard` of
        its branch closes it.
        """
        ...

    async def follow(self, repo: RepoRef, branch: str, sha: Sha) -> None:
        """Point a branch of ours to a commit; make it if there is none. Raises Refused."""
        ...

    def budget(self, repo: RepoRef) -> Budget | None:
        """Return what this process used of the limits that apply to a repository; makes no call.

        None before its first call to the repository.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
