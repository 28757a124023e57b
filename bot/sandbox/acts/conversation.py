"""Comments, reactions, labels, locks and buttons.

The caller holds the repository's lock. Refusals: the provider's pages on issue comments,
reactions and labels.
"""

import re

from bot.sandbox import deliver, reports
from bot.sandbox.acts import pull_states
from bot.sandbox.acts.pull_requests import BODY_MAX, next_number
from bot.sandbox.records import Account, Actor, CheckRun, Comment, Issue, Json, Label, Reaction
from bot.sandbox.refusal import Refusal, invalid, not_found, refused, say
from bot.sandbox.shapes import checks, pulls, repositories
from bot.sandbox.world import Repository, World

LABEL_MAX = 50
COMMENT_BYTES_MAX = 262_144  # the sentence of the refusal names another number
TITLE_MAX = 256
OF_TITLE = {"field": "title", "resource": "Issue"}
DEFAULT_COLOR = "ededed"
BOX = re.compile(r"^(\s*[-*] \[)([ xX])(\] .*)$", re.MULTILINE)


def comment(repository: Repository, actor: Actor, issue: Issue, body: str) -> Comment:
    """Write a comment; raises `issue_comment.created`. Raises Refusal(403) when locked."""
    can_pass = repository.role_of(actor.account) in ("write", "maintain", "admin")
    if issue.locked and not can_pass:
        raise refused("comment.locked")
    _check_body(body)
    now = repository.world.now()
    made = Comment(repository.world.new_id("comment"), actor.account, body, now, now, actor.app)
    issue.comments.append(made)
    issue.updated_at = now
    _announce(repository, (issue, made), "created", actor.account)
    return made


def edit_comment(
    repository: Repository, actor: Actor, place: tuple[Issue, Comment], body: str
) -> None:
    """Change a comment; raises `edited` with the old text, though it may be the same."""
    changed = place[1]
    _check_body(body)
    changes = {"body": {"from": changed.body}}
    changed.body, changed.updated_at = body, repository.world.now()
    _announce(repository, place, "edited", actor.account, changes=changes)


def _check_body(body: str) -> None:
    if not body.strip():
        raise invalid("Body can't be blank", field="body", resource="IssueComment")
    if len(body.encode()) > COMMENT_BYTES_MAX:
        error = {"resource": "IssueComment", "code": "unprocessable", "field": "data"}
        raise Refusal(422, "Validation Failed", [{**error, "message": say("comment.long")}])


def _announce(
    repository: Repository,
    place: tuple[Issue, Comment],
    action: str,
    sender: Account,
    **fields: Json,
) -> None:
    shown = {
        "issue": pulls.issue(repository, place[0]),
        "comment": pulls.comment(repository, *place),
    }
    deliver.emit(repository, "issue_comment", action, {**shown, **fields}, sender)


def find_comment(repository: Repository, number: int) -> tuple[Issue, Comment]:
    """The comment of an id with its issue. Raises Refusal(404)."""
    for issue in repository.issues.values():
        for one in issue.comments:
            if one.id == number:
                return issue, one
    raise not_found()


def tick(repository: Repository, actor: Actor, place: tuple[Issue, Comment], box: str) -> None:
    """Tick, or clear, the first checkbox of a comment whose line contains `box`."""
    found = False

    def turn(line: re.Match[str]) -> str:
        nonlocal found
        if found or box not in line[0]:
            return line[0]
        found = True
        return f"{line[1]}{'x' if line[2] == ' ' else ' '}{line[3]}"

    body = BOX.sub(turn, place[1].body)
    if not found:
        raise Refusal(400, f"the comment has no checkbox with {box!r}")
    edit_comment(repository, actor, place, body)


def react(
    world: World, actor: Actor, reactions: list[Reaction], content: str
) -> tuple[Reaction, bool]:
    """Add a reaction; the one that is there already, and False, the second time."""
    if content not in pulls.REACTIONS:
        raise invalid(f"content {content} is unknown", field="content", resource="Reaction")
    for known in reactions:
        if known.account is actor.account and known.content == content:
            return known, False
    made = Reaction(world.new_id(), actor.account, content, world.now())
    reactions.append(made)
    return made, True


async def label(repository: Repository, actor: Actor, issue: Issue, names: list[str]) -> None:
    """Add labels, made when they are missing; raises `labeled` for each new one."""
    for name in names:
        known = repository.labels.get(name.lower()) or make_label(repository, name)
        if known.name not in issue.labels:
            issue.labels.append(known.name)
            await _tell_label(repository, actor, issue, ("labeled", known))


async def unlabel(repository: Repository, actor: Actor, issue: Issue, name: str) -> None:
    """Take a label away; raises `unlabeled`. Raises Refusal(404) when it is not there."""
    known = repository.labels.get(name.lower())
    if known is None or known.name not in issue.labels:
        raise refused("label.absent")
    issue.labels.remove(known.name)
    await _tell_label(repository, actor, issue, ("unlabeled", known))


async def _tell_label(
    repository: Repository,
    actor: Actor,
    issue: Issue,
    what: tuple[str, Label],
) -> None:
    action, shown = what
    issue.updated_at = repository.world.now()
    fields = {"label": repositories.label(repository, shown)}
    if issue.pull is not None:
        await pull_states.announce(repository, issue, action, actor.account, **fields)


def make_label(
    repository: Repository, name: str, color: str = "", text: str | None = None
) -> Label:
    """A new label. Raises Refusal(422) when there is one, or the name is too long."""
    if name.lower() in repository.labels:
        error = {"resource": "Label", "code": "already_exists", "field": "name"}
        raise Refusal(422, "Validation Failed", [error])
    if not 0 < len(name) <= LABEL_MAX:
        said = f"name is too long (maximum is {LABEL_MAX} characters)"
        raise invalid(said, field="name", resource="Label")
    made = Label(repository.world.new_id(), name, color or DEFAULT_COLOR, text)
    repository.labels[name.lower()] = made
    return made


def open_issue(repository: Repository, actor: Actor, title: str, body: str | None) -> Issue:
    """A new issue; raises `issues.opened` where the App listens.

    Raises Refusal: 410 where the repository has none, 422 for a title or body that is none.
    """
    _check_text(repository, title, body)
    now = repository.world.now()
    made = Issue(
        repository.world.new_id(),
        next_number(repository),
        title,
        body,
        actor.account,
        now,
        now,
        actor.app,
    )
    repository.issues[made.number] = made
    _tell_issue(repository, actor, made, "opened")
    return made


def edit_issue(repository: Repository, actor: Actor, issue: Issue, fields: Json) -> None:
    """Change title, body or state of an issue; raises an event for each that is different.

    Raises Refusal as `open_issue`, and 422 for a state that is none.
    """
    title, body = fields.get("title", issue.title), fields.get("body", issue.body)
    state = fields.get("state", "open" if issue.open else "closed")
    _check_text(repository, title, body)
    if state not in ("open", "closed"):
        raise invalid(f"state {state} is unknown", field="state", resource="Issue")
    now = repository.world.now()
    if (title, body) != (issue.title, issue.body):
        issue.title, issue.body, issue.updated_at = title, body, now
        _tell_issue(repository, actor, issue, "edited")
    if (state == "open") != issue.open:
        issue.open, issue.updated_at = state == "open", now
        issue.closed_at = None if issue.open else now
        issue.closed_by = None if issue.open else actor.account
        _tell_issue(repository, actor, issue, "reopened" if issue.open else "closed")


def _check_text(repository: Repository, title: str, body: str | None) -> None:
    if not repository.settings.issues:
        raise refused("issues.off")
    if not 0 < len(title.strip()) <= TITLE_MAX:
        said = f"title is too long (maximum is {TITLE_MAX} characters)"
        raise invalid(said if title.strip() else "title can't be blank", **OF_TITLE)
    if body is not None and len(body) > BODY_MAX:
        raise invalid(say("pull.body_long"), field="body", resource="Issue")


def _tell_issue(repository: Repository, actor: Actor, issue: Issue, action: str) -> None:
    fields = {"issue": pulls.issue(repository, issue)}
    deliver.emit(repository, "issues", action, fields, actor.account)


def press(repository: Repository, actor: Actor, run: CheckRun, identifier: str) -> None:
    """Press a button of a check run; raises `requested_action`.

    Raises Refusal(400) for a button that is not shown: only completed runs show theirs.
    """
    known = {one["identifier"] for one in run.actions}
    if run.status != "completed" or identifier not in known:
        raise Refusal(400, f"check run {run.name} shows no button {identifier!r}")
    shown = checks.check_run_event(repository, run)
    fields = {"check_run": shown, "requested_action": {"identifier": identifier}}
    deliver.emit(repository, "check_run", "requested_action", fields, actor.account)


def rerequest(repository: Repository, actor: Actor, run: CheckRun) -> None:
    """Ask for a check run again; only the App that owns it is told."""
    if run.suite.app.slug == deliver.APP_SLUG:
        reports.tell_run(repository, run, "rerequested", actor.account)
