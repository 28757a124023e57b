"""Pull requests opened and changed by people and Apps, and their reviews.

The caller holds the repository's lock. Refusals: the provider's "Create a pull request" and
"Update a pull request".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from bot.sandbox import deliver
from bot.sandbox.acts import heads, pull_states
from bot.sandbox.git import ZERO
from bot.sandbox.records import Actor, Issue, Json, Pull, Review, Stack, Thread
from bot.sandbox.refusal import Refusal, custom, invalid, not_found, refused, say
from bot.sandbox.shapes import pulls
from bot.sandbox.world import Repository

TITLE_MAX = 256
BODY_MAX = 1_048_576  # by REST; GraphQL takes 262,144 bytes
REVIEW_STATES = {
    "APPROVE": "APPROVED",
    "REQUEST_CHANGES": "CHANGES_REQUESTED",
    "COMMENT": "COMMENTED",
}


@dataclass(frozen=True, slots=True)
class NewPull:
    """A pull request to be opened; `head` is `branch` or `owner:branch`."""

    head: str
    base: str
    title: str
    body: str | None = None
    draft: bool = False


async def open_pull(repository: Repository, actor: Actor, new: NewPull) -> Issue:
    """Open a pull request; raises `pull_request.opened`. Raises Refusal(422)."""
    source, branch = _head_of(repository, new.head)
    head = source.git.branch(branch)
    tip = repository.git.branch(new.base)
    if tip is None:
        raise invalid("base is invalid", field="base", resource="PullRequest")
    if head is None:
        raise invalid("head is invalid", field="head", resource="PullRequest")
    _check_text(new.title, new.body)
    if new.draft and not repository.settings.drafts:
        error = {"resource": "PullRequest", "code": "custom", "message": say("pull.draft")}
        raise Refusal(422, say("pull.draft"), [error])
    if not repository.git.objects.log(head, without=tip):
        raise custom("pull.no_commits", "PullRequest", new.base, branch)
    for _, known in repository.open_pulls():
        if (known.head_repo, known.head_ref, known.base_ref) == (source.id, branch, new.base):
            raise custom("pull.exists", "PullRequest", source.owner.login, branch)
    now = repository.world.now()
    issue = Issue(
        repository.world.new_id(),
        next_number(repository),
        new.title,
        new.body,
        actor.account,
        now,
        now,
    )
    issue.via = actor.app
    issue.pull = Pull(source.id, source.owner, branch, head, new.base, tip, new.draft)
    issue.pull.pusher = actor.account
    repository.issues[issue.number] = issue
    await repository.git.move([(f"refs/pull/{issue.number}/head", ZERO, head)])
    issue.pull.ci_due = True
    pull_states.look_again(repository, issue)
    await pull_states.announce(repository, issue, "opened", actor.account)
    return issue


def next_number(repository: Repository) -> int:
    """The number of the next issue or pull request."""
    return max(repository.issues, default=0) + 1


def _head_of(repository: Repository, head: str) -> tuple[Repository, str]:
    owner, colon, branch = head.partition(":")
    if not colon:
        return repository, head
    for one in repository.world.repositories.values():
        if one.lock is repository.lock and one.owner.login.lower() == owner.lower():
            return one, branch
    raise invalid("head is invalid", field="head", resource="PullRequest")


def _check_text(title: str, body: str | None) -> None:
    if not title.strip():
        raise invalid("title can't be blank", field="title", resource="PullRequest")
    if len(title) > TITLE_MAX:
        said = f"title is too long (maximum is {TITLE_MAX} characters)"
        raise invalid(said, field="title", resource="PullRequest")
    if body is not None and len(body) > BODY_MAX:
        raise invalid(say("pull.body_long"), field="body", resource="PullRequest")


async def edit(repository: Repository, actor: Actor, issue: Issue, fields: Json) -> None:
    """Change title, body, state or base; each change raises its own event."""
    if fields.get("title") is not None or "body" in fields:
        _check_text(fields.get("title") or issue.title, fields.get("body"))
        changes = {}
        if fields.get("title") not in (None, issue.title):
            changes["title"] = {"from": issue.title}
            issue.title = fields["title"]
        if "body" in fields and fields["body"] != issue.body:
            changes["body"] = {"from": issue.body or ""}
            issue.body = fields["body"]
        if changes:
            await _edited(repository, actor, issue, changes)
    if fields.get("base") is not None:
        await retarget(repository, actor, issue, fields["base"])
    if fields.get("state") == "closed":
        await pull_states.close(repository, issue, actor.account)
    if fields.get("state") == "open":
        await reopen(repository, actor, issue)


async def _edited(repository: Repository, actor: Actor, issue: Issue, changes: Json) -> None:
    issue.updated_at = repository.world.now()
    await pull_states.announce(repository, issue, "edited", actor.account, changes=changes)


async def retarget(repository: Repository, actor: Actor, issue: Issue, base: str) -> None:
    """Point a pull request at another branch; raises `edited` with the old base."""
    pull = _pull_of(issue)
    tip = repository.git.branch(base)
    if tip is None:
        raise invalid("Proposed base branch was not found", field="base", resource="PullRequest")
    if base == pull.base_ref:
        return
    if repository.stack_of(issue.number) is not None:
        raise refused("stack.base")
    old = {"ref": {"from": pull.base_ref}, "sha": {"from": pull.base_sha}}
    pull.base_ref, pull.base_sha = base, tip
    pull_states.look_again(repository, issue)
    await _edited(repository, actor, issue, {"base": old})


async def reopen(repository: Repository, actor: Actor, issue: Issue) -> None:
    """Open it again. Raises Refusal(422) when it was merged or its branch is gone."""
    pull = _pull_of(issue)
    if issue.open:
        return
    source = (
        repository.world.repositories.get(pull.head_repo) if pull.head_repo is not None else None
    )
    tip = source.git.branch(pull.head_ref) if source is not None else None
    if issue.merged or tip is None or repository.git.branch(pull.base_ref) is None:
        raise custom("pull.reopen", "PullRequest")
    issue.open, issue.closed_at, issue.closed_by = True, None, None
    if tip != pull.head_sha:
        ref = f"refs/pull/{issue.number}/head"
        await repository.git.move([(ref, pull.head_sha, tip)])
        pull.head_sha = tip
    pull.ci_due = True
    pull_states.look_again(repository, issue)
    await pull_states.announce(repository, issue, "reopened", actor.account)


async def set_draft(repository: Repository, actor: Actor, issue: Issue, draft: bool) -> None:
    """Convert to a draft, or mark ready; nothing when it is one already."""
    pull = _pull_of(issue)
    if pull.draft != draft:
        pull.draft = draft
        issue.updated_at = repository.world.now()
        action = "converted_to_draft" if draft else "ready_for_review"
        await pull_states.announce(repository, issue, action, actor.account)


@dataclass(frozen=True, slots=True)
class NewReview:
    """A review to be given: event APPROVE, REQUEST_CHANGES or COMMENT."""

    event: str
    body: str = ""
    commit: str | None = None


def review(repository: Repository, actor: Actor, issue: Issue, new: NewReview) -> Review:
    """Review a pull request; raises `pull_request_review.submitted`. Raises Refusal(422)."""
    pull = _pull_of(issue)
    if new.event not in REVIEW_STATES:
        raise invalid(f"event {new.event} is unknown", field="event", resource="Review")
    if new.event != "COMMENT" and actor.account is issue.author:
        word = "approve" if new.event == "APPROVE" else "request changes on"
        error = {"message": say("review.own", word)}
        raise Refusal(422, "Unprocessable Entity", [error])
    made = Review(
        repository.world.new_id(),
        actor.account,
        new.body,
        REVIEW_STATES[new.event],
        new.commit or pull.head_sha,
        repository.world.now(),
    )
    pull.reviews.append(made)
    heads.announce_review(repository, issue, made, "submitted", actor.account)
    return made


def discuss(repository: Repository, actor: Actor, issue: Issue, body: str) -> Thread:
    """Start a conversation on the code; the first file of the tree is its place."""
    pull = _pull_of(issue)
    lines = repository.git.objects.tree(pull.head_sha) or ()
    path = next((line.name for line in lines if line.kind == "blob"), "README.md")
    thread = Thread(repository.world.new_id("comment"), actor.account, body, path)
    pull.threads.append(thread)
    return thread


def resolve(repository: Repository, actor: Actor, issue: Issue, is_resolved: bool) -> None:
    """Resolve all conversations, or open them again; an event for each that changes."""
    pull = _pull_of(issue)
    for thread in pull.threads:
        if thread.is_resolved != is_resolved:
            thread.is_resolved = is_resolved
            fields = {
                "pull_request": pulls.pull_simple(repository, issue, pull),
                "thread": pulls.thread(repository, issue, thread),
            }
            action = "resolved" if is_resolved else "unresolved"
            deliver.emit(repository, "pull_request_review_thread", action, fields, actor.account)


async def stack(repository: Repository, actor: Actor, numbers: Sequence[int]) -> Stack:
    """Stack pull requests, the bottom first; raises `pull_request.stacked` for each.

    Raises Refusal(422) when they are no chain of one repository or one is stacked already.
    """
    members = [(issue, _pull_of(issue)) for issue in _issues_of(repository, numbers)]
    for issue, _ in members:
        if repository.stack_of(issue.number) is not None:
            raise refused("stack.member", issue.number)
    chain = pairwise(members)
    is_chain = all(above.base_ref == below.head_ref for (_, below), (_, above) in chain)
    if (
        len(members) < 2
        or not is_chain
        or any(one.head_repo != repository.id for _, one in members)
    ):
        raise refused("stack.form")
    made = Stack(
        repository.world.new_id(), len(repository.stacks) + 1, list(numbers), repository.world.now()
    )
    repository.stacks.append(made)
    for issue, _ in members:
        shown = pulls.stack_of_pull(repository, issue, made)
        await pull_states.announce(repository, issue, "stacked", actor.account, stack=shown)
    return made


def unstack(repository: Repository, number: int) -> None:
    """Dissolve the stack of a pull request. Raises Refusal(404) without one."""
    found = repository.stack_of(number)
    if found is None:
        raise not_found()
    repository.stacks.remove(found)


def _issues_of(repository: Repository, numbers: Sequence[int]) -> list[Issue]:
    found = [repository.issues.get(number) for number in numbers]
    if None in found:
        raise not_found()
    return [issue for issue in found if issue is not None]


def _pull_of(issue: Issue) -> Pull:
    if issue.pull is None:
        raise not_found()
    return issue.pull
