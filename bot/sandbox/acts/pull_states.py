"""States of pull requests: changed files, mergeability, closing, merging, and their events.

The only module that changes whether a pull request is open, merged or mergeable.
"""

from functools import partial

from bot.sandbox import ci, deliver, merges
from bot.sandbox.git import Commit, NewCommit, Signature
from bot.sandbox.merges import Clean, FileChange
from bot.sandbox.records import HOST, NOREPLY, Account, Issue, Json, Pull
from bot.sandbox.shapes import pulls
from bot.sandbox.world import Repository, World


def signature(world: World, account: Account) -> Signature:
    """Return the signature of an account on a commit made now."""
    return Signature(account.login, f"{account.id}+{account.login}@{NOREPLY}", world.now())


def provider_signature(world: World) -> Signature:
    """Return the signature of the provider on a commit that it makes itself."""
    return Signature("GitHub", f"noreply@{HOST}", world.now())


def base_of(repository: Repository, issue: Issue, pull: Pull) -> str:
    """Return the commit to compare a pull request with: its base's tip while it is open."""
    tip = repository.git.branch(pull.base_ref) if issue.open else None
    return tip or pull.base_sha


def commits_of(repository: Repository, issue: Issue, pull: Pull) -> list[Commit]:
    """Return the commits of a pull request, oldest first."""
    base = base_of(repository, issue, pull)
    return list(reversed(repository.git.objects.log(pull.head_sha, without=base)))


async def changed_files(repository: Repository, issue: Issue, pull: Pull) -> tuple[FileChange, ...]:
    """Return the files changed since it left its base; none for unrelated histories."""
    objects = repository.git.objects
    start = objects.merge_base(base_of(repository, issue, pull), pull.head_sha)
    if start is None:
        return ()
    return await merges.changes(objects, start, pull.head_sha)


async def announce(
    repository: Repository, issue: Issue, action: str, sender: Account, **fields: object
) -> None:
    """Send a `pull_request` event; `fields` are those that only this action has."""
    if issue.pull is None:
        return
    files = await changed_files(repository, issue, issue.pull)
    shown = pulls.pull(repository, issue, files)
    payload: Json = {"number": issue.number, "pull_request": shown, **fields}
    deliver.emit(repository, "pull_request", action, payload, sender)


def look_again(
    repository: Repository,
    issue: Issue,
    *,
    delay_s: float | None = None,
    base_moved: bool = False,
) -> None:
    """Forget whether it can be merged; the provider finds out a while later."""
    pull = issue.pull
    if pull is None or not issue.open:
        return
    pull.mergeable = None
    pull.looked += 1
    if base_moved:
        pull.base_moved_at = repository.world.timeline.now()
    wait = repository.world.knobs.mergeable_delay_s if delay_s is None else delay_s
    look = partial(_look, repository, issue, pull.looked)
    repository.world.timeline.later(
        wait, f"mergeability of {repository.full_name}#{issue.number}", look
    )


async def _look(repository: Repository, issue: Issue, number: int) -> None:
    async with repository.lock:
        pull = issue.pull
        if pull is not None and issue.open and pull.looked == number:
            await settle_mergeability(repository, issue, pull)


async def settle_mergeability(repository: Repository, issue: Issue, pull: Pull) -> None:
    """Find out now whether it can be merged, and start the CI that waited for it."""
    tip = repository.git.branch(pull.base_ref)
    if tip is None:
        return
    merged = await merges.merge(repository.git.objects, tip, pull.head_sha)
    pull.mergeable = isinstance(merged, Clean)
    pull.test_merge = None
    is_ci_due, pull.ci_due = pull.ci_due, False
    if isinstance(merged, Clean):
        message = f"Merge {pull.head_sha} into {tip}"
        who = provider_signature(repository.world)
        new = NewCommit(merged.tree, (tip, pull.head_sha), who, who, message)
        pull.test_merge = repository.git.objects.write_commit(new).sha
        if is_ci_due:
            ci.on_pull(repository, issue)


async def close(repository: Repository, issue: Issue, by_whom: Account) -> None:
    """Close it unmerged; a second time changes nothing."""
    if not issue.open:
        return
    if issue.pull is not None:
        issue.pull.base_sha = repository.git.branch(issue.pull.base_ref) or issue.pull.base_sha
    issue.open, issue.closed_by = False, by_whom
    issue.closed_at = issue.updated_at = repository.world.now()
    await announce(repository, issue, "closed", by_whom)


async def mark_merged(
    repository: Repository, issue: Issue, by_whom: Account, landed: tuple[str, str]
) -> None:
    """Show it as merged by the commit `landed[1]` onto what was at `landed[0]`."""
    pull = issue.pull
    if pull is None or not issue.open:
        return
    pull.base_sha, pull.merge_commit = landed
    pull.merged_by, pull.merged_at = by_whom, repository.world.now()
    pull.mergeable = None
    issue.open, issue.closed_by = False, by_whom
    issue.closed_at = issue.updated_at = pull.merged_at
    await announce(repository, issue, "closed", by_whom)
