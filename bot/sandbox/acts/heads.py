"""The effects of a moved branch on its pull requests."""

from bot.sandbox import deliver, rules
from bot.sandbox.acts import pull_states
from bot.sandbox.git import ZERO
from bot.sandbox.records import Account, Issue, Pull, Review
from bot.sandbox.rules import Update
from bot.sandbox.shapes import pulls
from bot.sandbox.world import Repository


async def follow(repository: Repository, update: Update, by_whom: Account) -> None:
    """Carry a branch's move over to all pull requests of the network."""
    network = [one for one in repository.world.repositories.values() if one.lock is repository.lock]
    for base in network:
        for issue, pull in base.open_pulls():
            if pull.head_repo == repository.id and pull.head_ref == update.branch:
                await _follow_head(base, issue, update, by_whom)
    for issue, pull in repository.open_pulls():
        if pull.base_ref == update.branch:
            await _follow_base(repository, issue, update, by_whom)


async def _follow_head(base: Repository, issue: Issue, update: Update, by_whom: Account) -> None:
    pull = issue.pull
    if pull is None:
        return
    if update.after == ZERO:
        await pull_states.close(base, issue, by_whom)
        return
    if base.world.knobs.head_delay_s == 0.0:
        await _show_head(base, issue, update, by_whom)
        return

    async def show() -> None:
        async with base.lock:
            if issue.open:
                await _show_head(base, issue, update, by_whom)

    name = f"pushed head of {base.full_name}#{issue.number}"
    base.world.timeline.later(base.world.knobs.head_delay_s, name, show)


async def _show_head(base: Repository, issue: Issue, update: Update, by_whom: Account) -> None:
    """Let a pull request show its new head."""
    pull = issue.pull
    if pull is None:
        return
    pull.pusher = by_whom
    before, pull.head_sha = pull.head_sha, update.after
    pull.base_sha = base.git.branch(pull.base_ref) or pull.base_sha
    issue.updated_at = base.world.now()
    ref = f"refs/pull/{issue.number}/head"
    await base.git.move([(ref, base.git.refs.get(ref, ZERO), update.after)])
    await _dismiss_stale(base, issue, pull, by_whom)
    pull.ci_due = True
    pull_states.look_again(base, issue)
    await pull_states.announce(
        base, issue, "synchronize", by_whom, before=before, after=update.after
    )


async def _follow_base(
    repository: Repository, issue: Issue, update: Update, by_whom: Account
) -> None:
    pull = issue.pull
    if pull is None or not issue.open:
        return
    if update.after == ZERO:
        await pull_states.close(repository, issue, by_whom)
        return
    is_default = update.branch == repository.default_branch
    if is_default and repository.git.objects.is_ancestor(pull.head_sha, update.after):
        by_commit = _bringing(repository, pull.head_sha, update)
        landed = (update.before, by_commit)
        await pull_states.mark_merged(repository, issue, by_whom, landed)
        return
    pull_states.look_again(repository, issue, base_moved=True)


def _bringing(repository: Repository, head: str, update: Update) -> str:
    """The first commit of the new first-parent history that contains the head."""
    objects = repository.git.objects
    found = update.after
    for commit in objects.first_parents(update.after, 1000):
        if commit.sha == update.before or not objects.is_ancestor(head, commit.sha):
            break
        found = commit.sha
    return found


async def _dismiss_stale(
    repository: Repository, issue: Issue, pull: Pull, by_whom: Account
) -> None:
    classic = repository.protected.get(pull.base_ref)
    wanted = classic is not None and classic.dismiss_stale
    for _, rule in rules.rules_of(repository, pull.base_ref):
        wanted = wanted or bool(rule.get("parameters", {}).get("dismiss_stale_reviews_on_push"))
    for review in pull.reviews if wanted else ():
        if review.state == "APPROVED":
            dismiss(repository, issue, review, by_whom)


def dismiss(repository: Repository, issue: Issue, review: Review, by_whom: Account) -> None:
    """Take a review's weight away; raises `pull_request_review.dismissed`."""
    review.state = "DISMISSED"
    announce_review(repository, issue, review, "dismissed", by_whom)


def announce_review(
    repository: Repository, issue: Issue, review: Review, action: str, sender: Account
) -> None:
    """Send a `pull_request_review` event."""
    if issue.pull is None:
        return
    shown = pulls.review(repository, issue, review)
    shown["state"] = shown["state"].lower()
    pull_request = pulls.pull_simple(repository, issue, issue.pull)
    payload = {"review": shown, "pull_request": pull_request}
    deliver.emit(repository, "pull_request_review", action, payload, sender)
