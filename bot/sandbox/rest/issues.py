"""Issues, comments, reactions and labels; a pull request is an issue too."""

from functools import partial

from bot.sandbox.acts import conversation
from bot.sandbox.records import ROLES, Comment, Issue, Json, Reaction
from bot.sandbox.refusal import not_accessible, not_found, refused
from bot.sandbox.rest.call import Answer, Call, Listing, Reply, Route
from bot.sandbox.shapes import pulls
from bot.sandbox.timeline import stamp


def issue_of(call: Call) -> Issue:
    """The issue of the path, or the pull request. Raises Refusal(404)."""
    found = call.repository.issues.get(int(call.params["number"]))
    if found is None:
        raise not_found()
    return found


async def list_issues(call: Call) -> Answer:
    """Issues and pull requests by `state` and `creator`, newest first."""
    state, creator = call.query.get("state", "open"), call.query.get("creator")
    found = [
        one
        for one in reversed(call.repository.issues.values())
        if state in ("all", "open" if one.open else "closed")
        and creator in (None, one.author.login)
    ]
    return Listing(found, partial(pulls.issue, call.repository))


async def create_issue(call: Call) -> Answer:
    """A new issue."""
    title, body = call.text("title"), call.optional("body")
    made = conversation.open_issue(call.repository, call.actor, title, body)
    return Reply(pulls.issue(call.repository, made), 201)


async def patch_issue(call: Call) -> Answer:
    """Change title, body or `state` of an issue; a pull request is changed as one."""
    issue = issue_of(call)
    if issue.pull is not None:
        raise not_found()
    given = [name for name in ("title", "body", "state") if name in call.body]
    fields: Json = {name: call.text(name) for name in given}
    conversation.edit_issue(call.repository, call.actor, issue, fields)
    return Reply(pulls.issue(call.repository, issue))


async def get_issue(call: Call) -> Answer:
    """One issue, or a pull request as an issue."""
    return Reply(pulls.issue(call.repository, issue_of(call)))


async def list_comments(call: Call) -> Answer:
    """The comments, oldest first."""
    issue = issue_of(call)
    return Listing(issue.comments, partial(pulls.comment, call.repository, issue))


async def list_repository_comments(call: Call) -> Answer:
    """The comments of all issues and pull requests, by `since`, `sort` and `direction`."""
    repository = call.repository
    by_update = call.query.get("sort") == "updated"
    since = call.query.get("since", "")
    found = [
        (one.updated_at if by_update else one.created_at, one.id, issue, one)
        for issue in repository.issues.values()
        for one in issue.comments
        if stamp(one.updated_at) >= since
    ]
    found.sort(key=lambda each: each[:2], reverse=call.query.get("direction") == "desc")
    return Listing(found, lambda each: pulls.comment(repository, each[2], each[3]))


async def create_comment(call: Call) -> Answer:
    """A new comment."""
    issue = issue_of(call)
    if issue.pull is None and not call.actor.may("issues"):
        raise not_accessible()
    made = conversation.comment(call.repository, call.actor, issue, call.text("body"))
    return Reply(pulls.comment(call.repository, issue, made), 201)


def _comment(call: Call) -> tuple[Issue, Comment]:
    return conversation.find_comment(call.repository, int(call.params["id"]))


def _own_or_writer(call: Call, comment: Comment) -> None:
    actor = call.actor
    role = call.repository.role_of(actor.account)
    is_writer = actor.app is None and ROLES.index(role) >= ROLES.index("write")
    if comment.author is not actor.account and not is_writer and not actor.may("issues"):
        raise refused("role.admin")


async def patch_comment(call: Call) -> Answer:
    """Change a comment; one's own, or as somebody who writes."""
    place = _comment(call)
    _own_or_writer(call, place[1])
    body = call.text("body")
    conversation.edit_comment(call.repository, call.actor, place, body)
    return Reply(pulls.comment(call.repository, *place))


def _reactions(call: Call) -> list[Reaction]:
    return issue_of(call).reactions if "number" in call.params else _comment(call)[1].reactions


async def create_reaction(call: Call) -> Answer:
    """React: 201, or 200 with the reaction that is there already."""
    content = call.text("content")
    made, is_new = conversation.react(call.world, call.actor, _reactions(call), content)
    return Reply(pulls.reaction(call.world, made), 201 if is_new else 200)


async def add_labels(call: Call) -> Answer:
    """Add labels, made when missing; the body is a list or `{"labels": […]}`."""
    names = call.body.get("labels") or call.body.get("") or []
    issue = issue_of(call)
    plain = [one["name"] if isinstance(one, dict) else str(one) for one in names]
    await conversation.label(call.repository, call.actor, issue, plain)
    return Reply(pulls.labels(call.repository, issue))


async def remove_label(call: Call) -> Answer:
    """Take a label away; 404 when it is not there."""
    issue = issue_of(call)
    name = call.params["name"]
    await conversation.unlabel(call.repository, call.actor, issue, name)
    return Reply(pulls.labels(call.repository, issue))


REPO = "/repos/{owner}/{repo}"
ISSUE = rf"{REPO}/issues/{{number:\d+}}"
COMMENT = rf"{REPO}/issues/comments/{{id:\d+}}"
READ = ("issues:read", "pull_requests:read")
WRITE = ("issues:write", "pull_requests:write")

ROUTES = (
    Route("GET", f"{REPO}/issues", list_issues, READ),
    Route("POST", f"{REPO}/issues", create_issue, ("issues:write",)),
    Route("GET", ISSUE, get_issue, READ),
    Route("PATCH", ISSUE, patch_issue, ("issues:write",), role="triage"),
    Route("GET", f"{ISSUE}/comments", list_comments, READ),
    Route("POST", f"{ISSUE}/comments", create_comment, WRITE, role="read"),
    Route("GET", f"{REPO}/issues/comments", list_repository_comments, READ),
    Route("PATCH", COMMENT, patch_comment, WRITE, role="read"),
    Route("POST", f"{COMMENT}/reactions", create_reaction, WRITE, role="read"),
    Route("POST", f"{ISSUE}/reactions", create_reaction, WRITE, role="read"),
    Route("POST", f"{ISSUE}/labels", add_labels, WRITE, role="triage"),
    Route("DELETE", f"{ISSUE}/labels/{{name:.+}}", remove_label, WRITE, role="triage"),
)
