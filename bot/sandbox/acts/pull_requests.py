"""Pull requests opened and changed by people and Apps, and their reviews.

The caller holds the repository's lock. Refusals: the provider's "Create a pull request" and
"Update a pull request".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from bot.sandbox import deliver
from bot.sandbox.acts import pull_states
from bot.sandbox.git import ZERO
from bot.sandbox.records import Actor, AutoMerge, Json, Review, Stack, Thread
from bot.sandbox.refusal import Refusal, custom, invalid, refused, say
from bot.sandbox.shapes import pulls
from bot.sandbox.world import PullRequest, Repository

TITLE_MAX = 256
BODY_MAX = 1_048_576  # by REST; GraphQL takes 262,144 bytes
REVIEW_STATES = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED"}


@dataclass(frozen=True, slots=True)
class NewPull:
    """A pull request to be opened; `head` is `branch` or `owner:branch`."""

    head: str
    base: str
    title: str
    body: str | None = None
    draft: bool = False


async def open_pull(repository: Repository, actor: Actor, new: NewPull) -> PullRequest:
    """Open a pull request; raises `pull_request.opened`. Raises Refusal(422)."""
    source, branch = _head_of(repository, new.head)
    head, tip = source.git.branch(branch), repository.git.branch(new.base)
    for name, sha in (("base", tip), ("head", head)):
        if sha is None:
            raise invalid(f"{name} is invalid", field=name, resource="PullRequest")
    check_text("PullRequest", new.title, new.body)
    if new.draft and not repository.settings.drafts:
        error = {"resource": "PullRequest", "code": "custom", "message": say("pull.draft")}
        raise Refusal(422, say("pull.draft"), [error])
    if not repository.git.objects.log(head or "", without=tip):
        raise custom("pull.no_commits", "PullRequest", new.base, branch)
    for other in repository.open_pulls():
        if (other.head_repo, other.head_ref, other.base_ref) == (source, branch, new.base):
            raise custom("pull.exists", "PullRequest", source.owner.login, branch)
    now = repository.world.now()
    pull = PullRequest(
        repository,
        repository.world.new_id(),
        repository.next_number(),
        new.title,
        new.body,
        actor.account,
        now,
        now,
        actor.app,
        head_repo=source,
        head_ref=branch,
        head_sha=head or "",
        base_ref=new.base,
        base_sha=tip or "",
        draft=new.draft,
        pusher=actor.account,
        ci_due=True,
    )
    repository.issues[pull.number] = pull
    repository.git.move([(f"refs/pull/{pull.number}/head", ZERO, pull.head_sha)])
    pull_states.recompute_mergeability(pull)
    await pull_states.announce(pull, "opened", actor.account)
    return pull


def _head_of(repository: Repository, head: str) -> tuple[Repository, str]:
    owner, colon, branch = head.partition(":")
    if not colon:
        return repository, head
    for one in repository.world.repositories.values():
        if one.lock is repository.lock and one.owner.login.lower() == owner.lower():
            return one, branch
    raise invalid("head is invalid", field="head", resource="PullRequest")


def check_text(resource: str, title: str, body: str | None) -> None:
    """Raise Refusal(422) for a title or body of a pull request or issue that GitHub refuses."""
    if not title.strip():
        raise invalid("title can't be blank", field="title", resource=resource)
    if len(title) > TITLE_MAX:
        message = f"title is too long (maximum is {TITLE_MAX} characters)"
        raise invalid(message, field="title", resource=resource)
    if body is not None and len(body) > BODY_MAX:
        raise invalid(say("pull.body_long"), field="body", resource=resource)


async def edit(pull: PullRequest, actor: Actor, fields: Json) -> None:
    """Change title, body, state or base; each change raises its own event."""
    title, body = fields.get("title") or pull.title, fields.get("body", pull.body)
    check_text("PullRequest", title, body)
    changes = {}
    if title != pull.title:
        changes["title"] = {"from": pull.title}
    if body != pull.body:
        changes["body"] = {"from": pull.body or ""}
    pull.title, pull.body = title, body
    if changes:
        await _edited(pull, actor, changes)
    if fields.get("base") is not None:
        await retarget(pull, actor, fields["base"])
    if fields.get("state") == "closed":
        await pull_states.close(pull, actor.account)
    if fields.get("state") == "open":
        await reopen(pull, actor)


async def _edited(pull: PullRequest, actor: Actor, changes: Json) -> None:
    pull.touch()
    await pull_states.announce(pull, "edited", actor.account, changes=changes)


async def retarget(pull: PullRequest, actor: Actor, base: str) -> None:
    """Point a pull request at another branch; raises `edited` with the old base."""
    tip = pull.repository.git.branch(base)
    if tip is None:
        raise invalid("Proposed base branch was not found", field="base", resource="PullRequest")
    if base == pull.base_ref:
        return
    if pull.repository.stack_of(pull.number) is not None:
        raise refused("stack.base")
    await change_base(pull, actor, base)


async def change_base(pull: PullRequest, actor: Actor, base: str) -> None:
    """Change the base to an existing branch; raises `edited` with the old base.

    Where the new base's rules dismiss stale approvals, GitHub dismisses them by this too.
    """
    tip = pull.repository.git.refs[f"refs/heads/{base}"]
    changes = {"ref": {"from": pull.base_ref}, "sha": {"from": pull.base_sha}}
    pull.base_ref, pull.base_sha = base, tip
    pull_states.note_base_change(pull, "BaseRefChangedEvent")
    pull_states.dismiss_stale(pull, actor.account)
    pull_states.recompute_mergeability(pull)
    await _edited(pull, actor, {"base": changes})


async def reopen(pull: PullRequest, actor: Actor) -> None:
    """Reopen a closed one. Raises Refusal(422) when it was merged or its branch is gone."""
    if pull.open:
        return
    tip = pull.head_tip
    if pull.merged or tip is None or pull.base_tip is None:
        raise custom("pull.reopen", "PullRequest")
    pull.open, pull.closed_at, pull.closed_by = True, None, None
    if tip != pull.head_sha:
        pull_states.set_head(pull, tip)
    pull.ci_due = True
    pull_states.recompute_mergeability(pull)
    await pull_states.announce(pull, "reopened", actor.account)


async def set_draft(pull: PullRequest, actor: Actor, draft: bool) -> None:
    """Convert to a draft, or mark ready; nothing changes when it is one already."""
    if pull.draft != draft:
        pull.draft = draft
        pull.touch()
        action = "converted_to_draft" if draft else "ready_for_review"
        await pull_states.announce(pull, action, actor.account)


async def set_auto_merge(pull: PullRequest, actor: Actor, enabled: bool) -> None:
    """Ask GitHub to merge it once it can be merged, or take that back; raises the event."""
    if enabled is not (pull.auto_merge is None):
        return
    now = pull.repository.world.now()
    pull.auto_merge = AutoMerge(actor.account, now) if enabled else None
    pull.touch()
    action = "auto_merge_enabled" if enabled else "auto_merge_disabled"
    await pull_states.announce(pull, action, actor.account)


def review(pull: PullRequest, actor: Actor, event: str, body: str = "") -> Review:
    """Review a pull request; raises `pull_request_review.submitted`. Raises Refusal(422)."""
    if actor.account is pull.author:
        verb = "approve" if event == "APPROVE" else "request changes on"
        raise Refusal(422, "Unprocessable Entity", [{"message": say("review.own", verb)}])
    world = pull.repository.world
    state = REVIEW_STATES[event]
    made = Review(world.new_id(), actor.account, body, state, pull.head_sha, world.now())
    pull.reviews.append(made)
    pull.touch()
    pull_states.announce_review(pull, made, "submitted", actor.account)
    return made


def edit_review(pull: PullRequest, actor: Actor, body: str) -> None:
    """Change the text of the newest review; raises `pull_request_review.edited`."""
    review = pull.reviews[-1]
    changes = {"body": {"from": review.body}}
    review.body, review.edited_at = body, pull.repository.world.now()
    pull.touch()
    pull_states.announce_review(pull, review, "edited", actor.account, changes=changes)


def discuss(pull: PullRequest, actor: Actor, body: str) -> Thread:
    """Start a conversation on the code, on the first file of the tree."""
    items = pull.repository.git.objects.tree(pull.head_sha) or ()
    path = next((item.name for item in items if item.kind == "blob"), "README.md")
    thread = Thread(pull.repository.world.new_id("comment"), actor.account, body, path)
    pull.threads.append(thread)
    return thread


def resolve(pull: PullRequest, actor: Actor, is_resolved: bool) -> None:
    """Resolve all conversations, or reopen them; one event for each that changes."""
    action = "resolved" if is_resolved else "unresolved"
    for thread in pull.threads:
        if thread.is_resolved != is_resolved:
            thread.is_resolved = is_resolved
            fields = {
                "pull_request": pulls.pull_simple(pull),
                "thread": pulls.thread(pull, thread),
            }
            deliver.emit(
                pull.repository, "pull_request_review_thread", action, fields, actor.account
            )


async def stack(repository: Repository, actor: Actor, members: Sequence[PullRequest]) -> Stack:
    """Stack pull requests, the bottom first; raises `pull_request.stacked` for each.

    Raises Refusal(422) when they are no chain of one repository or one is stacked already.
    """
    for pull in members:
        if repository.stack_of(pull.number) is not None:
            raise refused("stack.member", pull.number)
    is_chain = all(above.base_ref == below.head_ref for below, above in pairwise(members))
    is_own = all(pull.head_repo is repository for pull in members)
    if len(members) < 2 or not is_chain or not is_own:
        raise refused("stack.form")
    numbers = [pull.number for pull in members]
    world = repository.world
    made = Stack(world.new_id(), len(repository.stacks) + 1, numbers, world.now())
    repository.stacks.append(made)
    for pull in members:
        await pull_states.announce(pull, "stacked", actor.account, stack=pulls.stack(pull, made))
    return made
