"""Bringing tested commits onto the target: one call each, and what can be read back.

Nothing here repeats a landing, repairs the target or judges what landed: commits, parents and
trees are returned as read, and the service proves them.

The meaning of a refused merge call comes from facts read after it and not from its wording.
GitHub's sentences change and differ by rule, so a sentence never decides more than the one pull
request. What holds a whole queue comes from the rules of the branch or from our own rights.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.github import graphql, limits, own_work, reading, refs, stacks
from bot.github.client import RepositoryClient
from bot.github.graphql import NO_COMMIT, RefUpdate
from bot.github.graphql import Trouble as GraphQLTrouble
from bot.github.limits import quoted
from bot.github.notices import Notices
from bot.github.protection import BranchRules, Protection
from bot.github.pull_requests import PullRequests
from bot.github.reading import METHOD_WORDS
from service.provider.errors import (
    Gone,
    GoneKind,
    NotPermitted,
    OutcomeUnknown,
    ProviderError,
    Refused,
    Unavailable,
)
from service.provider.stacks import Stack, StackMember
from service.provider.values import (
    AdvanceRequest,
    LandedPull,
    LandStop,
    LandStopCode,
    Merged,
    MergeRequest,
    PullRequest,
    Reply,
)
from service.vocabulary import (
    CODE_OWNERS,
    LAST_PUSH,
    Blocker,
    BlockerCode,
    Mergeability,
    MergeMethod,
    PullRequestState,
    RepoRef,
    Sha,
)

READS_S = 5.0  # ahead of a landing's call: its permit runs already
# A read right after our own write may answer the state before it.
TIP_WAITS_S = (0.0, 1.0, 2.0, 4.0, 8.0)
SHOWN_FOR = timedelta(minutes=5)  # after it was sent, a merge may not yet show on its target
WRITES = ("contents", "pull_requests")  # permissions that a landing needs
SHOWN_WAITS_S = (5.0, 10.0, 15.0, 30.0, 60.0)  # 120 s in all


REFUSALS = (400, 403, 405, 409, 422, 423)
# Errors of the mutation that no second try changes.
DENIALS = frozenset({"FORBIDDEN", "undefinedField"})
# The beginning of GitHub's words for a mutation that it ended midway: it may be done.
UNFINISHED = "something went wrong while executing"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The facts that were read after the refusal.

    `pull` has every blocker that its facts show. `merge_state` is GitHub's own summary. `rules`
    None: they could not be read. `may_write`: our token may change contents and pull requests.
    """

    status: int
    message: str
    head: Sha
    method: MergeMethod
    pull: PullRequest
    merge_state: str
    has_moved: bool
    rules: BranchRules | None
    methods: frozenset[MergeMethod]
    is_behind: bool
    is_queued: bool
    is_unsigned: bool
    may_write: bool


@dataclass(frozen=True, slots=True)
class _Finding:
    """The reason of a refused landing, with the causes that are the pull request's own."""

    code: LandStopCode
    blockers: tuple[Blocker, ...] = ()


@dataclass(frozen=True, slots=True)
class _Hint:
    """The meaning of a part of a sentence (lower case, no backticks) for one pull request."""

    part: str
    code: LandStopCode
    blocker: Blocker | None = None


_CHECKS = frozenset({BlockerCode.CHECK_MISSING, BlockerCode.CHECK_PENDING})
_ENDS = {
    BlockerCode.CLOSED: LandStopCode.CLOSED,
    BlockerCode.DRAFT: LandStopCode.DRAFT,
    BlockerCode.CONFLICT: LandStopCode.CONFLICT,
}
_BLOCKED = "BLOCKED"
_WORKFLOW_FILES = Blocker(BlockerCode.OTHER, "workflows")

_REFUSED, _RETRY = LandStopCode.PR_REFUSED, LandStopCode.RETRY
_CHECKS_MISSING = LandStopCode.CHECKS_MISSING

# Used only where no fact explains the refusal; the first that fits. Each concerns the one pull
# request. Sentences and sources: tests/github/refusals.toml.
_HINTS: tuple[_Hint, ...] = (
    _Hint("stack", _REFUSED, Blocker(BlockerCode.STACKED)),
    _Hint("is in the merge queue", _REFUSED, Blocker(BlockerCode.PROVIDER_QUEUED)),
    _Hint("added to a merge queue", _REFUSED, Blocker(BlockerCode.PROVIDER_QUEUED)),
    _Hint("must be resolved", _REFUSED, Blocker(BlockerCode.CONVERSATIONS_UNRESOLVED)),
    _Hint("code owner", _REFUSED, Blocker(BlockerCode.REVIEW_REQUIRED, CODE_OWNERS)),
    _Hint("last pusher", _REFUSED, Blocker(BlockerCode.REVIEW_REQUIRED, LAST_PUSH)),
    _Hint("approving review", _REFUSED, Blocker(BlockerCode.REVIEW_REQUIRED)),
    _Hint("requesting changes", _REFUSED, Blocker(BlockerCode.CHANGES_REQUESTED)),
    _Hint("changes have been requested", _REFUSED, Blocker(BlockerCode.CHANGES_REQUESTED)),
    _Hint("required status check", _CHECKS_MISSING),
    _Hint("signatures", _REFUSED, Blocker(BlockerCode.UNSIGNED)),
    _Hint("deployment", _REFUSED, Blocker(BlockerCode.OTHER, "required_deployments")),
    _Hint("code scanning", _REFUSED, Blocker(BlockerCode.OTHER, "code_scanning")),
    _Hint("commit message", _REFUSED, Blocker(BlockerCode.OTHER, "commit_message_pattern")),
    _Hint("required workflow", _REFUSED, Blocker(BlockerCode.OTHER, "workflows")),
    _Hint("can't be rebased", LandStopCode.REBASE_DIFFERS),
    _Hint("is locked", _REFUSED),
    _Hint("base branch was modified", _RETRY),
    _Hint("head branch", _RETRY),
    _Hint("already in progress", _RETRY),
    _Hint("merge request already exists", _RETRY),
    _Hint("has not yet completed", _RETRY),
    _Hint("merge conflict", _RETRY),
    _Hint("not mergeable", _RETRY),
    _Hint("is closed", _RETRY),
    _Hint("still a draft", _RETRY),
)
_NAMED = re.compile(r'required status check "(?P<name>.*)" (?P<rest>is|was)', re.IGNORECASE)


def advance_stop_of(trouble: GraphQLTrouble) -> LandStopCode:
    """Return whether a refused mutation may be tried again, or the merge call has to be used.

    The target has not moved. A refusal of the provider's own never decides more: the merge call
    is judged by the facts of each pull request.
    """
    is_missing = "updaterefs" in trouble.message.lower()  # a host without the mutation
    if trouble.type in DENIALS or is_missing:
        return LandStopCode.NOT_PERMITTED
    return LandStopCode.RULE_DENIED


class Landing:
    """The two ways to land, and their read-backs."""

    def __init__(
        self,
        pulls: PullRequests,
        protection: Protection,
        notices: Notices,
    ) -> None:
        self._pulls = pulls
        self._protection = protection
        self._notices = notices

    async def merge(self, client: RepositoryClient, request: MergeRequest) -> Merged | LandStop:
        """Send one merge call, once. Raises OutcomeUnknown, Gone, Throttled, Unavailable."""
        denied = self._method_denied(client.repo, request.target, request.method)
        if denied is not None:
            return denied
        started_s = client.clock.monotonic_s()
        stack = await stacks.find(client, request.number, request.head_sha)
        stop = _stack_stop(stack, request) or _slow_stop(client, started_s)
        if stop is not None:
            return stop
        send = _merge_call if stack is None else stacks.merge
        found = await send(client, request.number, _merge_body(request))
        if isinstance(found, stacks.Refusal):
            return await self._stop(client, request, found)
        landed = await self._landed(client, request.target, found, request.expect_parent)
        return _shown(landed, request.target)

    async def merged(self, client: RepositoryClient, request: MergeRequest) -> Merged | None:
        """Return what a merge call landed; None while it is not merged, or if another merged it.

        Raises OutcomeUnknown while a merge is or may be pending, or may not yet be shown. None also
        if GitHub does not name the commit later either, which its schema allows:
        https://docs.github.com/en/graphql/reference/objects#pullrequest
        """
        # What the reads show may be as old as this: a later one may have to wait for a limit.
        asked_at = client.clock.now()
        await stacks.check_not_pending(client, request.number)
        facts = await self._pulls.pull_request_now(client, request.number)
        if facts.state is not PullRequestState.MERGED:
            await stacks.check_is_over(client, request, asked_at)
            return None
        if await own_work.is_merged_by_another(client, request.number):
            return None  # it merges once, so no call of ours has merged it
        is_young = _is_young(request, asked_at)
        if facts.merge_commit is None:
            if is_young:
                raise OutcomeUnknown(f"GitHub does not name the commit of {request.number} yet.")
            return None  # its commits show as a move of the target
        target = request.target
        found = await self._read(client, target, facts.merge_commit, request.expect_parent)
        return _shown(found, target) if is_young else found

    async def advance(self, client: RepositoryClient, request: AdvanceRequest) -> Merged | LandStop:
        """Send one compare-and-swap of target and test branch, once. Raises OutcomeUnknown.

        An error in the answer does not always mean that nothing was done. A second update is
        refused because the first one, whose answer was lost, has deleted the test branch.
        """
        started_s = client.clock.monotonic_s()
        if not await refs.is_ancestor(client, request.expect, request.to):
            words = f"{request.to} does not descend from {request.expect}."
            return LandStop(LandStopCode.STALE, words)
        node = await self._node(client)
        slow = _slow_stop(client, started_s)
        if slow is not None:
            return slow
        updates = (
            RefUpdate(request.target, request.expect, request.to),
            RefUpdate(request.test_branch, request.to, NO_COMMIT),
        )
        try:
            answer, troubles = await graphql.update_refs(client, node, updates)
        except NotPermitted as denied:
            return LandStop(LandStopCode.NOT_PERMITTED, quoted(denied.message))
        except Refused as refused:
            return LandStop(LandStopCode.RULE_DENIED, quoted(refused.message))
        if not troubles:
            client.caches.keep_advanced(client.repo, request.to)
            landed = await self._landed(client, request.target, request.to, request.expect)
            return _shown(landed, request.target)
        words = quoted(troubles[0].message)
        tip = await refs.read_tip(client, request.target)
        is_there = tip is not None and tip.sha == request.to
        if is_there or UNFINISHED in words.lower():
            raise OutcomeUnknown(f"The update of {request.target}: {words}")
        if request.sent_until is not None:
            head = await refs.read_head(client, request.test_branch)
            if head is None:
                raise OutcomeUnknown(f"The first update of {request.target} may be done: {words}")
        code = advance_stop_of(troubles[0])
        if tip is None or tip.sha != request.expect:
            code = LandStopCode.BASE_MOVED
        return LandStop(code, words, answer.request_id)

    async def advanced(self, client: RepositoryClient, request: AdvanceRequest) -> Merged | None:
        """Return what an advance landed; None if it was not done, or if a later push removed it.

        GitHub updates both branches or none. So the advance was done if GitHub has answered so, or
        if the test branch is gone, although the target shows its old tip: an old answer, or a
        person has moved it back. Raises OutcomeUnknown while the answer may be an old one.
        """
        asked_at = client.clock.now()
        tip = await refs.read_tip(client, request.target)
        if tip is None:
            return None
        if tip.sha == request.expect:
            is_done = client.caches.is_advanced(client.repo, request.to)
            if not is_done and await refs.read_head(client, request.test_branch) is not None:
                return None
            found = Merged(request.to, ())
            return _shown(found, request.target) if _is_young(request, asked_at) else found
        if not await refs.is_ancestor(client, request.to, tip.sha):
            return None
        return Merged(request.to, await refs.first_parents(client, tip, request.expect))

    async def settle_merged(self, client: RepositoryClient, landed: LandedPull) -> bool:
        """Wait until GitHub shows it as merged, if it can, else comment and close it.

        One with another head or base by now is left open. Return whether it is merged.
        """
        number, commit = landed.number, landed.commit
        facts = await self._pulls.pull_request_now(client, number)
        for wait_s in SHOWN_WAITS_S if landed.may_show else ():
            if not _is_open_as(landed, facts):
                break
            await client.clock.sleep(wait_s)
            facts = await self._pulls.pull_request_now(client, number)
        if _is_open_as(landed, facts):
            words = (
                f"This pull request has landed on `{landed.target}` as `{commit[:8]}`, the commit "
                "that was tested. GitHub does not show it as merged, so it is closed here."
            )
            await self._notices.say(client, Reply(number, f"landed-{commit}", words))
            await client.create("PATCH", f"/pulls/{number}", {"state": "closed"})
        return facts.state is PullRequestState.MERGED

    def _method_denied(self, repo: RepoRef, target: str, method: MergeMethod) -> LandStop | None:
        rules = self._protection.kept(repo, target)
        allowed = None if rules is None else rules.known.merge_methods
        if allowed is None or method in allowed:
            return None
        words = f"The rules of {target} do not allow {METHOD_WORDS[method]} merges."
        return LandStop(LandStopCode.METHOD_DENIED, words)

    async def _stop(
        self, client: RepositoryClient, request: MergeRequest, answer: stacks.Refusal
    ) -> LandStop:
        """Return why it was refused, by facts and rules read after the refusal."""
        words = quoted(answer.message)
        try:
            evidence = await self._evidence(client, request, answer)
        except NotPermitted:
            return LandStop(LandStopCode.NOT_PERMITTED, words, answer.request_id)
        except (Unavailable, OutcomeUnknown):
            # Nothing landed, and nothing is known of why: ask again.
            unread = quoted(f"GitHub does not answer why it refused: {answer.message}")
            return LandStop(LandStopCode.UNAVAILABLE, unread, answer.request_id)
        found = judged(evidence)
        return LandStop(found.code, words, answer.request_id, found.blockers, evidence.pull)

    async def _evidence(
        self, client: RepositoryClient, request: MergeRequest, answer: stacks.Refusal
    ) -> Evidence:
        client.caches.keep_unstacked(client.repo, request.number, None)
        rules = await self._rules(client, request.target)
        pull, state = await self._pulls.with_state(client, request.number)
        tip = await refs.read_tip(client, request.target)
        repository = reading.repository_of((await client.get("")).fields, client.repo.host)
        is_signed = rules is None or not rules.needs_signatures
        is_behind = False
        if rules is not None and rules.is_strict and tip is not None:
            is_behind = not await refs.is_ancestor(client, tip.sha, pull.head_sha)
        return Evidence(
            status=answer.status,
            message=answer.message,
            head=request.head_sha,
            method=request.method,
            pull=pull,
            merge_state=state.merge_state,
            has_moved=tip is None or tip.sha != request.expect_parent,
            rules=rules,
            methods=repository.merge_methods,
            is_behind=is_behind,
            is_queued=await self._is_queued(client, request.number),
            is_unsigned=not is_signed and await self._is_unsigned(client, request),
            may_write=answer.status != 403 or await _may_write(client),
        )

    async def _rules(self, client: RepositoryClient, branch: str) -> BranchRules | None:
        try:
            return await self._protection.fresh_rules(client, branch)
        except (NotPermitted, Gone):
            return None

    async def _is_queued(self, client: RepositoryClient, number: int) -> bool:
        try:
            return await graphql.is_queued(client, number)
        except (NotPermitted, Unavailable):
            return False  # a host without the field has no such queue

    async def _is_unsigned(self, client: RepositoryClient, request: MergeRequest) -> bool:
        """Return whether a commit that would come onto the branch has no verified signature."""
        if request.method is MergeMethod.SQUASH:
            return False
        listed, _ = await client.listed(f"/pulls/{request.number}/commits")
        return not all(reading.is_signed(each) for each in listed)

    async def _landed(
        self, client: RepositoryClient, target: str, commit: Sha, expect: Sha
    ) -> Merged:
        """Read the landing back; it has happened even when that fails."""
        try:
            return await self._read(client, target, commit, expect)
        except ProviderError as failure:
            raise OutcomeUnknown(f"{commit} landed; its proof: {failure.message}") from failure

    async def _read(
        self, client: RepositoryClient, target: str, commit: Sha, expect: Sha
    ) -> Merged:
        tip = None
        for wait_s in TIP_WAITS_S:
            await client.clock.sleep(wait_s)
            tip = await refs.read_tip(client, target)
            if tip is not None and tip.sha != expect:
                break
        if tip is None:
            raise Gone(f"{target} is gone.", GoneKind.BRANCH)
        return Merged(commit, await refs.first_parents(client, tip, expect))

    async def _node(self, client: RepositoryClient) -> str:
        known = client.caches.node(client.repo)
        if known is None:
            known = await graphql.repository_node(client)
            client.caches.keep_node(client.repo, known)
        return known


def _is_open_as(landed: LandedPull, facts: PullRequest) -> bool:
    """Return whether it is open with that head and base; GitHub moves a chain's base by itself."""
    is_open = (facts.state, facts.head_sha) == (PullRequestState.OPEN, landed.head_sha)
    return is_open and facts.base_branch in (landed.base, landed.target)


def _shown(found: Merged, target: str) -> Merged:
    """Return a landing that its target shows; raise OutcomeUnknown for one that it does not.

    An old answer would pass for a target that something has moved back.
    """
    if found.chain == ():
        raise OutcomeUnknown(f"{found.commit} landed, and {target} does not show it yet.")
    return found


def _is_young(request: MergeRequest | AdvanceRequest, at: datetime) -> bool:
    """Return whether the call was sent so lately that its target may not have shown it then."""
    sent_until = request.sent_until
    return sent_until is not None and at < sent_until + SHOWN_FOR


def _slow_stop(client: RepositoryClient, started_s: float) -> LandStop | None:
    """Return why a call is not sent whose reads have used up too much of its permit."""
    if client.clock.monotonic_s() - started_s <= READS_S:
        return None
    return LandStop(LandStopCode.UNAVAILABLE, "GitHub answers too slowly, so nothing was sent.")


def _stack_stop(stack: Stack | None, request: MergeRequest) -> LandStop | None:
    """Return why a member is not sent: GitHub also lands those below, tested or not."""
    if stack is None:
        below: tuple[StackMember, ...] | None = ()
    else:
        below = stack.below(request.number) if stack.members else None
    if below is not None and tuple((one.number, one.head_sha) for one in below) == request.below:
        return None
    if request.below:
        words = "The stack is not as it was tested."
        return LandStop(LandStopCode.STALE, words)
    blocker = None if stack is None else stacks.blocker_of(stack, request.number)
    words = "Members of its stack that are below it have not merged."
    return LandStop(LandStopCode.PR_REFUSED, words, blockers=(blocker,) if blocker else ())


async def _merge_call(
    client: RepositoryClient, number: int, body: dict[str, object]
) -> Sha | stacks.Refusal:
    answer = await client.create("PUT", f"/pulls/{number}/merge", body, expects=REFUSALS)
    if answer.status >= 300:
        return stacks.Refusal(answer.status, answer.message, answer.request_id)
    return Sha(answer.fields.text("sha"))


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


async def _may_write(client: RepositoryClient) -> bool:
    """Return whether a token minted now may change contents and pull requests."""
    client.github.tokens.drop(client.repo)
    granted = (await client.github.tokens.of(client.repo)).permissions
    return all(granted.get(name) == "write" for name in WRITES)


def judged(evidence: Evidence) -> _Finding:
    """Return why GitHub refused: the pull request's facts first, then rules, then the sentence."""
    return (
        _by_the_pull_request(evidence)
        or _by_the_branch(evidence)
        or _by_our_rights(evidence)
        or _by_the_sentence(evidence)
    )


def _by_the_pull_request(evidence: Evidence) -> _Finding | None:
    pull = evidence.pull
    if pull.state is not PullRequestState.OPEN:
        return _Finding(LandStopCode.CLOSED)
    if pull.head_sha != evidence.head:
        return _Finding(LandStopCode.HEAD_CHANGED)
    if pull.draft:
        return _Finding(LandStopCode.DRAFT)
    if evidence.has_moved:
        return _Finding(LandStopCode.BASE_MOVED)
    if pull.mergeability is Mergeability.NOT_MERGEABLE:
        return _Finding(LandStopCode.CONFLICT)
    own = _own_causes(evidence)
    if any(each == _WORKFLOW_FILES for each in own):
        return _Finding(LandStopCode.WORKFLOWS, own)
    if own:
        only_checks = all(each.code in _CHECKS for each in own)
        return _Finding(_CHECKS_MISSING if only_checks else _REFUSED, own)
    if pull.mergeability is Mergeability.IN_PROGRESS:
        return _Finding(_RETRY)
    return None


def _own_causes(evidence: Evidence) -> tuple[Blocker, ...]:
    found = [each for each in evidence.pull.blockers if each.code not in _ENDS]
    if evidence.is_queued:
        found.append(Blocker(BlockerCode.PROVIDER_QUEUED))
    if evidence.is_unsigned:
        found.append(Blocker(BlockerCode.UNSIGNED))
    return tuple(found)


def _by_the_branch(evidence: Evidence) -> _Finding | None:
    """Return the setting of the branch that excludes every landing."""
    rules = evidence.rules
    if evidence.method not in evidence.methods:
        return _Finding(LandStopCode.METHOD_DENIED)
    if rules is None:
        return None
    allowed = rules.known.merge_methods
    if allowed is not None and evidence.method not in allowed:
        return _Finding(LandStopCode.METHOD_DENIED)
    if rules.has_queue:
        return _Finding(LandStopCode.PROVIDER_QUEUE)
    if rules.is_closed:
        return _Finding(LandStopCode.RULE_DENIED)
    if rules.is_strict and evidence.is_behind:
        return _Finding(LandStopCode.STRICT)
    return None


def _by_our_rights(evidence: Evidence) -> _Finding | None:
    return None if evidence.may_write else _Finding(LandStopCode.NOT_PERMITTED)


def _by_the_sentence(evidence: Evidence) -> _Finding:
    """Return what the sentence suggests, if no fact explains the refusal."""
    words = evidence.message.lower().replace("\u2019", "'").replace("`", "")
    if evidence.status == 403 and limits.is_about_workflows(words):
        return _Finding(LandStopCode.WORKFLOWS)
    if evidence.status == 423:
        return _Finding(_RETRY)
    hint = next((hint for hint in _HINTS if hint.part in words), None)
    if hint is not None:
        blockers = () if hint.blocker is None else (hint.blocker,)
        return _Finding(hint.code, blockers or _named_check(evidence.message))
    if evidence.merge_state != _BLOCKED:
        return _Finding(LandStopCode.OTHER)
    unseen = () if evidence.rules is None else evidence.rules.unseen
    return _Finding(_REFUSED, tuple(Blocker(BlockerCode.OTHER, name) for name in unseen))


def _named_check(message: str) -> tuple[Blocker, ...]:
    found = _NAMED.search(message)
    if found is None:
        return ()
    return (Blocker(BlockerCode.CHECK_MISSING, found["name"]),)
