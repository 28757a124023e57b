"""Moves of refs: checked, made all or none, logged, and what they cause.

Every branch in the sandbox moves through `move`: by REST, GraphQL, git, merges and the control
plane. The caller holds the repository's lock.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bot.sandbox import ci, deliver, merges, reports, rules
from bot.sandbox.acts import pull_states
from bot.sandbox.command import GitFailed
from bot.sandbox.git import ZERO
from bot.sandbox.records import Actor, Json
from bot.sandbox.refusal import refused
from bot.sandbox.rules import Update
from bot.sandbox.shapes import git_data
from bot.sandbox.world import RefMoved, Repository

COMMITS_OF_A_PUSH_MAX = 2048
BRANCH = "refs/heads/"
WORKFLOWS = ".github/workflows/"


@dataclass(frozen=True, slots=True)
class Move:
    """One ref to be set; `before` None means whatever it is now, ZERO absent."""

    ref: str
    after: str
    before: str | None = None
    force: bool = False


@dataclass(frozen=True, slots=True)
class How:
    """The reason of a move: a word for the reflog, and whether the rules were already checked.

    `status` is that of the answer where a rule refuses.
    """

    word: str
    is_allowed: bool = False
    status: int = 422


async def move(repository: Repository, actor: Actor, moves: Sequence[Move], how: How) -> None:
    """Set refs, all or none, then follow with events, pull requests and CI.

    Raises Refusal(422) for a missing or unexpected value, a move that is not a fast-forward,
    and everything the rules forbid.
    """
    updates = [(one.ref, _update_of(repository, one)) for one in moves]
    if not how.is_allowed:
        for ref, update in updates:
            if ref.startswith(BRANCH):
                _check_rules(repository, actor, update, how)
    try:
        repository.git.move([(ref, one.before, one.after) for ref, one in updates])
    except GitFailed:
        raise refused("ref.cannot") from None
    app = actor.app.slug if actor.app is not None else None
    for ref, one in updates:
        line = (ref, one.before, one.after, actor.account.login, app, how.word)
        repository.world.reflog.append(
            RefMoved(repository.world.now(), repository.full_name, *line)
        )
    for ref, one in updates:
        if ref.startswith(BRANCH) and one.before != one.after:
            await _follow(repository, actor, one)


def _update_of(repository: Repository, one: Move) -> Update:
    now = repository.git.refs.get(one.ref, ZERO)
    before = now if one.before is None else one.before
    if before != now:
        if before == ZERO:
            raise refused("ref.exists")
        if now == ZERO:
            raise refused("ref.absent")
        raise refused("ref.stale", one.ref, now, before)
    if one.after == ZERO and now == ZERO:
        raise refused("ref.absent")
    is_forced = False
    if one.after != ZERO:
        objects = repository.git.objects
        if objects.commit(one.after) is None:
            raise refused("ref.no_object")
        is_forced = now != ZERO and not objects.is_ancestor(now, one.after)
        if is_forced and not one.force:
            raise refused("ref.not_ff")
    if now == ZERO and any(
        ref.startswith(f"{one.ref}/") or one.ref.startswith(f"{ref}/")
        for ref in repository.git.refs
    ):
        raise refused("ref.failed")
    return Update(one.ref.removeprefix(BRANCH), before, one.after, is_forced)


def _check_rules(repository: Repository, actor: Actor, update: Update, how: How) -> None:
    if update.after == ZERO and update.branch == repository.default_branch:
        raise refused("ref.default")
    if any(pull.queued and pull.head_ref == update.branch for pull in repository.open_pulls()):
        raise refused("push.queued")
    broken = rules.broken_by_update(repository, actor, update)
    if broken:
        raise broken.refusal(how.status)


async def _follow(repository: Repository, actor: Actor, update: Update) -> None:
    repository.pushed_at = repository.world.now()
    fields = _push_fields(repository, actor, update)
    deliver.emit(repository, "push", None, fields, actor.account)
    _announce_creation(repository, actor, update)
    await pull_states.follow_branch(repository, update, actor.account)
    if update.after != ZERO:
        reports.announce_push(repository, update.after, update.branch, actor.account)
        ci.on_push(repository, update.branch, update.after, actor.account)


def _announce_creation(repository: Repository, actor: Actor, update: Update) -> None:
    if ZERO not in (update.before, update.after):
        return
    name = "create" if update.before == ZERO else "delete"
    fields: Json = {"ref": update.branch, "ref_type": "branch", "pusher_type": "user"}
    if name == "create":
        fields.update(master_branch=repository.default_branch, description=None)
    deliver.emit(repository, name, None, fields, actor.account)


def _push_fields(repository: Repository, actor: Actor, update: Update) -> Json:
    arrived, head = [], None
    if update.after != ZERO:
        arrived = rules.arriving(repository, update)[:COMMITS_OF_A_PUSH_MAX]
        tip = repository.git.objects.a_commit(update.after)
        head = git_data.pushed_commit(repository, tip)
    return {
        "ref": f"{BRANCH}{update.branch}",
        "before": update.before,
        "after": update.after,
        "base_ref": None if arrived else _base_ref(repository, update),
        "created": update.before == ZERO,
        "deleted": update.after == ZERO,
        "forced": update.is_forced,
        "compare": f"{repository.page}/compare/{update.before[:12]}...{update.after[:12]}",
        "commits": [git_data.pushed_commit(repository, one) for one in reversed(arrived)],
        "head_commit": head,
        "pusher": {"name": actor.account.login, "email": None},
    }


def _base_ref(repository: Repository, update: Update) -> str | None:
    """Another branch with the tip of a new branch, which GitHub names where nothing is new."""
    if update.before != ZERO:
        return None
    git = repository.git
    others = (one for one in git.branches() if one != update.branch)
    return next((f"{BRANCH}{one}" for one in others if git.branch(one) == update.after), None)


async def refuse_workflow_files(
    repository: Repository, actor: Actor, before: str, after: str
) -> None:
    """Raise Refusal(403) when an App without `workflows` would change a workflow file."""
    if actor.may("workflows"):
        return
    for change in await merges.changes(repository.git.objects, before, after):
        for path in (change.path, change.old_path or ""):
            if path.startswith(WORKFLOWS):
                raise refused("perm.workflows", path)
