"""Repositories: made, forked, renamed, archived; their branches renamed, their rules changed.

And what happens to installations. The caller holds the lock of the repository concerned.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from bot.sandbox import deliver, git
from bot.sandbox.acts import installations, pull_states, refs
from bot.sandbox.acts.refs import How, Move
from bot.sandbox.git import ZERO, NewCommit
from bot.sandbox.records import Account, Actor, Classic, Json, Kind, Ruleset
from bot.sandbox.refusal import Refusal, custom, refused
from bot.sandbox.shapes import people, repositories
from bot.sandbox.timeline import stamp
from bot.sandbox.world import Repository, World


@dataclass(frozen=True, slots=True)
class NewRepository:
    """A repository to be made, with its first commit."""

    full_name: str
    default_branch: str = "main"
    private: bool = False
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    collaborators: Mapping[str, str] = field(default_factory=dict)


async def create(world: World, new: NewRepository) -> Repository:
    """Make a repository; raises `installation_repositories.added` where the App is installed.

    The owner becomes an organization, unless it is known already. Raises Refusal(400) for a
    name that is taken.
    """
    login, _, name = new.full_name.partition("/")
    known = world.repository(new.full_name)
    if known is not None and known.full_name.lower() == new.full_name.lower():
        raise Refusal(400, f"{new.full_name} exists already")
    if not login or not name or "/" in name:
        raise Refusal(400, f"{new.full_name!r} is not owner/name")
    owner = world.account(login) or world.add_account(login, Kind.ORGANIZATION)
    number = world.new_id("repository")
    folder = world.folder / f"{number}.git"
    bare = await git.create(folder, new.default_branch)
    now = world.now()
    made = Repository(
        world, number, owner, name, new.private, new.default_branch, bare, now, now, asyncio.Lock()
    )
    for person, role in new.collaborators.items():
        made.collaborators[world.add_account(person).login.lower()] = role
    who = pull_states.signature(world, owner)
    files = dict(new.files) or {"README.md": f"# {name}\n".encode()}
    tree = bare.objects.tree_with(None, files)
    first = bare.objects.write_commit(NewCommit(tree, (), who, who, "Initial commit"))
    await bare.move([(f"refs/heads/{new.default_branch}", ZERO, first.sha)])
    world.add_repository(made)
    found = installations.install(world, owner)
    if world.covers(found, made):
        installations.tell_repositories(world, found, added=[made])
    return made


async def fork(parent: Repository, owner: Account) -> Repository:
    """The fork of a repository in an account, made when there is none."""
    for one in parent.world.repositories.values():
        if one.parent == parent.id and one.owner is owner:
            return one
    number = parent.world.new_id("repository")
    folder = parent.world.folder / f"{number}.git"
    bare = await git.create(folder, parent.default_branch, parent.git)
    tip = parent.git.branch(parent.default_branch)
    if tip is not None:
        await bare.move([(f"refs/heads/{parent.default_branch}", ZERO, tip)])
    now = parent.world.now()
    made = Repository(
        parent.world,
        number,
        owner,
        parent.name,
        parent.private,
        parent.default_branch,
        bare,
        now,
        now,
        parent.lock,
        parent.id,
    )
    parent.world.add_repository(made)
    return made


def rename(repository: Repository, actor: Actor, name: str) -> None:
    """Rename a repository; the old name redirects."""
    old = repository.name
    repository.world.rename_repository(repository, repository.owner, name)
    changes = {"repository": {"name": {"from": old}}}
    _tell(repository, actor, "renamed", changes)


def transfer(repository: Repository, actor: Actor, owner: Account) -> None:
    """Give a repository to another owner; both installations are told what they see."""
    old = repository.owner
    kind = "organization" if old.kind is Kind.ORGANIZATION else "user"
    shape = people.organization if old.kind is Kind.ORGANIZATION else people.account
    changes = {"owner": {"from": {kind: shape(repository.world, old)}}}
    repository.world.rename_repository(repository, owner, repository.name)
    installations.install(repository.world, owner)
    _tell(repository, actor, "transferred", changes)


def set_archived(repository: Repository, actor: Actor, *, is_archived: bool) -> None:
    """Archive a repository, or take it back."""
    repository.archived = is_archived
    _tell(repository, actor, "archived" if is_archived else "unarchived", {})


def delete(repository: Repository, actor: Actor) -> None:
    """Delete a repository; its folder stays for whoever looks into it."""
    _tell(repository, actor, "deleted", {})
    repository.world.forget_repository(repository)


def _tell(repository: Repository, actor: Actor, action: str, changes: Json) -> None:
    fields = {"changes": changes} if changes else {}
    deliver.emit(repository, "repository", action, fields, actor.account)


def rename_branch(repository: Repository, actor: Actor, old: str, new: str) -> None:
    """Rename a branch after a delay, as the provider does it in the background.

    Raises Refusal(422) when the new name is taken, 404 without the old one.
    """
    if repository.git.branch(old) is None:
        raise refused("branch.absent")
    if repository.git.branch(new) is not None:
        raise custom("branch.taken", "Branch")
    delay = repository.world.knobs.rename_delay_s
    name = f"rename of {repository.full_name} {old} to {new}"
    act = partial(_rename_now, repository, actor, (old, new))
    repository.world.timeline.later(delay, name, act)


async def _rename_now(repository: Repository, actor: Actor, names: tuple[str, str]) -> None:
    old, new = names
    async with repository.lock:
        tip = repository.git.branch(old)
        if tip is None or repository.git.branch(new) is not None:
            return
        is_default = repository.default_branch == old
        for _, pull in repository.open_pulls():
            if pull.base_ref == old:
                pull.base_ref = new
            if pull.head_repo == repository.id and pull.head_ref == old:
                pull.head_ref = new
        if is_default:
            repository.default_branch = new
            await repository.git.point_head_at(new)
        if old in repository.protected:
            repository.protected[new] = repository.protected.pop(old)
        how = How(f"rename of {old}", is_allowed=True)
        steps = [Move(f"refs/heads/{new}", tip, ZERO), Move(f"refs/heads/{old}", ZERO, tip)]
        await refs.move(repository, actor, steps, how)
        if is_default:
            changes = {"default_branch": {"from": old}}
            _tell(repository, actor, "edited", changes)


async def set_default_branch(repository: Repository, actor: Actor, branch: str) -> None:
    """Make another branch the default one. Raises Refusal(422) when there is none."""
    if repository.git.branch(branch) is None:
        raise refused("branch.unknown", branch)
    old, repository.default_branch = repository.default_branch, branch
    await repository.git.point_head_at(branch)
    _tell(repository, actor, "edited", {"default_branch": {"from": old}})


def set_ruleset(repository: Repository, actor: Actor, new: Ruleset | None, name: str) -> None:
    """Put a ruleset in the place of the one with its name; None removes that one."""
    known = next((one for one in repository.rulesets if one.name == name), None)
    if known is not None:
        repository.rulesets.remove(known)
    if new is not None:
        new.id = known.id if known is not None else new.id
        repository.rulesets.append(new)
    shown = new or known
    if shown is None:
        return
    action = "edited" if new and known else ("created" if new else "deleted")
    value = repositories.ruleset(repository, shown, whole=True)
    deliver.emit(
        repository, "repository_ruleset", action, {"repository_ruleset": value}, actor.account
    )


def set_classic(repository: Repository, actor: Actor, branch: str, new: Classic | None) -> None:
    """Protect a branch in the classic way, or no longer."""
    known = repository.protected.pop(branch, None)
    if new is not None:
        repository.protected[branch] = new
    shown = new or known
    if shown is None:
        return
    action = "edited" if new and known else ("created" if new else "deleted")
    rule = _rule_fields(repository, branch, shown)
    deliver.emit(repository, "branch_protection_rule", action, {"rule": rule}, actor.account)


def _rule_fields(repository: Repository, branch: str, rule: Classic) -> Json:
    def level(is_on: object) -> str:
        return "non_admins" if is_on else "off"

    return {
        "id": repository.id,
        "repository_id": repository.id,
        "name": branch,
        "created_at": stamp(repository.world.now()),
        "updated_at": stamp(repository.world.now()),
        "admin_enforced": rule.enforce_admins,
        "allow_deletions_enforcement_level": level(rule.deletions),
        "allow_force_pushes_enforcement_level": level(rule.force_pushes),
        "authorized_actor_names": list(rule.pushers or []),
        "authorized_actors_only": rule.pushers is not None,
        "authorized_dismissal_actors_only": False,
        "dismiss_stale_reviews_on_push": rule.dismiss_stale,
        "ignore_approvals_from_contributors": False,
        "linear_history_requirement_enforcement_level": level(rule.linear),
        "lock_branch_enforcement_level": "off",
        "merge_queue_enforcement_level": "off",
        "pull_request_reviews_enforcement_level": level(rule.approvals is not None),
        "require_code_owner_review": False,
        "required_approving_review_count": rule.approvals or 0,
        "required_conversation_resolution_level": level(rule.conversations),
        "required_deployments_enforcement_level": "off",
        "required_status_checks": [name for name, _ in rule.checks or ()],
        "required_status_checks_enforcement_level": level(rule.checks is not None),
        "signature_requirement_enforcement_level": level(rule.signatures),
        "strict_required_status_checks_policy": rule.strict,
    }
