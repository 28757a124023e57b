"""What people do, by name: the acts of the control plane, of the pages and of tests.

One table ACTS: name to function. A value names the person (`as`), the act, the repository and,
where it concerns one, the pull request (`number`); the answer names what was made.
"""

from collections.abc import Awaitable, Callable, Mapping

from bot.sandbox.acts import (
    conversation,
    gates,
    heads,
    merging,
    owners,
    pull_requests,
    pull_states,
    refs,
    repositories,
)
from bot.sandbox.acts.asked import Asked, as_files
from bot.sandbox.acts.merging import MergeCall
from bot.sandbox.acts.pull_requests import NewPull, NewReview
from bot.sandbox.acts.refs import How, Move
from bot.sandbox.deliver import APP_SLUG
from bot.sandbox.git import ZERO, NewCommit
from bot.sandbox.records import ROLES, Actor, CheckRun, Comment, Issue, Json
from bot.sandbox.refusal import Refusal
from bot.sandbox.world import Repository, World


async def act(world: World, value: Json) -> Json:
    """Do one act; what it made.

    Raises Refusal: 400 for an unknown name, person or repository, else what the provider says.
    """
    name = str(value.get("act"))
    if name not in ACTS:
        raise Refusal(400, f"no act is called {name!r}; there are {', '.join(sorted(ACTS))}")
    account = world.account(str(value.get("as", "")))
    if account is None:
        raise Refusal(400, f"nobody is called {value.get('as')!r}")
    repository = world.repository(str(value.get("repo", "")))
    if repository is None:
        raise Refusal(400, f"no repository is called {value.get('repo')!r}")
    asked = Asked(world, Actor(account), repository, value)
    if name in NEEDS_WRITE and not value.get("bypass", False):
        role = repository.role_of(account)
        own = _repository_of_head(asked).role_of(account)
        if max(ROLES.index(role), ROLES.index(own)) < ROLES.index("write"):
            said = f"{account.login} has {role} in {repository.full_name}: may not {name}"
            raise Refusal(403, said)
    async with repository.lock:
        return await ACTS[name](asked)


def _repository_of_head(asked: Asked) -> Repository:
    number = asked.value.get("number")
    issue = asked.repository.issues.get(int(number)) if number is not None else None
    if issue is not None and issue.pull is not None and issue.pull.head_repo is not None:
        return asked.world.repositories[issue.pull.head_repo]
    return asked.repository


async def _comment(asked: Asked) -> Json:
    body = asked.text("body")
    made = conversation.comment(asked.repository, asked.actor, asked.issue, body)
    return {"comment": made.id}


async def _edit(asked: Asked) -> Json:
    """A comment with `comment`, else the pull request's title and body."""
    if "comment" in asked.value:
        place = _place(asked)
        body = asked.text("body")
        conversation.edit_comment(asked.repository, asked.actor, place, body)
        return {"comment": place[1].id}
    fields: Json = {name: asked.value[name] for name in ("title", "body") if name in asked.value}
    await pull_requests.edit(asked.repository, asked.actor, asked.issue, fields)
    return {"number": asked.issue.number}


def _place(asked: Asked) -> tuple[Issue, Comment]:
    if "comment" in asked.value:
        return conversation.find_comment(asked.repository, int(asked.value["comment"]))
    bot = asked.world.apps[APP_SLUG].bot
    own = [one for one in asked.issue.comments if one.author is bot]
    if not own:
        raise Refusal(400, f"the App has no comment on #{asked.issue.number}")
    return asked.issue, own[-1]


async def _open(asked: Asked) -> Json:
    """Open a pull request; with `files` its branch is made first, in a fork with `fork`."""
    value = asked.value
    source = asked.repository
    if value.get("fork", False):
        source = await repositories.fork(asked.repository, asked.actor.account)
    base = str(value.get("base", asked.repository.default_branch))
    branch = str(value.get("head", f"topic-{pull_requests.next_number(asked.repository)}"))
    title = str(value.get("title", f"Change {branch}"))
    if "files" in value:
        start = str(value.get("from", asked.repository.git.branch(base) or ""))
        await _commit(asked, (source, branch), start, title)
    head = f"{source.owner.login}:{branch}"
    new = NewPull(head, base, title, value.get("body"), bool(value.get("draft", False)))
    made = await pull_requests.open_pull(asked.repository, asked.actor, new)
    return {"number": made.number, "head": made.pull.head_sha if made.pull else None}


async def _commit(
    asked: Asked, where: tuple[Repository, str], start: str, message: str, force: bool = False
) -> str:
    objects = where[0].git.objects
    parent = objects.commit(start)
    if parent is None:
        raise Refusal(400, f"no commit {start!r} to build on")
    files = as_files(asked.value.get("files", {}))
    who = pull_states.signature(asked.world, asked.actor.account)
    tree = objects.tree_with(parent.tree, files)
    message = str(asked.value.get("message", message))
    made = objects.write_commit(NewCommit(tree, (parent.sha,), who, who, message))
    await _set(asked, where, made.sha, force=force)
    return made.sha


async def _set(asked: Asked, where: tuple[Repository, str], sha: str, *, force: bool) -> None:
    repository, branch = where
    step = Move(f"refs/heads/{branch}", sha, force=force)
    how = How("push by a person", is_allowed=bool(asked.value.get("bypass", False)))
    await refs.move(repository, asked.actor, [step], how)


def _branch_of(asked: Asked) -> tuple[Repository, str]:
    if "branch" in asked.value:
        return asked.repository, asked.text("branch")
    pull = asked.issue.pull
    if pull is None:
        raise Refusal(400, f"#{asked.issue.number} is no pull request")
    return _repository_of_head(asked), pull.head_ref


async def _push(asked: Asked) -> Json:
    """One more commit on `branch` (made when missing), or on the head of `number`."""
    where = _branch_of(asked)
    default = asked.repository.git.branch(asked.repository.default_branch)
    start = where[0].git.branch(where[1]) or asked.value.get("from") or default
    return {"sha": await _commit(asked, where, str(start), "Change files")}


async def _force_push(asked: Asked) -> Json:
    """Replace a branch: by the commit `to`, or by `files` on top of `onto` (default: the base)."""
    where = _branch_of(asked)
    if "to" in asked.value:
        await _set(asked, where, asked.text("to"), force=True)
        return {"sha": asked.text("to")}
    base = asked.repository.default_branch
    if "number" in asked.value and asked.issue.pull is not None:
        base = asked.issue.pull.base_ref
    onto = str(asked.value.get("onto", base))
    start = asked.repository.git.branch(onto) or onto
    return {"sha": await _commit(asked, where, start, "Change files", force=True)}


async def _delete_branch(asked: Asked) -> Json:
    await _set(asked, _branch_of(asked), ZERO, force=False)
    return {}


async def _open_issue(asked: Asked) -> Json:
    title, body = asked.text("title"), asked.value.get("body")
    made = conversation.open_issue(asked.repository, asked.actor, title, body)
    return {"number": made.number}


async def _close(asked: Asked) -> Json:
    """Close a pull request or an issue."""
    if asked.issue.pull is None:
        return _change_issue(asked, "closed")
    await pull_states.close(asked.repository, asked.issue, asked.actor.account)
    return {}


async def _reopen(asked: Asked) -> Json:
    """Reopen a pull request or an issue."""
    if asked.issue.pull is None:
        return _change_issue(asked, "open")
    await pull_requests.reopen(asked.repository, asked.actor, asked.issue)
    return {}


def _change_issue(asked: Asked, state: str) -> Json:
    fields: Json = {"state": state}
    conversation.edit_issue(asked.repository, asked.actor, asked.issue, fields)
    return {}


async def _approve(asked: Asked) -> Json:
    return _review(asked, "APPROVE")


async def _request_changes(asked: Asked) -> Json:
    return _review(asked, "REQUEST_CHANGES")


async def _review_comment(asked: Asked) -> Json:
    return _review(asked, "COMMENT")


def _review(asked: Asked, event: str) -> Json:
    new = NewReview(event, str(asked.value.get("body", "")))
    made = pull_requests.review(asked.repository, asked.actor, asked.issue, new)
    return {"review": made.id}


async def _dismiss(asked: Asked) -> Json:
    """Dismiss every approval and request for changes."""
    for review in asked.issue.pull.reviews if asked.issue.pull else ():
        if review.state in ("APPROVED", "CHANGES_REQUESTED"):
            who = asked.actor.account
            heads.dismiss(asked.repository, asked.issue, review, who)
    return {}


async def _label(asked: Asked) -> Json:
    names = [asked.text("label")]
    await conversation.label(asked.repository, asked.actor, asked.issue, names)
    return {}


async def _unlabel(asked: Asked) -> Json:
    name = asked.text("label")
    await conversation.unlabel(asked.repository, asked.actor, asked.issue, name)
    return {}


async def _retarget(asked: Asked) -> Json:
    base = asked.text("base")
    await pull_requests.retarget(asked.repository, asked.actor, asked.issue, base)
    return {}


async def _draft(asked: Asked) -> Json:
    """Convert to a draft, or with `draft: false` mark ready."""
    draft = bool(asked.value.get("draft", True))
    await pull_requests.set_draft(asked.repository, asked.actor, asked.issue, draft)
    return {}


async def _merge(asked: Asked) -> Json:
    call = MergeCall(str(asked.value.get("method", "merge")))
    sha = await merging.merge_pull(asked.repository, asked.actor, asked.issue, call)
    return {"sha": sha}


async def _discuss(asked: Asked) -> Json:
    body = asked.text("body")
    made = pull_requests.discuss(asked.repository, asked.actor, asked.issue, body)
    return {"thread": made.id}


async def _resolve(asked: Asked) -> Json:
    """Resolve every conversation on the code, or with `resolved: false` open it again."""
    is_resolved = bool(asked.value.get("resolved", True))
    pull_requests.resolve(asked.repository, asked.actor, asked.issue, is_resolved)
    return {}


async def _lock(asked: Asked) -> Json:
    asked.issue.locked = bool(asked.value.get("locked", True))
    return {}


async def _tick_checkbox(asked: Asked) -> Json:
    """Tick the box whose line contains `box`, in `comment` or the App's newest comment."""
    place = _place(asked)
    box = asked.text("box")
    conversation.tick(asked.repository, asked.actor, place, box)
    return {"comment": place[1].id}


async def _press_button(asked: Asked) -> Json:
    """Press the button `button` of the App's newest check run on the head of `number`."""
    pull = asked.issue.pull
    sha = pull.head_sha if pull is not None else ""
    app = asked.world.apps[APP_SLUG]
    runs: list[CheckRun] = [
        one
        for one in asked.repository.check_runs(sha)
        if one.suite.app is app and asked.value.get("check", one.name) == one.name
    ]
    if not runs:
        raise Refusal(400, f"the App has no check run on #{asked.issue.number}")
    button = asked.text("button")
    conversation.press(asked.repository, asked.actor, runs[-1], button)
    return {"check_run": runs[-1].id}


ACTS: Mapping[str, Callable[[Asked], Awaitable[Json]]] = {
    "approve": _approve,
    "close": _close,
    "comment": _comment,
    "delete_branch": _delete_branch,
    "discuss": _discuss,
    "dismiss": _dismiss,
    "draft": _draft,
    "edit": _edit,
    "force_push": _force_push,
    "label": _label,
    "lock": _lock,
    "merge": _merge,
    "open": _open,
    "open_issue": _open_issue,
    "press_button": _press_button,
    "push": _push,
    "reopen": _reopen,
    "request_changes": _request_changes,
    "resolve": _resolve,
    "retarget": _retarget,
    "review": _review_comment,
    "tick_checkbox": _tick_checkbox,
    "unlabel": _unlabel,
    **gates.ACTS,
    **owners.ACTS,
}

NEEDS_WRITE = frozenset({"push", "force_push", "delete_branch", "merge", "stack", "enqueue"})
