"""States of pull requests: mergeability, closing, merging, moved heads and bases, their events.

The only module that changes whether a pull request is open, merged or mergeable.
"""

from functools import partial
from typing import Any

from bot.sandbox import ci, deliver, merges, rules
from bot.sandbox.git import ZERO, Commit, NewCommit, Signature
from bot.sandbox.merges import Clean, FileChange
from bot.sandbox.records import HOST, NOREPLY, Account, BaseChange, HeadForcePush, Json, Review
from bot.sandbox.rules import Update
from bot.sandbox.shapes import pulls
from bot.sandbox.world import Knobs, PullRequest, Repository, World

FIRST_PARENTS_MAX = 1000
BRINGS_HEAD = ("opened", "reopened", "synchronize")


def signature(world: World, account: Account) -> Signature:
    """Return the signature of an account on a commit made now."""
    return Signature(account.login, f"{account.id}+{account.login}@{NOREPLY}", world.now())


def provider_signature(world: World) -> Signature:
    """Return the signature of GitHub on a commit that it makes itself."""
    return Signature("GitHub", f"noreply@{HOST}", world.now())


def _base_of(pull: PullRequest) -> str:
    """Return the commit to compare a pull request with: its base's tip while it is open."""
    return (pull.base_tip if pull.open else None) or pull.base_sha


def commits_of(pull: PullRequest) -> list[Commit]:
    """Return the commits of a pull request, oldest first."""
    objects = pull.repository.git.objects
    return list(reversed(objects.log(pull.head_sha, without=_base_of(pull))))


async def changed_files(pull: PullRequest) -> tuple[FileChange, ...]:
    """Return the files changed since it left its base; none for unrelated histories."""
    objects = pull.repository.git.objects
    start = objects.merge_base(_base_of(pull), pull.head_sha)
    return () if start is None else await merges.changes(objects, start, pull.head_sha)


async def announce(pull: PullRequest, action: str, sender: Account, **fields: object) -> None:
    """Send a `pull_request` event; `fields` are those that only this action has."""
    if action in BRINGS_HEAD and _is_computed_at_once(pull.repository.world):
        pull.computations += 1
        await _compute(pull)
    shape = pulls.pull(pull, await changed_files(pull))
    payload: Json = {"number": pull.number, "pull_request": shape, **fields}
    deliver.emit(pull.repository, "pull_request", action, payload, sender)


def _is_computed_at_once(world: World) -> bool:
    """Return whether mergeability is known before the event is made; a longer delay says no."""
    return world.face.shows_mergeable and world.knobs.mergeable_delay_s <= Knobs().mergeable_delay_s


def recompute_mergeability(
    pull: PullRequest, *, delay_s: float | None = None, base_moved: bool = False
) -> None:
    """Reset the mergeability of an open pull request to unknown, and compute it after a delay."""
    if not pull.open:
        return
    world = pull.repository.world
    pull.mergeable = None
    pull.computations += 1
    if base_moved:
        pull.base_moved_at = world.timeline.now()
    name = f"mergeability of {pull.repository.full_name}#{pull.number}"
    delay = world.knobs.mergeable_delay_s if delay_s is None else delay_s
    world.timeline.later(delay, name, partial(_compute_later, pull, pull.computations))


async def _compute_later(pull: PullRequest, number: int) -> None:
    async with pull.repository.lock:
        if pull.computations == number:
            await _compute(pull)


async def _compute(pull: PullRequest) -> None:
    """Compute the mergeability, and start the CI that waited for it. The caller holds the lock."""
    repository, objects = pull.repository, pull.repository.git.objects
    tip = pull.base_tip
    if not pull.open or tip is None:
        return
    merged = await merges.merge(objects, tip, pull.head_sha)
    pull.mergeable = isinstance(merged, Clean)
    pull.test_merge = None
    is_ci_due, pull.ci_due = pull.ci_due, False
    if isinstance(merged, Clean):
        message = f"Merge {pull.head_sha} into {tip}"
        author = provider_signature(repository.world)
        new = NewCommit(merged.tree, (tip, pull.head_sha), author, author, message)
        pull.test_merge = objects.write_commit(new).sha
        if is_ci_due:
            ci.on_pull(pull, pull.test_merge)


async def close(pull: PullRequest, by_whom: Account) -> None:
    """Close it unmerged; a second time changes nothing."""
    if pull.open:
        pull.base_sha = _base_of(pull)
        await _end(pull, by_whom)


async def mark_merged(pull: PullRequest, by_whom: Account, landed: tuple[str, str]) -> None:
    """Close it as merged by the commit `landed[1]` onto the base `landed[0]`."""
    if pull.open:
        pull.base_sha, pull.merge_commit = landed
        pull.merged_by, pull.merged_at = by_whom, pull.repository.world.now()
        pull.mergeable = None
        await _end(pull, by_whom)


async def _end(pull: PullRequest, by_whom: Account) -> None:
    pull.open, pull.closed_by = False, by_whom
    pull.closed_at = pull.updated_at = pull.repository.world.now()
    await announce(pull, "closed", by_whom)


async def follow_branch(repository: Repository, update: Update, by_whom: Account) -> None:
    """Carry a branch's move over to all pull requests of the repository and its forks."""
    network = [one for one in repository.world.repositories.values() if one.lock is repository.lock]
    for pull in [pull for base in network for pull in base.open_pulls()]:
        if pull.head_repo is repository and pull.head_ref == update.branch:
            await _follow_head(pull, update, by_whom)
    for pull in repository.open_pulls():
        if pull.base_ref == update.branch:
            await _follow_base(pull, update, by_whom)


async def _follow_head(pull: PullRequest, update: Update, by_whom: Account) -> None:
    if update.after == ZERO:
        await close(pull, by_whom)
        return
    world = pull.repository.world
    if world.knobs.head_delay_s == 0.0:
        await _show_head(pull, update, by_whom)
        return

    async def show_later() -> None:
        async with pull.repository.lock:
            if pull.open:
                await _show_head(pull, update, by_whom)

    name = f"pushed head of {pull.repository.full_name}#{pull.number}"
    world.timeline.later(world.knobs.head_delay_s, name, show_later)


async def _show_head(pull: PullRequest, update: Update, by_whom: Account) -> None:
    """Give a pull request its new head."""
    pull.pusher = by_whom
    before, head = pull.head_sha, update.after
    if update.is_forced:
        pull.force_pushes.append(HeadForcePush(before, head, pull.repository.world.now()))
    pull.base_sha = pull.base_tip or pull.base_sha
    pull.touch()
    set_head(pull, head)
    dismiss_stale(pull, by_whom)
    pull.ci_due = True
    recompute_mergeability(pull)
    await announce(pull, "synchronize", by_whom, before=before, after=head)


def set_head(pull: PullRequest, head: str) -> None:
    """Set the head of a pull request and its ref `refs/pull/<number>/head`."""
    ref, git = f"refs/pull/{pull.number}/head", pull.repository.git
    pull.head_sha = head
    git.move([(ref, git.refs.get(ref, ZERO), head)])


def note_base_change(pull: PullRequest, event: str) -> None:
    """Add an event about the base to the timeline of a pull request, by its GraphQL type."""
    pull.base_changes.append(BaseChange(event, pull.repository.world.now()))


async def _follow_base(pull: PullRequest, update: Update, by_whom: Account) -> None:
    objects = pull.repository.git.objects
    if update.is_forced:
        note_base_change(pull, "BaseRefForcePushedEvent")
    if update.after == ZERO:
        note_base_change(pull, "BaseRefDeletedEvent")
        await close(pull, by_whom)
    elif update.branch == pull.repository.default_branch and objects.is_ancestor(
        pull.head_sha, update.after
    ):
        await mark_merged(pull, by_whom, (update.before, _landing_commit(pull, update)))
    else:
        recompute_mergeability(pull, base_moved=True)


def _landing_commit(pull: PullRequest, update: Update) -> str:
    """Return the first commit of the new first-parent history that contains the head."""
    objects, landing = pull.repository.git.objects, update.after
    for commit in objects.first_parents(update.after, FIRST_PARENTS_MAX):
        if commit.sha == update.before or not objects.is_ancestor(pull.head_sha, commit.sha):
            break
        landing = commit.sha
    return landing


def dismiss_stale(pull: PullRequest, by_whom: Account) -> None:
    """Dismiss the approvals of a pull request where a rule of its base says so."""
    classic = pull.repository.protected.get(pull.base_ref)
    is_stale = (classic is not None and classic.dismiss_stale) or any(
        rule.get("parameters", {}).get("dismiss_stale_reviews_on_push")
        for _, rule in rules.rules_of(pull.repository, pull.base_ref)
    )
    for review in pull.reviews if is_stale else ():
        if review.state == "APPROVED":
            dismiss(pull, review, by_whom)


def dismiss(pull: PullRequest, review: Review, by_whom: Account) -> None:
    """Dismiss a review; raises `pull_request_review.dismissed`."""
    review.state = "DISMISSED"
    announce_review(pull, review, "dismissed", by_whom)


def announce_review(
    pull: PullRequest, review: Review, action: str, sender: Account, **more: Any
) -> None:
    """Send a `pull_request_review` event, in which the state is in lower case."""
    shape = pulls.review(pull, review)
    shape["state"] = review.state.lower()
    payload = {"review": shape, "pull_request": pulls.pull_simple(pull), **more}
    deliver.emit(pull.repository, "pull_request_review", action, payload, sender)
