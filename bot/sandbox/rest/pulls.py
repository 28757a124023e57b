"""Pull requests; issues, comments, reactions and labels: a pull request is an issue too."""

from functools import partial

from bot.sandbox.acts import conversation, merging, pull_requests, pull_states
from bot.sandbox.acts.merging import MergeCall
from bot.sandbox.acts.pull_requests import NewPull
from bot.sandbox.records import Json
from bot.sandbox.refusal import invalid, not_accessible, not_found, refused, say
from bot.sandbox.rest.call import REPO, Answer, Call, Listing, Reply, Route
from bot.sandbox.rules import METHODS
from bot.sandbox.shapes import git_data, pulls
from bot.sandbox.timeline import stamp
from bot.sandbox.world import Comment, PullRequest

FILES_MAX = 3000
COMMITS_MAX = 250
ACTIONS = ("default", "direct_merge")  # GitHub's own merge queue lands nothing in the sandbox


_ISSUE = rf"{REPO}/issues/{{number:\d+}}"
_COMMENT = rf"{REPO}/issues/comments/{{number:\d+}}"
_READ = ("issues:read", "pull_requests:read")
_WRITE = ("issues:write", "pull_requests:write")


async def _list_pulls(call: Call) -> Answer:
    """Pull requests by `state`, `base`, `head` and `sort`; newest first unless `direction=asc`."""
    state = call.query.get("state", "open")
    listed = [
        pull
        for pull in call.repository.pulls()
        if state in ("all", "open" if pull.open else "closed")
        and call.selects("base", pull.base_ref)
        and call.selects("head", f"{pull.head_repo.owner.login}:{pull.head_ref}")
    ]
    if call.query.get("sort") == "updated":
        listed.sort(key=lambda pull: pull.updated_at)
    if call.query.get("direction", "desc") == "desc":
        listed.reverse()
    return Listing(listed, pulls.pull_simple)


async def _create_pull(call: Call) -> Answer:
    """Open a pull request."""
    names, body = (call.text("head"), call.text("base"), call.text("title")), call.optional("body")
    new = NewPull(*names, body, bool(call.body.get("draft", False)))
    pull = await pull_requests.open_pull(call.repository, call.actor, new)
    return Reply(await _shape(pull), 201)


async def _shape(pull: PullRequest) -> Json:
    return pulls.pull(pull, await pull_states.changed_files(pull))


async def get_pull(call: Call) -> Answer:
    """One pull request."""
    return Reply(await _shape(call.pull))


async def _patch_pull(call: Call) -> Answer:
    """Change title, body, state or base; for its author and for writers."""
    pull, actor = call.pull, call.actor
    if actor.app is None and not call.has_role("write") and actor.account is not pull.author:
        raise not_found()
    await pull_requests.edit(pull, actor, call.body)
    return Reply(await _shape(pull))


async def _list_files(call: Call) -> Answer:
    """The changed files, at most FILES_MAX."""
    pull = call.pull
    files = (await pull_states.changed_files(pull))[:FILES_MAX]
    return Listing(files, lambda one: git_data.changed_file(pull.repository, one, pull.head_sha))


async def _list_commits(call: Call) -> Answer:
    """The commits, oldest first, at most COMMITS_MAX."""
    commits = pull_states.commits_of(call.pull)[:COMMITS_MAX]
    return Listing(commits, partial(git_data.commit, call.repository))


async def merge_pull(call: Call) -> Answer:
    """Merge it by one of three methods."""
    pull, method = call.pull, call.optional("merge_method") or "merge"
    if method not in METHODS:
        raise invalid("merge_method is unknown", field="merge_method", resource="PullRequest")
    optional = (call.optional(name) for name in ("sha", "commit_title", "commit_message"))
    sha = await merging.merge_pull(pull, call.actor, MergeCall(method, *optional))
    return Reply({"sha": sha, "merged": True, "message": "Pull Request successfully merged"})


async def _merge_async(call: Call) -> Answer:
    """Merge it, with all unmerged ones below it in its stack, a little later."""
    pull, method = call.pull, call.optional("merge_method") or "merge"
    action = call.optional("merge_action") or "default"
    if method not in METHODS:
        raise invalid("merge_method is unknown", field="merge_method", resource="PullRequest")
    if action not in ACTIONS:
        raise invalid(say("async.action"), field="merge_action", resource="PullRequest")
    optional = (call.optional(name) for name in ("sha", "commit_title", "commit_message"))
    is_pending = merging.pending_of(pull) is not None
    made = merging.submit(pull, call.actor, MergeCall(method, *optional), action)
    status = 409 if is_pending else {"pending": 202, "merged": 200, "failed": 400}[made.status]
    shape = pulls.async_merge(made)
    if is_pending:
        shape["details"]["message"] = say("async.exists")
    return Reply(shape, status)


async def _get_async_merge(call: Call) -> Answer:
    """A request of the asynchronous merge API."""
    found = merging.find(call.repository, call.params["uuid"])
    if found is None or found.number != call.number:
        raise not_found()
    return Reply(pulls.async_merge(found))


async def _list_stacks(call: Call) -> Answer:
    """Native stacks, the newest first; `pull_request`: those that contain it."""
    wanted = call.query.get("pull_request")
    listed = [
        stack
        for stack in reversed(call.repository.stacks)
        if wanted is None or int(wanted) in stack.members
    ]
    return Listing(listed, partial(pulls.whole_stack, call.repository))


async def _get_stack(call: Call) -> Answer:
    """One native stack."""
    found = next((one for one in call.repository.stacks if one.number == call.number), None)
    if found is None:
        raise not_found()
    return Reply(pulls.whole_stack(call.repository, found))


PULL = rf"{REPO}/pulls/{{number:\d+}}"
READ, WRITE = ("pull_requests:read",), ("pull_requests:write",)

ROUTES = (
    Route("GET", f"{REPO}/pulls", _list_pulls, READ),
    Route("POST", f"{REPO}/pulls", _create_pull, WRITE, role="read"),
    Route("GET", PULL, get_pull, READ),
    Route("PATCH", PULL, _patch_pull, WRITE, role="read"),
    Route("GET", f"{PULL}/files", _list_files, READ),
    Route("GET", f"{PULL}/commits", _list_commits, READ),
    Route("PUT", f"{PULL}/merge", merge_pull, ("contents:write",)),
    Route("PUT", f"{PULL}/merge-async", _merge_async, ("contents:write",)),
    Route("GET", f"{PULL}/merge-async/{{uuid}}", _get_async_merge, ("contents:read",)),
    Route("GET", f"{REPO}/stacks", _list_stacks, READ),
    Route("GET", rf"{REPO}/stacks/{{number:\d+}}", _get_stack, READ),
)


async def _list_issues(call: Call) -> Answer:
    """Issues and pull requests by `state` and `creator`, newest first."""
    state = call.query.get("state", "open")
    listed = [
        issue
        for issue in reversed(call.repository.issues.values())
        if state in ("all", "open" if issue.open else "closed")
        and call.selects("creator", issue.author.login)
    ]
    return Listing(listed, pulls.issue)


async def _create_issue(call: Call) -> Answer:
    """A new issue."""
    title, body = call.text("title"), call.optional("body")
    return Reply(
        pulls.issue(conversation.open_issue(call.repository, call.actor, title, body)), 201
    )


async def _patch_issue(call: Call) -> Answer:
    """Change title, body or `state` of an issue; a pull request is changed as one."""
    issue = call.issue
    if issue.pull is not None:
        raise not_found()
    given = [name for name in ("title", "body", "state") if name in call.body]
    fields: Json = {name: call.text(name) for name in given}
    conversation.edit_issue(issue, call.actor, fields)
    return Reply(pulls.issue(issue))


async def _get_issue(call: Call) -> Answer:
    """One issue, or a pull request as an issue."""
    return Reply(pulls.issue(call.issue))


async def _list_comments(call: Call) -> Answer:
    """The comments, oldest first."""
    return Listing(call.issue.comments, pulls.comment)


async def _list_repository_comments(call: Call) -> Answer:
    """The comments of all issues and pull requests, by `since`, `sort` and `direction`."""
    by_update = call.query.get("sort") == "updated"
    since = call.query.get("since", "")
    listed = [
        comment
        for issue in call.repository.issues.values()
        for comment in issue.comments
        if stamp(comment.updated_at) >= since
    ]
    listed.sort(
        key=lambda one: (one.updated_at if by_update else one.created_at, one.id),
        reverse=call.query.get("direction") == "desc",
    )
    return Listing(listed, pulls.comment)


async def _create_comment(call: Call) -> Answer:
    """A new comment."""
    if call.issue.pull is None and not call.actor.may("issues"):
        raise not_accessible()
    made = conversation.comment(call.issue, call.actor, call.text("body"))
    return Reply(pulls.comment(made), 201)


def _comment(call: Call) -> Comment:
    return conversation.find_comment(call.repository, call.number)


async def _patch_comment(call: Call) -> Answer:
    """Change a comment; for its author and for writers."""
    comment, actor = _comment(call), call.actor
    is_writer = actor.app is None and call.has_role("write")
    if comment.author is not actor.account and not is_writer and not actor.may("issues"):
        raise refused("role.admin")
    conversation.edit_comment(comment, actor, call.text("body"))
    return Reply(pulls.comment(comment))


async def _add_labels(call: Call) -> Answer:
    """Add labels by name; what the repository lacks is made."""
    names = call.body.get("labels")
    if not isinstance(names, list) or not names or not all(isinstance(one, str) for one in names):
        raise invalid("labels must be an array of names", field="labels", resource="Label")
    for name in names:
        await conversation.label(call.issue, call.actor, name)
    return Reply(_labels(call))


async def _remove_label(call: Call) -> Answer:
    """Remove one label; 404 when the issue does not have it."""
    await conversation.unlabel(call.issue, call.actor, call.params["label"])
    return Reply(_labels(call))


def _labels(call: Call) -> list[Json]:
    known = call.repository.labels
    return [pulls.label(call.repository, known[name.lower()]) for name in call.issue.labels]


async def _create_reaction(call: Call) -> Answer:
    """React: 201, or 200 with the reaction that is there already."""
    made, is_new = conversation.react(_comment(call), call.actor, call.text("content"))
    return Reply(pulls.reaction(call.world, made), 201 if is_new else 200)


ISSUE_ROUTES = (
    Route("GET", f"{REPO}/issues", _list_issues, _READ),
    Route("POST", f"{REPO}/issues", _create_issue, ("issues:write",)),
    Route("GET", _ISSUE, _get_issue, _READ),
    Route("PATCH", _ISSUE, _patch_issue, ("issues:write",), role="triage"),
    Route("GET", f"{_ISSUE}/comments", _list_comments, _READ),
    Route("POST", f"{_ISSUE}/comments", _create_comment, _WRITE, role="read"),
    Route("GET", f"{REPO}/issues/comments", _list_repository_comments, _READ),
    Route("POST", f"{_ISSUE}/labels", _add_labels, _WRITE, role="triage"),
    Route("DELETE", rf"{_ISSUE}/labels/{{label:[^/]+}}", _remove_label, _WRITE, role="triage"),
    Route("PATCH", _COMMENT, _patch_comment, _WRITE, role="read"),
    Route("POST", f"{_COMMENT}/reactions", _create_reaction, _WRITE, role="read"),
)
