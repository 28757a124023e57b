"""Issues, comments, reactions and labels; a pull request is an issue too."""

from bot.sandbox.acts import conversation
from bot.sandbox.records import Json
from bot.sandbox.refusal import invalid, not_accessible, not_found, refused
from bot.sandbox.rest.call import REPO, Answer, Call, Listing, Reply, Route
from bot.sandbox.shapes import issues
from bot.sandbox.timeline import stamp
from bot.sandbox.world import Comment


async def _list_issues(call: Call) -> Answer:
    """Issues and pull requests by `state` and `creator`, newest first."""
    state = call.query.get("state", "open")
    listed = [
        issue
        for issue in reversed(call.repository.issues.values())
        if state in ("all", "open" if issue.open else "closed")
        and call.selects("creator", issue.author.login)
    ]
    return Listing(listed, issues.issue)


async def _create_issue(call: Call) -> Answer:
    """A new issue."""
    title, body = call.text("title"), call.optional("body")
    return Reply(
        issues.issue(conversation.open_issue(call.repository, call.actor, title, body)), 201
    )


async def _patch_issue(call: Call) -> Answer:
    """Change title, body or `state` of an issue; a pull request is changed as one."""
    issue = call.issue
    if issue.pull is not None:
        raise not_found()
    given = [name for name in ("title", "body", "state") if name in call.body]
    fields: Json = {name: call.text(name) for name in given}
    conversation.edit_issue(issue, call.actor, fields)
    return Reply(issues.issue(issue))


async def _get_issue(call: Call) -> Answer:
    """One issue, or a pull request as an issue."""
    return Reply(issues.issue(call.issue))


async def _list_comments(call: Call) -> Answer:
    """The comments, oldest first."""
    return Listing(call.issue.comments, issues.comment)


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
    return Listing(listed, issues.comment)


async def _create_comment(call: Call) -> Answer:
    """A new comment."""
    if call.issue.pull is None and not call.actor.may("issues"):
        raise not_accessible()
    made = conversation.comment(call.issue, call.actor, call.text("body"))
    return Reply(issues.comment(made), 201)


def _comment(call: Call) -> Comment:
    return conversation.find_comment(call.repository, call.number)


async def _patch_comment(call: Call) -> Answer:
    """Change a comment; for its author and for writers."""
    comment, actor = _comment(call), call.actor
    is_writer = actor.app is None and call.has_role("write")
    if comment.author is not actor.account and not is_writer and not actor.may("issues"):
        raise refused("role.admin")
    conversation.edit_comment(comment, actor, call.text("body"))
    return Reply(issues.comment(comment))


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
    return [issues.label(call.repository, known[name.lower()]) for name in call.issue.labels]


async def create_reaction(call: Call) -> Answer:
    """React: 201, or 200 with the reaction that is there already."""
    made, is_new = conversation.react(_comment(call), call.actor, call.text("content"))
    return Reply(issues.reaction(call.world, made), 201 if is_new else 200)


ISSUE = rf"{REPO}/issues/{{number:\d+}}"
COMMENT = rf"{REPO}/issues/comments/{{number:\d+}}"
READ = ("issues:read", "pull_requests:read")
WRITE = ("issues:write", "pull_requests:write")

ROUTES = (
    Route("GET", f"{REPO}/issues", _list_issues, READ),
    Route("POST", f"{REPO}/issues", _create_issue, ("issues:write",)),
    Route("GET", ISSUE, _get_issue, READ),
    Route("PATCH", ISSUE, _patch_issue, ("issues:write",), role="triage"),
    Route("GET", f"{ISSUE}/comments", _list_comments, READ),
    Route("POST", f"{ISSUE}/comments", _create_comment, WRITE, role="read"),
    Route("GET", f"{REPO}/issues/comments", _list_repository_comments, READ),
    Route("POST", f"{ISSUE}/labels", _add_labels, WRITE, role="triage"),
    Route("DELETE", rf"{ISSUE}/labels/{{label:[^/]+}}", _remove_label, WRITE, role="triage"),
    Route("PATCH", COMMENT, _patch_comment, WRITE, role="read"),
    Route("POST", f"{COMMENT}/reactions", create_reaction, WRITE, role="read"),
)
