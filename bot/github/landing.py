"""Bringing tested commits onto the target: one call each, and what can be read back.

Nothing here repeats a landing, repairs the target or judges what landed: commits, parents and
trees are returned as read, and the service proves them (RELIABILITY.md 2).
"""

from dataclasses import dataclass

from bot.github import commits, graphql
from bot.github.answers import METHOD_WORDS
from bot.github.client import quoted
from bot.github.graphql import NO_COMMIT, RefUpdate
from bot.github.graphql import Trouble as GraphQLTrouble
from bot.github.line import Line
from bot.github.notices import Notices
from bot.github.protection import Protection
from bot.github.pull_requests import PullRequests
from bot.github.remembered import Remembered
from bot.github.wire import Answer
from service.provider.errors import (
    Gone,
    GoneKind,
    NotPermitted,
    OutcomeUnknown,
    ProviderError,
    Refused,
    RefusedCode,
)
from service.provider.values import (
    AdvanceRequest,
    LandStop,
    LandStopCode,
    Merged,
    MergeRequest,
    PullRequest,
    Reply,
)
from service.vocabulary import (
    BlockerCode,
    Mergeability,
    MergeMethod,
    PullRequestState,
    RepoRef,
    Sha,
)

READS_S = 5.0  # ahead of an advance: its permit runs already
# A read right after our own write may answer the state before it.
TIP_WAITS_S = (0.0, 1.0, 2.0, 4.0, 8.0)
SHOWN_WAITS_S = (5.0, 10.0, 15.0, 30.0, 60.0)  # 120 s in all


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: an answer's status and a part of its message, in lower case."""

    statuses: tuple[int, ...]
    part: str
    code: LandStopCode


# First match wins (GITHUB.md 5.3). CONFLICT, REBASE_DIFFERS and RULE_DENIED are then compared
# with the facts of the pull request by `settled`.
STOPS: tuple[Row, ...] = (
    Row((405,), "base branch was modified", LandStopCode.RETRY),
    Row((405,), "already in progress", LandStopCode.RETRY),
    Row((405, 403, 422), "required status check", LandStopCode.CHECKS_MISSING),
    Row((409,), "head branch was modified", LandStopCode.HEAD_CHANGED),
    Row((403,), "workflows", LandStopCode.WORKFLOWS),
    Row((403,), "locked", LandStopCode.PR_REFUSED),
    Row((405,), "not authorized to push", LandStopCode.NOT_PERMITTED),
    Row((403,), "not accessible", LandStopCode.NOT_PERMITTED),
    Row((405, 403, 422), "approving review", LandStopCode.RULE_DENIED),
    Row((405, 403, 422), "through a pull request", LandStopCode.RULE_DENIED),
    Row((405, 403, 422), "rule violations", LandStopCode.RULE_DENIED),
    Row((405, 403, 422), "protected branch", LandStopCode.RULE_DENIED),
    Row((405,), "merge commits are not allowed", LandStopCode.METHOD_DENIED),
    Row((405,), "squash merges are not allowed", LandStopCode.METHOD_DENIED),
    Row((405,), "rebase merges are not allowed", LandStopCode.METHOD_DENIED),
    Row((405,), "can't be rebased", LandStopCode.REBASE_DIFFERS),
    Row((405,), "still a draft", LandStopCode.DRAFT),
    Row((405,), "not mergeable", LandStopCode.CONFLICT),
)

# The same for errors of the mutation, which come inside a 200; any status.
ADVANCE_STOPS: tuple[tuple[str, LandStopCode], ...] = (
    ("not accessible", LandStopCode.NOT_PERMITTED),
    ("updaterefs", LandStopCode.NOT_PERMITTED),  # a host without the mutation
    ("workflows", LandStopCode.WORKFLOWS),
    ("required status check", LandStopCode.RULE_DENIED),
    ("approving review", LandStopCode.RULE_DENIED),
    ("through a pull request", LandStopCode.RULE_DENIED),
    ("rule violations", LandStopCode.RULE_DENIED),
    ("protected branch", LandStopCode.RULE_DENIED),
    ("fast forward", LandStopCode.BASE_MOVED),
    ("fast-forward", LandStopCode.BASE_MOVED),
    ("beforeoid", LandStopCode.BASE_MOVED),
)

NEEDS_FACTS = frozenset(
    {LandStopCode.CONFLICT, LandStopCode.REBASE_DIFFERS, LandStopCode.RULE_DENIED}
)
# What one pull request alone can be the cause of, while the rules are as they were.
OWN_CAUSES = frozenset(
    {
        BlockerCode.REVIEW_REQUIRED,
        BlockerCode.CHANGES_REQUESTED,
        BlockerCode.CONVERSATIONS_UNRESOLVED,
    }
)


def stop_of(status: int, message: str) -> LandStopCode:
    """What a refused merge call says by itself."""
    words = message.lower().replace("\u2019", "'")
    return next(
        (row.code for row in STOPS if status in row.statuses and row.part in words),
        LandStopCode.OTHER,
    )


def advance_stop_of(trouble: GraphQLTrouble) -> LandStopCode:
    """What a refused mutation says by itself."""
    words = trouble.message.lower()
    if trouble.type == "FORBIDDEN":
        return LandStopCode.NOT_PERMITTED
    return next((code for part, code in ADVANCE_STOPS if part in words), LandStopCode.OTHER)


def settled(code: LandStopCode, facts: PullRequest) -> LandStopCode:
    """The same after a look at the pull request."""
    conflicts = facts.mergeability is Mergeability.NOT_MERGEABLE
    if code is LandStopCode.REBASE_DIFFERS:
        return LandStopCode.CONFLICT if conflicts else code
    if code is LandStopCode.RULE_DENIED:
        own = any(blocker.code in OWN_CAUSES for blocker in facts.blockers)
        return LandStopCode.PR_REFUSED if own else code
    if facts.state is not PullRequestState.OPEN:
        return LandStopCode.CLOSED
    if facts.draft:
        return LandStopCode.DRAFT
    return LandStopCode.CONFLICT if conflicts else LandStopCode.RETRY


class Landing:
    """The two ways to land, and their read-backs."""

    def __init__(
        self,
        remembered: Remembered,
        pulls: PullRequests,
        protection: Protection,
        notices: Notices,
    ) -> None:
        self._remembered = remembered
        self._pulls = pulls
        self._protection = protection
        self._notices = notices

    async def merge(self, line: Line, request: MergeRequest) -> Merged | LandStop:
        """One merge call, sent once. Raises OutcomeUnknown, Gone, Throttled, Unavailable."""
        denied = self._method_denied(line.repo, request.target, request.method)
        if denied is not None:
            return denied
        answer = await line.create(
            "PUT",
            f"/pulls/{request.number}/merge",
            _merge_body(request),
            expects=(403, 405, 409, 422),
        )
        if answer.status >= 300:
            return await self._stop(line, request, answer)
        commit = Sha(answer.fields.text("sha"))
        return await self._landed(line, request.target, commit, request.expect_parent)

    async def merged(self, line: Line, request: MergeRequest) -> Merged | None:
        """What a merge call landed, None while the pull request is not merged."""
        facts = await self._pulls.pull_request(line, request.number, waits_s=())
        if facts.state is not PullRequestState.MERGED or facts.merge_commit is None:
            return None
        return await self._read(line, request.target, facts.merge_commit, request.expect_parent)

    async def advance(self, line: Line, request: AdvanceRequest) -> Merged | LandStop:
        """One compare-and-swap of target and test branch, sent once. Raises OutcomeUnknown."""
        started_s = line.clock.monotonic_s()
        if not await commits.contains(line, request.expect, request.to):
            words = f"{request.to} does not descend from {request.expect}."
            return LandStop(LandStopCode.STALE, words)
        node = await self._node(line)
        if line.clock.monotonic_s() - started_s > READS_S:
            words = "Reading took too long, so nothing was sent."
            return LandStop(LandStopCode.RETRY, words)
        updates = (
            RefUpdate(request.target, request.expect, request.to),
            RefUpdate(request.test_branch, request.to, NO_COMMIT),
        )
        try:
            answer, troubles = await graphql.update_refs(line, node, updates)
        except NotPermitted as denied:
            return LandStop(LandStopCode.NOT_PERMITTED, quoted(denied.message))
        except Refused as refused:
            is_workflows = refused.code is RefusedCode.WORKFLOWS
            code = LandStopCode.WORKFLOWS if is_workflows else LandStopCode.OTHER
            return LandStop(code, quoted(refused.message))
        if not troubles:
            return await self._landed(line, request.target, request.to, request.expect)
        tip = await commits.tip(line, self._remembered, request.target)
        code = advance_stop_of(troubles[0])
        if tip is None or tip.sha != request.expect:
            code = LandStopCode.BASE_MOVED
        return LandStop(code, quoted(troubles[0].message), answer.request_id)

    async def advanced(self, line: Line, request: AdvanceRequest) -> Merged | None:
        """What an advance landed, None while `to` is not in the target."""
        tip = await commits.tip(line, self._remembered, request.target)
        if tip is None or tip.sha == request.expect:
            return None
        if not await commits.contains(line, request.to, tip.sha):
            return None
        return Merged(request.to, await commits.chain(line, self._remembered, tip, request.expect))

    async def settle_merged(self, line: Line, number: int, head: Sha, commit: Sha) -> bool:
        """Wait until GitHub shows the pull request as merged, else say so and close it (5.5)."""
        facts = await self._pulls.pull_request(line, number, waits_s=())
        for wait_s in SHOWN_WAITS_S:
            if facts.state is not PullRequestState.OPEN:
                break
            await line.clock.sleep(wait_s)
            facts = await self._pulls.pull_request(line, number, waits_s=())
        if facts.state is PullRequestState.OPEN and facts.head_sha == head:
            words = (
                f"The commits of this pull request are in `{facts.base_branch}` as "
                f"`{commit[:8]}`. GitHub does not show it as merged, so it is closed here."
            )
            await self._notices.say(line, Reply(number, f"landed-{commit}", words))
            await line.create("PATCH", f"/pulls/{number}", {"state": "closed"})
        return facts.state is PullRequestState.MERGED

    def _method_denied(self, repo: RepoRef, target: str, method: MergeMethod) -> LandStop | None:
        rules = self._protection.kept(repo, target)
        allowed = None if rules is None else rules.known.merge_methods
        if allowed is None or method in allowed:
            return None
        words = f"The rules of {target} do not allow {METHOD_WORDS[method]} merges."
        return LandStop(LandStopCode.METHOD_DENIED, words)

    async def _stop(self, line: Line, request: MergeRequest, answer: Answer) -> LandStop:
        code = stop_of(answer.status, answer.message)
        if code in NEEDS_FACTS:
            facts = await self._pulls.pull_request(line, request.number, waits_s=())
            code = settled(code, facts)
        if code is LandStopCode.RETRY:
            tip = await commits.tip(line, self._remembered, request.target)
            if tip is None or tip.sha != request.expect_parent:
                code = LandStopCode.BASE_MOVED
        return LandStop(code, quoted(answer.message), answer.request_id)

    async def _landed(self, line: Line, target: str, commit: Sha, expect: Sha) -> Merged:
        """The landing read back; if that fails it has happened all the same."""
        try:
            return await self._read(line, target, commit, expect)
        except ProviderError as failure:
            raise OutcomeUnknown(f"{commit} landed; its proof: {failure.message}") from failure

    async def _read(self, line: Line, target: str, commit: Sha, expect: Sha) -> Merged:
        tip = None
        for wait_s in TIP_WAITS_S:
            await line.clock.sleep(wait_s)
            tip = await commits.tip(line, self._remembered, target)
            if tip is not None and tip.sha != expect:
                break
        if tip is None:
            raise Gone(f"{target} is gone.", GoneKind.BRANCH)
        return Merged(commit, await commits.chain(line, self._remembered, tip, expect))

    async def _node(self, line: Line) -> str:
        known = self._remembered.node(line.repo)
        if known is None:
            known = await graphql.repository_node(line)
            self._remembered.keep_node(line.repo, known)
        return known


def _merge_body(request: MergeRequest) -> dict[str, object]:
    body: dict[str, object] = {
        "sha": request.head_sha,
        "merge_method": METHOD_WORDS[request.method],
    }
    if request.title is not None:
        body["commit_title"] = request.title
    if request.message is not None:
        body["commit_message"] = request.message
    return body
