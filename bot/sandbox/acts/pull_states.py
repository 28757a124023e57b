"""What becomes of a pull request: looked at, closed, merged, told.

The only place that changes whether a pull request is open, merged or mergeable.
"""

from functools import partial

from bot.sandbox import ci, deliver, merges
from bot.sandbox.acts import differences
from bot.sandbox.deliver import Event
from bot.sandbox.git import NewCommit, Signature
from bot.sandbox.merges import Clean
from bot.sandbox.records import HOST, NOREPLY, Account, Issue, Json, Pull
from bot.sandbox.shapes import pulls
from bot.sandbox.world import Repository, World


def signature(world: World, account: Account) -> Signature:
    """How an account signs a commit made now."""
    return Signature(account.login, f"{account.id}+{account.login}@{NOREPLY}", world.now())


def provider_signature(world: World) -> Signature:
    """How the provider signs a commit that it makes itself."""
    return Signature("GitHub", f"noreply@{HOST}", world.now())


async def tell(repository: Repository, issue: Issue, action: str, told: Event) -> None:
    """Raise a `pull_request` event; `told` brings more fields and the sender."""
    if issue.pull is None:
        return
    files = await differences.files(repository, issue, issue.pull)
    fields: Json = {
        "number": issue.number,
        "pull_request": pulls.pull(repository, issue, files),
        **told.fields,
    }
    deliver.emit(repository.world, repository, Event("pull_request", action, fields, told.sender))


def by(sender: Account, **fields: object) -> Event:
    """The sender of an event, and fields that only its action has."""
    return Event("pull_request", None, dict(fields), sender)


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
    await tell(repository, issue, "closed", by(by_whom))


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
    await tell(repository, issue, "closed", by(by_whom))
