"""Native stacks: their members as GitHub lists them, and the merge call that lands a member.

GitHub merges a member of a stack by its asynchronous merge API alone, and lands every unmerged
member below with it. So a member is sent only if those below it are the ones that were tested.
Source: https://docs.github.com/rest/pulls/pulls#merge-a-pull-request-asynchronously
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.github.client import RepositoryClient
from bot.github.reading import Fields
from bot.github.wire import Answer
from service.provider.errors import GoneKind, OutcomeUnknown, ProviderError
from service.provider.stacks import Stack, StackMember
from service.provider.values import MergeRequest
from service.vocabulary import Blocker, BlockerCode, PullRequestState, Sha

# A request is polled for a minute; one that is still pending is read back later.
POLL_WAITS_S = (1.0, 1.0, 2.0, 2.0, 4.0, 5.0, 5.0, 10.0, 10.0, 10.0, 10.0)
PENDING_FOR = timedelta(seconds=60)
"""The time after it was sent in which a request whose id is not known may be pending."""
ANSWERS = (400, 403, 404, 409, 422)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A merge request that ended without a merge."""

    status: int
    message: str
    request_id: str = ""


async def find(client: RepositoryClient, number: int, head: Sha) -> Stack | None:
    """Return the native stack of an open pull request; None outside of any stack.

    A head seen outside of any stack is not read again.
    """
    if client.caches.is_unstacked(client.repo, number, head):
        return None
    answer = await client.get(f"/pulls/{number}", missing=GoneKind.PULL_REQUEST, is_kept=True)
    shown = answer.fields.inner_or_none("stack")
    if shown is None:
        client.caches.keep_unstacked(client.repo, number, head)
        return None
    client.caches.keep_unstacked(client.repo, number, None)
    target = shown.inner("base").text("ref")
    listed = await client.find("/stacks", {"pull_request": number})
    for each in [] if listed is None else listed.objects:
        members = tuple(_member_of(one) for one in each.each("pull_requests"))
        if each.inner("base").text("ref") == target and number in {one.number for one in members}:
            return Stack(target, members)
    return Stack(target, ())


def blocker_of(stack: Stack, number: int) -> Blocker | None:
    """Return the blocker of a member with unmerged members below it; the name lists them."""
    if not stack.members:
        return Blocker(BlockerCode.STACKED)
    below = stack.below(number)
    if not below:
        return None
    return Blocker(BlockerCode.STACKED, " ".join(str(one.number) for one in below))


async def merge(client: RepositoryClient, number: int, body: dict[str, object]) -> Sha | Refusal:
    """Request a merge once and wait up to a minute for its result. Raises OutcomeUnknown.

    A request that is pending already for the same head, from before an interruption, is waited
    for.
    """
    tail = f"/pulls/{number}/merge-async"
    body = {**body, "merge_action": "direct_merge"}
    answer = await client.create("PUT", tail, body, expects=ANSWERS)
    if _state_of(answer) == "pending":
        details = answer.fields.inner("details")
        if details.text_or("expected_head_sha", None) not in (None, body["sha"]):
            return Refusal(answer.status, details.words("message"), answer.request_id)
        answer = await _result(client, number, details.text("uuid"))
    state = _state_of(answer)
    if state == "merged":
        return Sha(answer.fields.inner("details").text("sha"))
    if state in ("pending", "enqueued"):
        raise OutcomeUnknown(f"The merge of pull request {number} is {state}.")
    return Refusal(answer.status, _message_of(answer), answer.request_id)


async def _result(client: RepositoryClient, number: int, uuid: str) -> Answer:
    """Poll a request; the answer is still pending after a minute. Raises OutcomeUnknown."""
    client.caches.keep_merge(client.repo, number, uuid)
    answer = None
    try:
        for wait_s in POLL_WAITS_S:
            await client.clock.sleep(wait_s)
            answer = await _read(client, number, uuid)
            if answer is None or _state_of(answer) != "pending":
                break
    except ProviderError as failure:
        raise OutcomeUnknown(f"The merge was requested; {failure.message}") from failure
    if answer is None:
        raise OutcomeUnknown(f"GitHub does not know merge request {uuid} any more.")
    return answer


async def check_not_pending(client: RepositoryClient, number: int) -> None:
    """Raise OutcomeUnknown while a merge that this process requested is pending."""
    pending = client.caches.merge(client.repo, number)
    if pending is None:
        return
    answer = await _read(client, number, pending)
    if answer is not None and _state_of(answer) == "pending":
        raise OutcomeUnknown(f"The merge of pull request {number} is pending.")


async def check_is_over(client: RepositoryClient, request: MergeRequest, at: datetime) -> None:
    """Raise OutcomeUnknown if a member that was unmerged then may have had a pending merge.

    Its id was in an answer that was lost, or in the memory of a process that ended.
    """
    if request.sent_until is None or at >= request.sent_until + PENDING_FOR:
        return
    if await find(client, request.number, request.head_sha) is not None:
        raise OutcomeUnknown(f"The merge of pull request {request.number} may be pending.")


async def _read(client: RepositoryClient, number: int, uuid: str) -> Answer | None:
    """Return the state of a merge request; None once GitHub has forgotten it."""
    answer = await client.get(f"/pulls/{number}/merge-async/{uuid}", expects=(404,))
    is_known = answer.status != 404
    if not is_known or _state_of(answer) != "pending":
        client.caches.keep_merge(client.repo, number, None)
    return answer if is_known else None


def _state_of(answer: Answer) -> str:
    """Return GitHub's word for a request; empty where the answer is an ordinary refusal."""
    if not isinstance(answer.content, dict) or "details" not in answer.content:
        return ""
    return answer.fields.words("status")


def _message_of(answer: Answer) -> str:
    if not _state_of(answer):
        return answer.message
    return answer.fields.inner("details").words("message")


def _member_of(shown: Fields) -> StackMember:
    state = PullRequestState(shown.text("state"))
    if shown.text_or("merged_at", None) is not None:
        state = PullRequestState.MERGED
    return StackMember(shown.number("number"), Sha(shown.inner("head").text("sha")), state)
