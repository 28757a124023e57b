"""Test branches: built on a scratch branch, published at once, shown to CI.

CI never sees the scratch branch. A build reads back whatever is already on our branches and
continues from there, so that it can be repeated after any crash. Test branches that exist are
listed, deleted and put back, with their draft pull requests. A dry test is a test branch that
changes nothing: one empty commit on the target's tip.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from bot.github import limits, protection, reading, refs
from bot.github.client import RepositoryClient
from bot.github.own_branches import OwnBranches, Prefixes, is_line
from bot.github.pull_requests import PullRequests
from bot.github.wire import Answer
from service.provider.audits import DryTest, DryTestRequest
from service.provider.errors import (
    Gone,
    GoneKind,
    OutcomeUnknown,
    Refused,
    RefusedCode,
    Unavailable,
)
from service.provider.values import (
    BuildRequest,
    BuildResult,
    BuildStep,
    Built,
    Commit,
    Conflicted,
    Construction,
    NothingToMerge,
    Prefix,
    Vehicle,
    VehicleRef,
)
from service.vocabulary import Mergeability, MergeMethod, Resolved, Sha

STEPS_MAX = 200
TITLE_CHARS_MAX = 250
CONFLICT_PATHS_MAX = 100
RENAME_POLLS_S = (1.0, 1.0, 2.0, 4.0, 8.0, 14.0, 30.0)  # 60 s in all
NO_COMMITS_PAUSE_S = 5.0
CONFLICT_PAUSE_S = 2.0
DENIED_PAUSE_S = 2.0
DENIED_TRIES = 3
CONFLICT_WORDS = "merge conflict"

Draft = tuple[int, str]
"""Number and address of a draft pull request."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """The step whose head conflicts with the steps merged before it."""

    step: BuildStep
    before: Prefixes


@dataclass(slots=True)
class Retries:
    """The number of repetitions of one merge call, by reason."""

    conflicts: int = 0
    denials: int = 0
    absences: int = 0


async def build(
    client: RepositoryClient, pulls: PullRequests, request: BuildRequest
) -> BuildResult:
    """Make, or find and complete, the test branch; safe to repeat after any crash.

    Raises Refused, Gone(PULL_REQUEST), Unavailable.
    """
    return await carry_out(Build(client, pulls, request))


def can_build(request: BuildRequest) -> bool:
    """Return whether the REST API has calls for this build.

    It cannot replay commits that land themselves, nor leave out the history of a chain.
    """
    replays = request.lands and request.method is MergeMethod.REBASE
    return not replays and all(step.fork is None for step in request.steps)


async def carry_out(made: "Build") -> BuildResult:
    """Carry out a build; see `build`."""
    if not 0 < len(made.request.steps) <= STEPS_MAX:
        raise Refused(f"A test branch merges 1 to {STEPS_MAX} heads.", RefusedCode.TOO_MANY)
    try:
        try:
            return await made.start()
        except OutcomeUnknown:
            return await refs.retry_unknown(made.client, made.resume)
    except Refused as refused:
        if refused.code is not RefusedCode.OTHER:
            raise
        # The rules of the branch decide, not the sentence.
        if not await protection.forbids_building(made.client, made.request.scratch):
            raise
        raise Refused(refused.message, RefusedCode.RULE_DENIED) from refused


class Build:
    """Builds the test branch of one request.

    `squashes_again`: a commit of another run that brings more history than its own is replaced by
    one with its tree, and not made again from the heads.
    """

    squashes_again = True

    def __init__(
        self, client: RepositoryClient, pulls: PullRequests, request: BuildRequest
    ) -> None:
        self.client = client
        self.request = request
        self._pulls = pulls
        self.own = OwnBranches(client, request)
        self.is_line = is_line(request)
        self.resolved: dict[int, tuple[Resolved, ...]] = {
            step.number: step.resolved for step in request.steps
        }

    async def start(self) -> BuildResult:
        """Merge every step on the scratch branch, then publish it."""
        made = await self._merged()
        if isinstance(made, Stopped):
            await self._delete_scratch()
            return await self._conflict(made)
        if self.is_contained(made):
            await self._delete_scratch()
            return NothingToMerge()
        if made[-1].tree in self.request.known_trees:
            return self.built(self.request.scratch, made)
        taken = await self._publish(made[-1].commit)
        if taken is not None:
            own = self.own
            made = await (own.matched(taken, made) if self.is_line else own.completed(taken))
            await self._delete_scratch()
        return await self.show(made)

    async def resume(self) -> BuildResult:
        """Like `start`, unless the test branch exists already.

        Only its trees tell whether a line of commits is ours, so that one is built again.
        """
        if self.is_line:
            return await self.start()
        tip = await refs.read_head(self.client, self.request.branch)
        if tip is None:
            return await self.start()
        made = await self.own.completed(tip)
        await self._delete_scratch()
        return await self.show(made)

    def is_contained(self, made: Prefixes) -> bool:
        """Return whether every tested head was there before."""
        steps = zip(made, self.request.steps, strict=True)
        return all(prefix.contained for prefix, step in steps if step.tested)

    # The scratch branch.

    async def _merged(self) -> Prefixes | Stopped:
        """Merge every step; merge commits go on from where an earlier try stopped."""
        start = await self.reused()
        reused = len(start)
        sha = start[-1].commit if start else self.request.base_sha
        if await refs.create_branch(self.client, self.request.scratch, sha):
            pass
        elif self.is_line:
            await self.reset(sha)
        else:
            head = await refs.read_head(self.client, self.request.scratch)
            if head is None:
                raise self._unavailable("the scratch branch is not visible yet")
            start = await self.own.recognized(head)
        return await self.with_own_tip(start, reused)

    async def with_own_tip(self, start: Prefixes, reused: int) -> Prefixes | Stopped:
        """Merge what is missing; reuse one commit less while the tip belongs to another run.

        A run's tip is its own, and so are the reports on it, unless there is nothing to merge.
        """
        made = await self._merge_after(start)
        while isinstance(made, tuple) and reused and self._needs_own_tip(made):
            while reused and made[reused - 1].contained:
                reused -= 1
            reused = max(reused - 1, 0)
            start = made[:reused]
            sha = start[-1].commit if start else self.request.base_sha
            await self.reset(sha)
            made = await self._merge_after(start)
        return made

    async def reset(self, sha: Sha) -> None:
        """Continue from another commit."""
        await refs.reset_branch(self.client, self.request.scratch, sha)

    def _needs_own_tip(self, made: Prefixes) -> bool:
        pairs = zip(made, self.request.steps, strict=True)
        is_tested = any(step.tested and not prefix.contained for prefix, step in pairs)
        return is_tested and made[-1].commit in {step.commit for step in self.request.steps}

    async def _merge_after(self, start: Prefixes) -> Prefixes | Stopped:
        made = list(start)
        before = await self.own.commit(made[-1].commit if made else self.request.base_sha)
        for step in self.request.steps[len(made) :]:
            merged = await self.merge(step, before)
            if merged is None:
                return Stopped(step, tuple(made))
            contained = merged.sha == before.sha
            before = merged
            made.append(Prefix(step.number, before.sha, before.tree, contained))
        return tuple(made)

    async def merge(self, step: BuildStep, before: Commit) -> Commit | None:
        """Return the commit after this step; None when GitHub reported a conflict twice."""
        body = {
            "base": self.request.scratch,
            "head": step.head_sha,
            "commit_message": step.message,
        }
        retries = Retries()
        while retries.conflicts < 2:
            try:
                answer = await self.client.create("POST", "/merges", body, expects=(404, 409))
            except Refused as refused:
                raise Refused(refused.message, refused.code, step.number) from refused
            if answer.status == 204:
                return before
            if answer.status < 300:
                return await self._kept(reading.commit_of(answer.fields), step, before)
            await self._wait_to_retry(answer, step, before, retries)
        return None

    async def _kept(self, merge: Commit, step: BuildStep, before: Commit) -> Commit:
        """Return the commit to go on from after this merge on the scratch branch."""
        if merge.parents != (before.sha, step.head_sha):
            # The reset of a line may not be visible yet.
            moved = self._unavailable("the scratch branch has moved")
            raise moved if self.is_line else self.own.foreign()
        self.client.caches.keep_commit(self.client.repo, merge)
        is_last = step is self.request.steps[-1]
        if not self.is_line or (is_last and not self.request.lands):
            return merge
        commit = await self._squashed(merge, step, before.sha)
        await self.reset(commit.sha)
        return commit

    async def _squashed(self, merge: Commit, step: BuildStep, before: Sha) -> Commit:
        """Make one commit of a merge. It names no author, so that GitHub signs it."""
        body = {"message": self.words_of(step), "tree": merge.tree, "parents": [before]}
        answer = await self.client.send("POST", "/git/commits", body)
        commit = reading.commit_of(answer.fields)
        return self.client.caches.keep_commit(self.client.repo, commit)

    def words_of(self, step: BuildStep) -> str:
        """Return the message of a step; one whose commit was made by another run has none."""
        trailer = f"Headgate-Run: {self.request.run_id}"
        return step.message or f"Headgate test: merge pr-{step.number}\n\n{trailer}"

    async def _wait_to_retry(
        self, answer: Answer, step: BuildStep, before: Commit, retries: Retries
    ) -> None:
        """Wait until a refused merge call may be sent again, or raise."""
        if answer.status == 404:
            await self._wait_for_head(answer, step, retries)
        elif CONFLICT_WORDS in answer.message.lower():
            retries.conflicts += 1
            if retries.conflicts == 1:
                await self.client.clock.sleep(CONFLICT_PAUSE_S)
                await self._check_both(step, before)
        elif retries.denials == DENIED_TRIES:
            if await protection.forbids_building(self.client, self.request.scratch):
                raise Refused(answer.message, RefusedCode.RULE_DENIED)
            raise self._unavailable(answer.message or "GitHub answered 409")
        else:
            # A passing permission fault looks like this; no pull request is to blame.
            retries.denials += 1
            await self.client.clock.sleep(DENIED_PAUSE_S)

    async def _check_both(self, step: BuildStep, before: Commit) -> None:
        """Read base and head again: a conflict between other commits would prove nothing."""
        if await refs.read_head(self.client, self.request.scratch) != before.sha:
            raise self.own.foreign()
        if await refs.read_commit(self.client, step.head_sha) is None:
            raise _head_gone(step)

    async def _wait_for_head(self, answer: Answer, step: BuildStep, retries: Retries) -> None:
        """Wait: a head just pushed, or our own scratch branch, may not be visible yet."""
        if retries.absences == len(limits.YOUNG_WAITS_S):
            await self.client.check_repository()
            if "base" in answer.message.lower():
                raise self._unavailable("the scratch branch is gone")
            raise _head_gone(step)
        await self.client.clock.sleep(limits.YOUNG_WAITS_S[retries.absences])
        retries.absences += 1

    async def reused(self) -> Prefixes:
        """Return the leading steps with the commits that earlier runs made; never the last."""
        made: list[Prefix] = []
        before = self.request.base_sha
        for step in self.request.steps[:-1]:
            commit = None if step.commit is None else await self.own.commit(step.commit)
            if commit is not None and self._must_be_squashed(commit, step, before):
                again = self.squashes_again
                commit = await self._squashed(commit, step, before) if again else None
            if commit is None:
                break
            is_contained = commit.sha == before
            made.append(Prefix(step.number, commit.sha, commit.tree, contained=is_contained))
            before = commit.sha
        return tuple(made)

    def _must_be_squashed(self, commit: Commit, step: BuildStep, before: Sha) -> bool:
        """Return whether a commit brings the history of its head, which will not land."""
        if not self.is_line or commit.sha == before:
            return False
        is_replayed = self.request.method is MergeMethod.REBASE and len(commit.parents) == 1
        return commit.sha == step.head_sha or not (is_replayed or commit.parents == (before,))

    async def _delete_scratch(self) -> None:
        await refs.delete_branch(self.client, self.request.scratch)

    # The test branch.

    async def _publish(self, tip: Sha) -> Sha | None:
        """Make the test branch appear at `tip`; return where it points if it is elsewhere."""
        if self.request.construction is Construction.RENAME_TEMP_BRANCH:
            head = await self._renamed()
            if head is not None:
                return None if head == tip else head
        if await refs.create_branch(self.client, self.request.branch, tip):
            await self._delete_scratch()
            return None
        head = await refs.read_head(self.client, self.request.branch)
        if head == tip:
            await self._delete_scratch()
        return None if head in (tip, None) else head

    async def _renamed(self) -> Sha | None:
        """Rename the scratch branch; return where the test branch points, None if it is absent."""
        tail = f"/branches/{refs.branch_path(self.request.scratch)}/rename"
        body = {"new_name": self.request.branch}
        answer = await self.client.send("POST", tail, body, expects=(403, 404, 409, 422))
        for wait_s in RENAME_POLLS_S if answer.status < 300 else RENAME_POLLS_S[:1]:
            await self.client.clock.sleep(wait_s)
            head = await refs.read_head(self.client, self.request.branch, is_awaited=True)
            if head is not None:
                return head
        return None

    async def show(self, made: Prefixes) -> BuildResult:
        """Open the draft pull request of the published branch, where one is wanted."""
        branch = self.request.branch
        if self.request.vehicle is Vehicle.PUSH:
            return self.built(branch, made)
        try:
            draft = await self._draft()
        except Refused as refused:
            if refused.code is not RefusedCode.DRAFT_NOT_SUPPORTED:
                raise
            return replace(self.built(branch, made), draft_refused=refused.message)
        if draft is None:
            await refs.delete_branch(self.client, branch)
            return NothingToMerge()
        return self.built(branch, made, draft)

    async def _draft(self) -> Draft | None:
        """Open or find the draft pull request of the branch; None: nothing to merge."""
        body = {
            "title": self.request.title[:TITLE_CHARS_MAX],
            "body": self.request.body,
            "head": self.request.branch,
            "base": self.request.target,
            "draft": True,
        }
        empty, absences = 0, iter(limits.YOUNG_WAITS_S)
        while empty < 2:
            answer = await self.client.create("POST", "/pulls", body, expects=(422,))
            words = answer.message.lower()
            if answer.status < 300:
                number, _, url = reading.pull_ref_of(answer.fields)
                return number, url
            if "already exists" in words:
                return await self._open_draft(answer)
            if "no commits between" in words:
                empty += 1
                # Our ref may not be visible yet where pull requests are made.
                await self.client.clock.sleep(NO_COMMITS_PAUSE_S if empty == 1 else 0.0)
                continue
            wait_s = next(absences, None) if "head invalid" in words else None
            if wait_s is None:
                raise self.client.github.error_of(answer, "/pulls")
            await self.client.clock.sleep(wait_s)
        return None

    async def _open_draft(self, answer: Answer) -> Draft:
        for number, _, url in await _pulls_of(self.client, self.request.branch, "open"):
            return number, url
        raise Unavailable(answer.message, self.client.clock.now() + timedelta(seconds=1))

    async def _conflict(self, stopped: Stopped) -> Conflicted:
        number = stopped.step.number
        ahead = [each.number for each in stopped.before if not each.contained]
        if not ahead:
            return Conflicted(number, with_base=True, culprit=None, paths=())
        facts = await self._pulls.pull_request(self.client, number)
        if facts.mergeability is Mergeability.NOT_MERGEABLE:
            return Conflicted(number, with_base=True, culprit=None, paths=())
        if len(ahead) > 1:
            return Conflicted(number, with_base=False, culprit=None, paths=())
        own = await self._pulls.changed_files(self.client, number)
        others = set((await self._pulls.changed_files(self.client, ahead[0])).paths)
        both = [path for path in own.paths if path in others]
        return Conflicted(number, False, ahead[0], tuple(both[:CONFLICT_PATHS_MAX]))

    def built(self, branch: str, made: Prefixes, draft: Draft | None = None) -> Built:
        """Return the result of a finished build."""
        return Built(
            tip=made[-1].commit,
            prefixes=tuple(
                replace(each, resolved=self.resolved.get(each.number, ())) for each in made
            ),
            branch=branch,
            published=branch == self.request.branch,
            vehicle_number=None if draft is None else draft[0],
            vehicle_url=None if draft is None else draft[1],
        )

    def _unavailable(self, words: str) -> Unavailable:
        later = self.client.clock.now() + timedelta(seconds=limits.UNAVAILABLE_S)
        return Unavailable(f"The test branch cannot be made now: {words}.", later)


def _head_gone(step: BuildStep) -> Gone:
    return Gone(f"The head of {step.number} is gone.", GoneKind.PULL_REQUEST)


async def discard(client: RepositoryClient, branch: str) -> None:
    """Delete the branch, which closes its draft pull request; does nothing without a branch."""
    await refs.retry_unknown(client, lambda: _discard(client, branch))


async def restore(client: RepositoryClient, branch: str, sha: Sha) -> None:
    """Create the branch again and reopen its draft; raises Refused(NAME_TAKEN)."""
    await refs.retry_unknown(client, lambda: _restore(client, branch, sha))


async def vehicles(client: RepositoryClient) -> tuple[VehicleRef, ...]:
    """Return every branch under our prefix."""
    listed, _ = await client.listed(f"/git/matching-refs/{refs.head_path(refs.PREFIX)}")
    named = [reading.ref_of(each) for each in listed]
    return tuple(VehicleRef(name.removeprefix(refs.HEADS), sha) for name, sha in named)


async def _discard(client: RepositoryClient, branch: str) -> None:
    if await refs.delete_branch(client, branch):
        return
    # Gone before: then GitHub closed the draft as well, unless the deletion was not ours.
    for number, _, _ in await _pulls_of(client, branch, "open"):
        await _set_state(client, number, "closed")


async def _restore(client: RepositoryClient, branch: str, sha: Sha) -> None:
    is_created = await refs.create_branch(client, branch, sha)
    if not is_created and await refs.read_head(client, branch) != sha:
        raise Refused(f"{branch} points elsewhere.", RefusedCode.NAME_TAKEN)
    if await _pulls_of(client, branch, "open"):
        return
    for number, head, _ in (await _pulls_of(client, branch, "closed"))[:1]:
        if head == sha:
            await _set_state(client, number, "open")


async def _pulls_of(
    client: RepositoryClient, branch: str, state: str
) -> list[tuple[int, Sha, str]]:
    """Return the pull requests with this branch of ours as head, newest first."""
    return [reading.pull_ref_of(each) for each in await refs.pulls_from(client, branch, state)]


async def _set_state(client: RepositoryClient, number: int, state: str) -> None:
    """Close or reopen a pull request; GitHub refuses to reopen a merged one, which is fine."""
    await client.create("PATCH", f"/pulls/{number}", {"state": state}, expects=(422,))


async def start_dry_test(client: RepositoryClient, request: DryTestRequest) -> DryTest:
    """Make the branch and open its draft pull request, where test branches are drafts.

    Raises Refused, and removes the branch if its draft is refused for another reason than that
    the repository has none.
    """
    sha = await empty_commit(client, request.tip, request.message)
    if not await refs.create_branch(client, request.branch, sha):
        raise Refused(f"{request.branch} exists.", RefusedCode.NAME_TAKEN)
    if request.vehicle is Vehicle.PUSH:
        return DryTest(request.branch, sha)
    try:
        await open_draft(client, request)
    except Refused as refused:
        if refused.code is not RefusedCode.DRAFT_NOT_SUPPORTED:
            await refs.delete_branch(client, request.branch)
            raise
        return DryTest(request.branch, sha, refused.message)
    return DryTest(request.branch, sha)


async def empty_commit(client: RepositoryClient, parent: Sha, message: str) -> Sha:
    """Make a commit that changes nothing, on no branch. Raises Gone for an unknown parent."""
    base = await refs.read_commit(client, parent)
    if base is None:
        raise Gone(f"Commit {parent} is gone.", GoneKind.BRANCH)
    body = {"message": message, "tree": base.tree, "parents": [base.sha]}
    made = await client.send("POST", "/git/commits", body)
    return Sha(made.fields.text("sha"))


async def open_draft(client: RepositoryClient, request: DryTestRequest) -> int:
    """Open the draft pull request of a branch that was just made; its number. Raises Refused."""
    body = {
        "title": request.title,
        "body": request.body,
        "head": request.branch,
        "base": request.target,
        "draft": True,
    }
    for wait_s in limits.YOUNG_WAITS_S:
        answer = await client.create("POST", "/pulls", body, expects=(422,))
        if answer.status < 300:
            return reading.pull_ref_of(answer.fields)[0]
        if "head invalid" not in answer.message.lower():
            break
        # Our branch may not be visible yet where pull requests are made.
        await client.clock.sleep(wait_s)
    raise client.github.error_of(answer, "/pulls")
