"""Repositories: made, forked, renamed, archived, transferred, deleted.

Also branches renamed and rules changed. The caller holds the lock of the repository concerned.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from bot.sandbox import deliver, git
from bot.sandbox.acts import installations, pull_states, refs
from bot.sandbox.acts.refs import How, Move
from bot.sandbox.git import ZERO, NewCommit
from bot.sandbox.records import Account, Actor, Classic, Kind, Ruleset
from bot.sandbox.refusal import Refusal, custom, refused
from bot.sandbox.shapes import people, repositories
from bot.sandbox.world import Repository, World


@dataclass(frozen=True, slots=True)
class NewRepository:
    """A repository to be made, with its first commit."""

    full_name: str
    default_branch: str = "main"
    private: bool = False
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    collaborators: Mapping[str, str] = field(default_factory=dict)


def create(world: World, new: NewRepository) -> Repository:
    """Make a repository with one commit, and install the App on a new owner.

    Raises Refusal(400) for a name that is taken.
    """
    login, _, name = new.full_name.partition("/")
    taken = world.repository(new.full_name)
    if taken is not None and taken.full_name.lower() == new.full_name.lower():
        raise Refusal(400, f"{new.full_name} exists already")
    if not login or not name or "/" in name:
        raise Refusal(400, f"{new.full_name!r} is not owner/name")
    owner = world.account(login) or world.add_account(login, Kind.ORGANIZATION)
    number, now = world.new_id("repository"), world.now()
    bare = git.create(world.folder / f"{number}.git", new.default_branch)
    lock = asyncio.Lock()
    made = Repository(
        world, number, owner, name, new.private, new.default_branch, bare, now, now, lock
    )
    for person, role in new.collaborators.items():
        made.collaborators[world.add_account(person).login.lower()] = role
    author = pull_states.signature(world, owner)
    files = dict(new.files) or {"README.md": f"# {name}\n".encode()}
    tree = bare.objects.tree_with(None, files)
    first = bare.objects.write_commit(NewCommit(tree, (), author, author, "Initial commit"))
    bare.move([(f"refs/heads/{new.default_branch}", ZERO, first.sha)])
    world.add_repository(made)
    _announce_created(made)
    return made


def _announce_created(made: Repository) -> None:
    """Tell the App, which a world that begins with it also installs on a new owner."""
    world, owner = made.world, made.owner
    if world.installs_itself:
        installations.install(world, owner)
    installation = None if world.app is None else world.installation_of(world.app, owner)
    if installation is not None and world.covers(installation, made):
        installations.announce_repositories(installation, [made], [], owner)


def fork(parent: Repository, owner: Account) -> Repository:
    """The fork of a repository in an account, made when there is none."""
    world, branch = parent.world, parent.default_branch
    for one in world.repositories.values():
        if one.parent is parent and one.owner is owner:
            return one
    number, now = world.new_id("repository"), world.now()
    bare = git.create(world.folder / f"{number}.git", branch, parent.git)
    tip = parent.git.branch(branch)
    if tip is not None:
        bare.move([(f"refs/heads/{branch}", ZERO, tip)])
    name, lock = parent.name, parent.lock
    made = Repository(
        world, number, owner, name, parent.private, branch, bare, now, now, lock, parent
    )
    world.add_repository(made)
    return made


def rename(repository: Repository, actor: Actor, name: str) -> None:
    """Rename a repository; the old name redirects."""
    changes = {"repository": {"name": {"from": repository.name}}}
    repository.name = name
    repository.world.add_repository(repository)
    deliver.emit(repository, "repository", "renamed", {"changes": changes}, actor.account)


def set_archived(repository: Repository, actor: Actor, *, is_archived: bool) -> None:
    """Archive a repository, or unarchive it."""
    repository.archived = is_archived
    action = "archived" if is_archived else "unarchived"
    deliver.emit(repository, "repository", action, {}, actor.account)


def rename_branch(repository: Repository, actor: Actor, old: str, new: str) -> None:
    """Rename a branch after a delay, as GitHub does it in the background.

    Raises Refusal(422) when the new name is taken, 404 without the old one.
    """
    if repository.git.branch(old) is None:
        raise refused("branch.absent")
    if repository.git.branch(new) is not None:
        raise custom("branch.taken", "Branch")
    name = f"rename of {repository.full_name} {old} to {new}"
    act = partial(_rename_now, repository, actor, old, new)
    repository.world.timeline.later(repository.world.knobs.rename_delay_s, name, act)


async def _rename_now(repository: Repository, actor: Actor, old: str, new: str) -> None:
    async with repository.lock:
        tip = repository.git.branch(old)
        if tip is None or repository.git.branch(new) is not None:
            return
        for pull in repository.open_pulls():
            if pull.base_ref == old:
                pull.base_ref = new
                pull_states.note_base_change(pull, "AutomaticBaseChangeSucceededEvent")
            if pull.head_repo is repository and pull.head_ref == old:
                pull.head_ref = new
        is_default = repository.default_branch == old
        if is_default:
            repository.default_branch = new
            repository.git.point_head_at(new)
        if old in repository.protected:
            repository.protected[new] = repository.protected.pop(old)
        repository.renamed[old] = new
        how = How(f"rename of {old}", is_allowed=True)
        steps = [Move(f"refs/heads/{new}", tip, ZERO), Move(f"refs/heads/{old}", ZERO, tip)]
        await refs.move(repository, actor, steps, how)
        if is_default:
            changes = {"default_branch": {"from": old}}
            deliver.emit(repository, "repository", "edited", {"changes": changes}, actor.account)


async def set_default_branch(repository: Repository, actor: Actor, branch: str) -> None:
    """Make another branch the default one. Raises Refusal(422) when it does not exist."""
    if repository.git.branch(branch) is None:
        raise refused("branch.absent")
    changes = {"default_branch": {"from": repository.default_branch}}
    repository.default_branch = branch
    repository.git.point_head_at(branch)
    deliver.emit(repository, "repository", "edited", {"changes": changes}, actor.account)


def set_ruleset(repository: Repository, actor: Actor, new: Ruleset | None, name: str) -> None:
    """Replace the ruleset of a name; None removes it."""
    old = next((one for one in repository.rulesets if one.name == name), None)
    if old is not None:
        repository.rulesets.remove(old)
    if new is not None:
        new.id = old.id if old is not None else new.id
        repository.rulesets.append(new)
    changed = new or old
    if changed is not None:
        action = _action(is_new=old is None, is_kept=new is not None)
        fields = {"repository_ruleset": repositories.ruleset(repository, changed)}
        deliver.emit(repository, "repository_ruleset", action, fields, actor.account)


def set_classic(repository: Repository, actor: Actor, branch: str, new: Classic | None) -> None:
    """Replace the classic protection of a branch; None removes it."""
    old = repository.protected.pop(branch, None)
    if new is not None:
        repository.protected[branch] = new
    changed = new or old
    if changed is not None:
        action = _action(is_new=old is None, is_kept=new is not None)
        fields = {"rule": repositories.protection_rule(repository, branch, changed)}
        deliver.emit(repository, "branch_protection_rule", action, fields, actor.account)


def _action(*, is_new: bool, is_kept: bool) -> str:
    return "deleted" if not is_kept else "created" if is_new else "edited"


def set_visibility(repository: Repository, actor: Actor, *, is_private: bool) -> None:
    """Make a repository private, or public."""
    repository.private = is_private
    action = "privatized" if is_private else "publicized"
    deliver.emit(repository, "repository", action, {}, actor.account)


def transfer(repository: Repository, actor: Actor, owner: Account) -> None:
    """Give a repository to another owner; the old name redirects.

    The event goes to the installation that sees it afterwards, if there is one.
    """
    kind = "organization" if repository.owner.kind is Kind.ORGANIZATION else "user"
    former = people.account(repository.world, repository.owner)
    repository.owner = owner
    repository.world.add_repository(repository)
    changes = {"owner": {"from": {kind: former}}}
    deliver.emit(repository, "repository", "transferred", {"changes": changes}, actor.account)


def delete(repository: Repository, actor: Actor) -> None:
    """Delete a repository; its name is free again."""
    deliver.emit(repository, "repository", "deleted", {}, actor.account)
    repository.world.remove_repository(repository)
