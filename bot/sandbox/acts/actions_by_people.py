"""Actions by people, by name: for the control plane, the pages and tests.

`ACTIONS` maps a name to a function. A value names the person (`as`), the action (`act`), the
repository (`repo`) and, where it concerns one, the pull request (`number`). The answer contains
the numbers of what the action made.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from bot.sandbox import merge_rules
from bot.sandbox.acts import (
    conversation,
    heads,
    installations,
    merging,
    pull_requests,
    pull_states,
    refs,
    repositories,
)
from bot.sandbox.acts.merging import MergeCall
from bot.sandbox.acts.pull_requests import NewPull, NewReview
from bot.sandbox.acts.refs import How, Move
from bot.sandbox.deliver import APP_SLUG
from bot.sandbox.git import ZERO, NewCommit
from bot.sandbox.records import (
    ROLES,
    Account,
    Actor,
    Comment,
    Installation,
    Issue,
    Json,
    Pull,
)
from bot.sandbox.refusal import Refusal
from bot.sandbox.world import Repository, World

Place = tuple[Repository, str]
"""A branch of a repository."""


@dataclass(frozen=True, slots=True)
class Action:
    """One action of a person, its names resolved."""

    actor: Actor
    repository: Repository
    value: Json

    @property
    def world(self) -> World:
        """The world it happens in."""
        return self.repository.world

    @property
    def account(self) -> Account:
        """The person."""
        return self.actor.account

    @property
    def issue(self) -> Issue:
        """The pull request or issue of `number`. Raises Refusal(400)."""
        issue = self.repository.issues.get(int(self.value.get("number", 0)))
        if issue is None:
            raise Refusal(400, f"{self.repository.full_name} has no #{self.value.get('number')}")
        return issue

    @property
    def pull(self) -> Pull:
        """The pull request of `number`. Raises Refusal(400)."""
        if self.issue.pull is None:
            raise Refusal(400, f"#{self.issue.number} is no pull request")
        return self.issue.pull

    @property
    def installation(self) -> Installation:
        """The App's installation on the repository's owner."""
        return installations.install(self.world, self.repository.owner)

    def text(self, name: str) -> str:
        """Return a field that must be there. Raises Refusal(400)."""
        value = self.value.get(name)
        if not isinstance(value, str):
            raise Refusal(400, f"the act needs {name!r}")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a field that is true or false."""
        return bool(self.value.get(name, default))


async def act(world: World, value: Json) -> Json:
    """Do one action; return what it made.

    Raises Refusal: 400 for an unknown name, person or repository, else what the provider says.
    """
    name = str(value.get("act"))
    if name not in ACTIONS:
        raise Refusal(400, f"no act is called {name!r}; there are {', '.join(sorted(ACTIONS))}")
    account = world.account(str(value.get("as", "")))
    if account is None:
        raise Refusal(400, f"nobody is called {value.get('as')!r}")
    repository = world.repository(str(value.get("repo", "")))
    if repository is None:
        raise Refusal(400, f"no repository is called {value.get('repo')!r}")
    action = Action(Actor(account), repository, value)
    if name in NEEDS_WRITE and not action.flag("bypass", default=False):
        role = repository.role_of(account)
        own = _repository_of_head(action).role_of(account)
        if max(ROLES.index(role), ROLES.index(own)) < ROLES.index("write"):
            said = f"{account.login} has {role} in {repository.full_name}: may not {name}"
            raise Refusal(403, said)
    async with repository.lock:
        return await ACTIONS[name](action) or {}


def as_files(value: Any) -> dict[str, bytes | None]:
    """Return files by path from JSON: text, or null to remove one. Raises Refusal(400)."""
    if not isinstance(value, Mapping):
        raise Refusal(400, "files is {path: text or null}")
    return {str(path): None if text is None else str(text).encode() for path, text in value.items()}


def _repository_of_head(action: Action) -> Repository:
    number = action.value.get("number")
    issue = action.repository.issues.get(int(number)) if number is not None else None
    if issue is not None and issue.pull is not None and issue.pull.head_repo is not None:
        return action.world.repositories[issue.pull.head_repo]
    return action.repository


def _place_of(action: Action) -> Place:
    if "branch" in action.value:
        return action.repository, action.text("branch")
    return _repository_of_head(action), action.pull.head_ref


async def _commit(
    action: Action, place: Place, start: str, message: str, force: bool = False
) -> str:
    objects = place[0].git.objects
    parent = objects.commit(start)
    if parent is None:
        raise Refusal(400, f"no commit {start!r} to build on")
    author = pull_states.signature(action.world, action.account)
    tree = objects.tree_with(parent.tree, as_files(action.value.get("files", {})))
    message = str(action.value.get("message", message))
    made = objects.write_commit(NewCommit(tree, (parent.sha,), author, author, message))
    await _set(action, place, made.sha, force=force)
    return made.sha


async def _set(action: Action, place: Place, sha: str, *, force: bool) -> None:
    repository, branch = place
    step = Move(f"refs/heads/{branch}", sha, force=force)
    how = How("push by a person", is_allowed=action.flag("bypass", default=False))
    await refs.move(repository, action.actor, [step], how)


async def _push(action: Action) -> Json:
    """Commit once more on `branch` (made when missing), or on the head of `number`."""
    place = _place_of(action)
    default = action.repository.git.branch(action.repository.default_branch)
    start = place[0].git.branch(place[1]) or action.value.get("from") or default
    return {"sha": await _commit(action, place, str(start), "Change files")}


async def _force_push(action: Action) -> Json:
    """Replace a branch: by the commit `to`, or by `files` on top of `onto` (default: the base)."""
    place = _place_of(action)
    if "to" in action.value:
        await _set(action, place, action.text("to"), force=True)
        return {"sha": action.text("to")}
    base = action.repository.default_branch
    if "number" in action.value and action.issue.pull is not None:
        base = action.issue.pull.base_ref
    onto = str(action.value.get("onto", base))
    start = action.repository.git.branch(onto) or onto
    return {"sha": await _commit(action, place, start, "Change files", force=True)}


async def _delete_branch(action: Action) -> None:
    await _set(action, _place_of(action), ZERO, force=False)


async def _open(action: Action) -> Json:
    """Open a pull request; `files` makes its branch first, in a fork with `fork`."""
    value, source = action.value, action.repository
    if action.flag("fork", default=False):
        source = await repositories.fork(action.repository, action.account)
    base = str(value.get("base", action.repository.default_branch))
    branch = str(value.get("head", f"topic-{pull_requests.next_number(action.repository)}"))
    title = str(value.get("title", f"Change {branch}"))
    if "files" in value:
        start = str(value.get("from", action.repository.git.branch(base) or ""))
        await _commit(action, (source, branch), start, title)
    head, draft = f"{source.owner.login}:{branch}", action.flag("draft", default=False)
    new = NewPull(head, base, title, value.get("body"), draft)
    made = await pull_requests.open_pull(action.repository, action.actor, new)
    return {"number": made.number, "head": made.pull.head_sha if made.pull else None}


async def _edit(action: Action) -> Json:
    """Edit a comment with `comment`, else title and body of the pull request."""
    if "comment" in action.value:
        place = _comment_of(action)
        conversation.edit_comment(action.repository, action.actor, place, action.text("body"))
        return {"comment": place[1].id}
    fields: Json = {name: action.value[name] for name in ("title", "body") if name in action.value}
    await pull_requests.edit(action.repository, action.actor, action.issue, fields)
    return {"number": action.issue.number}


async def _close(action: Action) -> None:
    """Close a pull request or an issue."""
    if action.issue.pull is None:
        _change_issue(action, "closed")
    else:
        await pull_states.close(action.repository, action.issue, action.account)


async def _reopen(action: Action) -> None:
    """Reopen a pull request or an issue."""
    if action.issue.pull is None:
        _change_issue(action, "open")
    else:
        await pull_requests.reopen(action.repository, action.actor, action.issue)


def _change_issue(action: Action, state: str) -> None:
    conversation.edit_issue(action.repository, action.actor, action.issue, {"state": state})


async def _review(action: Action, event: str) -> Json:
    new = NewReview(event, str(action.value.get("body", "")))
    made = pull_requests.review(action.repository, action.actor, action.issue, new)
    return {"review": made.id}


async def _dismiss(action: Action) -> None:
    """Dismiss every approval and request for changes."""
    for review in action.pull.reviews:
        if review.state in ("APPROVED", "CHANGES_REQUESTED"):
            heads.dismiss(action.repository, action.issue, review, action.account)


async def _retarget(action: Action) -> None:
    base = action.text("base")
    await pull_requests.retarget(action.repository, action.actor, action.issue, base)


async def _draft(action: Action) -> None:
    """Convert to a draft, or with `draft: false` mark ready."""
    draft = action.flag("draft", default=True)
    await pull_requests.set_draft(action.repository, action.actor, action.issue, draft)


async def _merge(action: Action) -> Json:
    call = MergeCall(str(action.value.get("method", "merge")))
    sha = await merging.merge_pull(action.repository, action.actor, action.issue, call)
    return {"sha": sha}


async def _discuss(action: Action) -> Json:
    body = action.text("body")
    made = pull_requests.discuss(action.repository, action.actor, action.issue, body)
    return {"thread": made.id}


async def _resolve(action: Action) -> None:
    """Resolve every conversation on the code, or with `resolved: false` reopen it."""
    is_resolved = action.flag("resolved", default=True)
    pull_requests.resolve(action.repository, action.actor, action.issue, is_resolved)


async def _comment(action: Action) -> Json:
    body = action.text("body")
    made = conversation.comment(action.repository, action.actor, action.issue, body)
    return {"comment": made.id}


def _comment_of(action: Action) -> tuple[Issue, Comment]:
    """Return the comment `comment`, else the App's newest comment."""
    if "comment" in action.value:
        return conversation.find_comment(action.repository, int(action.value["comment"]))
    bot = action.world.apps[APP_SLUG].bot
    own = [one for one in action.issue.comments if one.author is bot]
    if not own:
        raise Refusal(400, f"the App has no comment on #{action.issue.number}")
    return action.issue, own[-1]


async def _open_issue(action: Action) -> Json:
    title, body = action.text("title"), action.value.get("body")
    made = conversation.open_issue(action.repository, action.actor, title, body)
    return {"number": made.number}


async def _label(action: Action) -> None:
    names = [action.text("label")]
    await conversation.label(action.repository, action.actor, action.issue, names)


async def _unlabel(action: Action) -> None:
    name = action.text("label")
    await conversation.unlabel(action.repository, action.actor, action.issue, name)


async def _lock(action: Action) -> None:
    action.issue.locked = action.flag("locked", default=True)


async def _tick_checkbox(action: Action) -> Json:
    """Tick the box whose line contains `box`, in `comment` or the App's newest comment."""
    place = _comment_of(action)
    conversation.tick(action.repository, action.actor, place, action.text("box"))
    return {"comment": place[1].id}


async def _press_button(action: Action) -> Json:
    """Press the button `button` of the App's newest check run on the head of `number`."""
    app = action.world.apps[APP_SLUG]
    runs = [
        one
        for one in action.repository.check_runs(action.pull.head_sha)
        if one.suite.app is app and action.value.get("check", one.name) == one.name
    ]
    if not runs:
        raise Refusal(400, f"the App has no check run on #{action.issue.number}")
    conversation.press(action.repository, action.actor, runs[-1], action.text("button"))
    return {"check_run": runs[-1].id}


async def _stack(action: Action) -> Json:
    """Put the pull requests `numbers`, the bottom first, into a native stack."""
    numbers = [int(one) for one in action.value.get("numbers", ())]
    made = await pull_requests.stack(action.repository, action.actor, numbers)
    return {"stack": made.number}


async def _unstack(action: Action) -> None:
    """Dissolve the native stack of `number`."""
    pull_requests.unstack(action.repository, action.issue.number)


async def _enqueue(action: Action) -> None:
    """Put a pull request into the provider's own merge queue; there it stays."""
    pull = action.pull
    if not merge_rules.has_queue(action.repository, pull.base_ref):
        raise Refusal(400, f"{pull.base_ref} has no merge queue")
    pull.queued = True
    await pull_states.announce(action.repository, action.issue, "enqueued", action.account)


async def _dequeue(action: Action) -> None:
    """Take a pull request out of the provider's own merge queue."""
    action.pull.queued = False
    place = (action.repository, action.issue)
    await pull_states.announce(*place, "dequeued", action.account, reason="MANUAL")


async def _deploy(action: Action) -> None:
    """Give the head of `number` a successful deployment to `environment`."""
    action.repository.deployed.add((action.pull.head_sha, action.text("environment")))


async def _scan(action: Action) -> None:
    """Give the head of `number` results of code scanning."""
    action.repository.scanned.add(action.pull.head_sha)


async def _rename(action: Action) -> None:
    """Rename the branch `branch`, or the repository, to `to`."""
    to = action.text("to")
    if "branch" in action.value:
        branch = action.text("branch")
        repositories.rename_branch(action.repository, action.actor, branch, to)
    else:
        repositories.rename(action.repository, action.actor, to)


async def _default_branch(action: Action) -> None:
    """Make `branch` the default one."""
    branch = action.text("branch")
    await repositories.set_default_branch(action.repository, action.actor, branch)


async def _transfer(action: Action) -> None:
    owner = action.world.account(action.text("to"))
    if owner is None:
        raise Refusal(400, f"nobody is called {action.text('to')!r}")
    repositories.transfer(action.repository, action.actor, owner)


async def _archive(action: Action) -> None:
    is_archived = action.flag("archived", default=True)
    repositories.set_archived(action.repository, action.actor, is_archived=is_archived)


async def _delete_repository(action: Action) -> None:
    repositories.delete(action.repository, action.actor)


async def _role(action: Action) -> None:
    """Give the person `login` another role."""
    login, role = action.text("login"), action.text("role")
    if role not in ROLES:
        raise Refusal(400, f"no role is called {role!r}; there are {', '.join(ROLES)}")
    action.repository.collaborators[action.world.add_account(login).login.lower()] = role


async def _suspend(action: Action) -> None:
    """Suspend the App on the repository's owner, or with `suspended: false` let it work."""
    installation, is_suspended = action.installation, action.flag("suspended", default=True)
    installations.set_suspended(
        action.world, installation, action.account, is_suspended=is_suspended
    )


async def _permissions(action: Action) -> None:
    """Give the App other permissions on the repository's owner."""
    given = {str(name): str(level) for name, level in action.value["permissions"].items()}
    installations.set_permissions(action.world, action.installation, action.account, given)


async def _uninstall(action: Action) -> None:
    """Remove the App from the repository's owner; its tokens are worthless from now on."""
    installations.remove(action.world, action.installation, action.account)


async def _select(action: Action) -> None:
    """Hide the repository from the App, or with `selected: true` show it again."""
    is_selected = action.flag("selected", default=False)
    installations.select(action.installation, action.repository, is_selected=is_selected)


async def _rename_owner(action: Action) -> None:
    """Give the repository's owner the login `to`."""
    installations.rename_owner(action.world, action.repository.owner, action.text("to"))


ACTIONS: Mapping[str, Callable[[Action], Awaitable[Json | None]]] = {
    "approve": partial(_review, event="APPROVE"),
    "archive": _archive,
    "close": _close,
    "comment": _comment,
    "default_branch": _default_branch,
    "delete_branch": _delete_branch,
    "delete_repository": _delete_repository,
    "deploy": _deploy,
    "dequeue": _dequeue,
    "discuss": _discuss,
    "dismiss": _dismiss,
    "draft": _draft,
    "edit": _edit,
    "enqueue": _enqueue,
    "force_push": _force_push,
    "label": _label,
    "lock": _lock,
    "merge": _merge,
    "open": _open,
    "open_issue": _open_issue,
    "permissions": _permissions,
    "press_button": _press_button,
    "push": _push,
    "rename": _rename,
    "rename_owner": _rename_owner,
    "reopen": _reopen,
    "request_changes": partial(_review, event="REQUEST_CHANGES"),
    "resolve": _resolve,
    "retarget": _retarget,
    "review": partial(_review, event="COMMENT"),
    "role": _role,
    "scan": _scan,
    "select": _select,
    "stack": _stack,
    "suspend": _suspend,
    "tick_checkbox": _tick_checkbox,
    "transfer": _transfer,
    "uninstall": _uninstall,
    "unlabel": _unlabel,
    "unstack": _unstack,
}

NEEDS_WRITE = frozenset({"push", "force_push", "delete_branch", "merge", "stack", "enqueue"})
