"""Actions by people, by name: for the control plane, the pages and tests.

`ACTIONS` maps a name to a function. A value names the person (`as`), the action (`act`), the
repository (`repo`) and, where it concerns one, the pull request (`number`). The answer contains
the numbers of what the action made.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from bot.sandbox import ci, merge_rules
from bot.sandbox.acts import (
    conversation,
    installations,
    merging,
    pull_requests,
    pull_states,
    refs,
    repositories,
)
from bot.sandbox.acts.merging import MergeCall
from bot.sandbox.acts.pull_requests import NewPull
from bot.sandbox.acts.refs import How, Move
from bot.sandbox.git import ZERO, NewCommit
from bot.sandbox.records import ROLES, Account, Actor, CheckRun, Json, Kind
from bot.sandbox.refusal import Refusal
from bot.sandbox.world import Comment, Issue, PullRequest, Repository, World

Result = Awaitable[Json | None] | Json | None
"""The numbers of what an action made, if any."""


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
    def pull(self) -> PullRequest:
        """The pull request of `number`. Raises Refusal(400)."""
        issue = self.issue
        if issue.pull is None:
            raise Refusal(400, f"#{issue.number} is no pull request")
        return issue.pull

    @property
    def comment(self) -> Comment:
        """The comment `comment`, else the App's newest comment. Raises Refusal."""
        if "comment" in self.value:
            return conversation.find_comment(self.repository, int(self.value["comment"]))
        app = self.world.app
        own = [one for one in self.issue.comments if app and one.author is app.bot]
        if not own:
            raise Refusal(400, f"the App has no comment on #{self.issue.number}")
        return own[-1]

    @property
    def branch(self) -> tuple[Repository, str]:
        """The branch `branch`, else the head branch of the pull request."""
        if "branch" in self.value:
            return self.repository, self.text("branch")
        return self.pull.head_repo, self.pull.head_ref

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

    Raises Refusal: 400 for an unknown name, person or repository, else GitHub's own.
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
        _check_role(action, name)
    async with repository.lock:
        result = ACTIONS[name](action)
        return (await result if isinstance(result, Awaitable) else result) or {}


def _check_role(action: Action, name: str) -> None:
    """Raise Refusal(403) for a person who may write neither to the repository nor to the head."""
    repository = action.repository
    issue = repository.issues.get(int(action.value.get("number") or 0))
    head = issue.pull.head_repo if issue is not None and issue.pull is not None else repository
    role = repository.role_of(action.account)
    best = max(ROLES.index(role), ROLES.index(head.role_of(action.account)))
    if best < ROLES.index("write"):
        message = f"{action.account.login} has {role} in {repository.full_name}: may not {name}"
        raise Refusal(403, message)


def as_files(value: Any) -> dict[str, bytes | None]:
    """Return files by path from JSON: text, or null to remove one. Raises Refusal(400)."""
    if not isinstance(value, Mapping):
        raise Refusal(400, "files is {path: text or null}")
    return {str(path): None if text is None else str(text).encode() for path, text in value.items()}


async def _commit(
    action: Action, branch: tuple[Repository, str], start: str, message: str, force: bool = False
) -> str:
    objects = branch[0].git.objects
    parent = objects.commit(start)
    if parent is None:
        raise Refusal(400, f"no commit {start!r} to build on")
    author = pull_states.signature(action.world, action.account)
    tree = objects.tree_with(parent.tree, as_files(action.value.get("files", {})))
    message = str(action.value.get("message", message))
    made = objects.write_commit(NewCommit(tree, (parent.sha,), author, author, message))
    await _set(action, branch, made.sha, force=force)
    return made.sha


async def _set(action: Action, branch: tuple[Repository, str], sha: str, *, force: bool) -> None:
    step = Move(f"refs/heads/{branch[1]}", sha, force=force)
    how = How("push by a person", is_allowed=action.flag("bypass", default=False))
    await refs.move(branch[0], action.actor, [step], how)


async def _push(action: Action) -> Json:
    """Commit once more on `branch` (made when missing), or on the head of `number`."""
    repository, name = action.branch
    default = action.repository.git.branch(action.repository.default_branch)
    start = repository.git.branch(name) or action.value.get("from") or default
    return {"sha": await _commit(action, action.branch, str(start), "Change files")}


async def _force_push(action: Action) -> Json:
    """Replace a branch: by the commit `to`, or by `files` on top of `onto` (default: the base)."""
    if "to" in action.value:
        await _set(action, action.branch, action.text("to"), force=True)
        return {"sha": action.text("to")}
    base = action.pull.base_ref if "number" in action.value else action.repository.default_branch
    onto = str(action.value.get("onto", base))
    start = action.repository.git.branch(onto) or onto
    return {"sha": await _commit(action, action.branch, start, "Change files", force=True)}


async def _open(action: Action) -> Json:
    """Open a pull request; `files` makes its branch first, in a fork with `fork`."""
    value, source = action.value, action.repository
    if action.flag("fork", default=False):
        source = repositories.fork(action.repository, action.account)
    base = str(value.get("base", action.repository.default_branch))
    branch = str(value.get("head", f"topic-{action.repository.next_number()}"))
    title = str(value.get("title", f"Change {branch}"))
    if "files" in value:
        start = str(value.get("from", action.repository.git.branch(base) or ""))
        await _commit(action, (source, branch), start, title)
    head, draft = f"{source.owner.login}:{branch}", action.flag("draft", default=False)
    new = NewPull(head, base, title, value.get("body"), draft)
    made = await pull_requests.open_pull(action.repository, action.actor, new)
    return {"number": made.number, "head": made.head_sha}


async def _edit(action: Action) -> Json:
    """Edit a comment with `comment`, else title and body of the pull request."""
    if "comment" in action.value:
        conversation.edit_comment(action.comment, action.actor, action.text("body"))
        return {"comment": action.comment.id}
    fields: Json = {name: action.value[name] for name in ("title", "body") if name in action.value}
    await pull_requests.edit(action.pull, action.actor, fields)
    return {"number": action.pull.number}


async def _set_state(action: Action, state: str) -> None:
    """Close or reopen a pull request or an issue."""
    if action.issue.pull is None:
        conversation.edit_issue(action.issue, action.actor, {"state": state})
    else:
        await pull_requests.edit(action.pull, action.actor, {"state": state})


async def _merge(action: Action) -> Json:
    call = MergeCall(str(action.value.get("method", "merge")))
    return {"sha": await merging.merge_pull(action.pull, action.actor, call)}


def _review(action: Action, event: str) -> Json:
    body = str(action.value.get("body", ""))
    return {"review": pull_requests.review(action.pull, action.actor, event, body).id}


def _comment(action: Action) -> Json:
    return {"comment": conversation.comment(action.issue, action.actor, action.text("body")).id}


def _open_issue(action: Action) -> Json:
    title, body = action.text("title"), action.value.get("body")
    made = conversation.open_issue(action.repository, action.actor, title, body)
    return {"number": made.number}


def _lock(action: Action) -> None:
    action.issue.locked = action.flag("locked", default=True)


def _tick_checkbox(action: Action) -> Json:
    """Tick the box whose line contains `box`, in `comment` or the App's newest comment."""
    conversation.tick(action.comment, action.actor, action.text("box"))
    return {"comment": action.comment.id}


def _press_button(action: Action) -> Json:
    """Press the button `button` of the App's newest check run on the head of `number`."""
    run = _own_check(action)
    conversation.press(action.repository, action.actor, run, action.text("button"))
    return {"check_run": run.id}


def _rerun_check(action: Action) -> Json:
    """Press "Re-run" on the App's newest check run on the head of `number`."""
    run = _own_check(action)
    conversation.rerun(action.repository, action.actor, run)
    return {"check_run": run.id}


def _rerun_ci(action: Action) -> Json:
    """Press "Re-run failed jobs" on the newest CI run of the branch `branch`."""
    branch = action.text("branch")
    runs = [run for run in action.repository.workflow_runs if run.head_branch == branch]
    if not runs or runs[-1].conclusion in (None, "success"):
        raise Refusal(400, f"CI has no failed run of {branch}")
    ci.rerun(action.repository, runs[-1], failed_only=True)
    return {"run": runs[-1].id}


def _own_check(action: Action) -> CheckRun:
    """The App's newest check run on the head of `number`, of the name `check` if one is given."""
    app = action.world.app
    runs = [
        run
        for run in action.repository.check_runs(action.pull.head_sha)
        if run.suite.app is app and action.value.get("check", run.name) == run.name
    ]
    if not runs:
        raise Refusal(400, f"the App has no check run on #{action.issue.number}")
    return runs[-1]


async def _stack(action: Action) -> Json:
    """Put the pull requests `numbers`, the bottom first, into a native stack."""
    issues = [action.repository.issues.get(int(one)) for one in action.value.get("numbers", ())]
    members = [issue.pull for issue in issues if issue is not None and issue.pull is not None]
    made = await pull_requests.stack(action.repository, action.actor, members)
    return {"stack": made.number}


async def _enqueue(action: Action) -> None:
    """Put a pull request into GitHub's own merge queue; there it stays."""
    pull = action.pull
    if not merge_rules.has_queue(action.repository, pull.base_ref):
        raise Refusal(400, f"{pull.base_ref} has no merge queue")
    pull.queued = True
    await pull_states.announce(pull, "enqueued", action.account)


async def _dequeue(action: Action) -> None:
    """Take a pull request out of GitHub's own merge queue, for the reason `reason`."""
    action.pull.queued = False
    reason = action.text("reason")
    await pull_states.announce(action.pull, "dequeued", action.account, reason=reason)


def _rename(action: Action) -> None:
    """Rename the branch `branch`, or the repository, to `to`."""
    to = action.text("to")
    if "branch" in action.value:
        branch = action.text("branch")
        repositories.rename_branch(action.repository, action.actor, branch, to)
    else:
        repositories.rename(action.repository, action.actor, to)


def _role(action: Action) -> None:
    """Give the person `login` another role."""
    login, role = action.text("login"), action.text("role")
    if role not in ROLES:
        raise Refusal(400, f"no role is called {role!r}; there are {', '.join(ROLES)}")
    action.repository.collaborators[action.world.add_account(login).login.lower()] = role


def _suspend(action: Action) -> None:
    """Suspend the App on the repository's owner, or with `suspended: false` unsuspend it."""
    world, installed = action.world, installations.install(action.world, action.repository.owner)
    is_suspended = action.flag("suspended", default=True)
    installations.set_suspended(world, installed, action.account, is_suspended=is_suspended)


def _permissions(action: Action) -> None:
    """Give the App other permissions on the repository's owner."""
    world, installed = action.world, installations.install(action.world, action.repository.owner)
    given = {str(name): str(level) for name, level in action.value["permissions"].items()}
    installations.set_permissions(world, installed, action.account, given)


def _install(action: Action) -> Json:
    """Install the App on the repository's owner, for all of the owner's repositories."""
    return {"installation": installations.install(action.world, action.repository.owner).id}


def _select(action: Action) -> None:
    """Limit the App to the repositories `names` of the repository's owner; none: all."""
    owner, names = action.repository.owner, action.value.get("names")
    listed = action.world.repositories.values()
    chosen = {one.id for one in listed if one.owner is owner and one.name in (names or ())}
    installations.select(action.world, owner, None if names is None else chosen, action.account)


def _transfer(action: Action) -> None:
    """Give the repository to the owner `to`."""
    owner = action.world.add_account(action.text("to"), Kind.ORGANIZATION)
    repositories.transfer(action.repository, action.actor, owner)


def _events(action: Action) -> None:
    """Let the App subscribe to these events, as its owner does in the App's settings."""
    if (app := action.world.app) is not None:
        app.events = [str(name) for name in action.value["events"]]


ACTIONS: Mapping[str, Callable[[Action], Result]] = {
    "approve": partial(_review, event="APPROVE"),
    "archive": lambda one: repositories.set_archived(
        one.repository, one.actor, is_archived=one.flag("archived", default=True)
    ),
    "auto_merge": lambda one: pull_requests.set_auto_merge(
        one.pull, one.actor, one.flag("enabled", default=True)
    ),
    "close": partial(_set_state, state="closed"),
    "comment": _comment,
    "default_branch": lambda one: repositories.set_default_branch(
        one.repository, one.actor, one.text("branch")
    ),
    "delete": lambda one: repositories.delete(one.repository, one.actor),
    "delete_branch": lambda one: _set(one, one.branch, ZERO, force=False),
    "deploy": lambda one: one.repository.deployed.add((one.pull.head_sha, one.text("environment"))),
    "dequeue": _dequeue,
    "discuss": lambda one: {
        "thread": pull_requests.discuss(one.pull, one.actor, one.text("body")).id
    },
    "draft": lambda one: pull_requests.set_draft(
        one.pull, one.actor, one.flag("draft", default=True)
    ),
    "edit": _edit,
    "edit_review": lambda one: pull_requests.edit_review(one.pull, one.actor, one.text("body")),
    "enqueue": _enqueue,
    "events": _events,
    "force_push": _force_push,
    "install": _install,
    "label": lambda one: conversation.label(one.issue, one.actor, one.text("label")),
    "lock": _lock,
    "merge": _merge,
    "open": _open,
    "open_issue": _open_issue,
    "permissions": _permissions,
    "press_button": _press_button,
    "rerun_check": _rerun_check,
    "rerun_ci": _rerun_ci,
    "private": lambda one: repositories.set_visibility(
        one.repository, one.actor, is_private=one.flag("private", default=True)
    ),
    "push": _push,
    "rename": _rename,
    "rename_owner": lambda one: installations.rename_owner(
        one.world, one.repository.owner, one.text("to")
    ),
    "reopen": partial(_set_state, state="open"),
    "request_changes": partial(_review, event="REQUEST_CHANGES"),
    "resolve": lambda one: pull_requests.resolve(
        one.pull, one.actor, one.flag("resolved", default=True)
    ),
    "retarget": lambda one: pull_requests.retarget(one.pull, one.actor, one.text("base")),
    "role": _role,
    "select": _select,
    "stack": _stack,
    "suspend": _suspend,
    "tick_checkbox": _tick_checkbox,
    "transfer": _transfer,
    "uninstall": lambda one: installations.uninstall(one.world, one.repository.owner, one.account),
    "unlabel": lambda one: conversation.unlabel(one.issue, one.actor, one.text("label")),
}

NEEDS_WRITE = frozenset(
    {
        "push",
        "force_push",
        "delete_branch",
        "merge",
        "stack",
        "enqueue",
        "dequeue",
        "rerun_ci",
        "auto_merge",
    }
)
