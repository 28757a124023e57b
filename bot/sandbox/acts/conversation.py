"""Issues, comments, reactions, labels, and buttons of check runs.

The caller holds the repository's lock. Refusals: the provider's pages on issues, issue comments,
reactions and labels.
"""

import re

from bot.sandbox import deliver
from bot.sandbox.acts import pull_states
from bot.sandbox.acts.pull_requests import check_text
from bot.sandbox.records import Account, Actor, CheckRun, Json, Label, LabelChange, Reaction
from bot.sandbox.refusal import Refusal, invalid, not_found, refused, say
from bot.sandbox.shapes import checks, pulls
from bot.sandbox.world import Comment, Issue, Repository

LABEL_MAX = 50
COMMENT_BYTES_MAX = 262_144  # the sentence of the refusal names another number
BOX = re.compile(r"^(\s*[-*] \[)([ xX])(\] .*)$", re.MULTILINE)


def comment(issue: Issue, actor: Actor, body: str) -> Comment:
    """Write a comment; raises `issue_comment.created`. Raises Refusal(403) when locked."""
    world = issue.repository.world
    is_writer = issue.repository.role_of(actor.account) in ("write", "maintain", "admin")
    if issue.locked and not is_writer:
        raise refused("comment.locked")
    _check_body(body)
    now = world.now()
    made = Comment(issue, world.new_id("comment"), actor.account, body, now, now, actor.app)
    issue.comments.append(made)
    issue.touch()
    _announce(made, "created", actor.account)
    return made


def edit_comment(edited: Comment, actor: Actor, body: str) -> None:
    """Change a comment; raises `edited` with the old text, also for an equal text."""
    _check_body(body)
    changes = {"body": {"from": edited.body}}
    edited.body, edited.updated_at = body, edited.issue.repository.world.now()
    _announce(edited, "edited", actor.account, changes=changes)


def _check_body(body: str) -> None:
    if not body.strip():
        raise invalid("Body can't be blank", field="body", resource="IssueComment")
    if len(body.encode()) > COMMENT_BYTES_MAX:
        message, code = say("comment.long"), "unprocessable"
        raise invalid(message, field="data", resource="IssueComment", code=code)


def _announce(announced: Comment, action: str, sender: Account, **fields: Json) -> None:
    shape = {"issue": pulls.issue(announced.issue), "comment": pulls.comment(announced)}
    repository = announced.issue.repository
    deliver.emit(repository, "issue_comment", action, {**shape, **fields}, sender)


def find_comment(repository: Repository, number: int) -> Comment:
    """Return the comment of an id. Raises Refusal(404)."""
    for issue in repository.issues.values():
        for one in issue.comments:
            if one.id == number:
                return one
    raise not_found()


def tick(ticked: Comment, actor: Actor, box: str) -> None:
    """Tick, or clear, the first checkbox of a comment whose line contains `box`."""
    for line in BOX.finditer(ticked.body):
        if box in line[0]:
            start, end = line.span(2)
            mark = "x" if line[2] == " " else " "
            edit_comment(ticked, actor, f"{ticked.body[:start]}{mark}{ticked.body[end:]}")
            return
    raise Refusal(400, f"the comment has no checkbox with {box!r}")


def react(on: Comment, actor: Actor, content: str) -> tuple[Reaction, bool]:
    """Add a reaction; a second time return the first one, and False."""
    if content not in pulls.REACTIONS:
        raise invalid(f"content {content} is unknown", field="content", resource="Reaction")
    for reaction in on.reactions:
        if reaction.account is actor.account and reaction.content == content:
            return reaction, False
    world = on.issue.repository.world
    made = Reaction(world.new_id(), actor.account, content, world.now())
    on.reactions.append(made)
    return made, True


async def label(issue: Issue, actor: Actor, name: str) -> None:
    """Add a label, made when it is missing; raises `labeled` when it is new."""
    labels = issue.repository.labels
    added = labels.get(name.lower()) or _make_label(issue.repository, name)
    if added.name not in issue.labels:
        issue.labels.append(added.name)
        await _announce_label(issue, actor, "labeled", added)


async def unlabel(issue: Issue, actor: Actor, name: str) -> None:
    """Remove a label; raises `unlabeled`. Raises Refusal(404) when it is not there."""
    removed = issue.repository.labels.get(name.lower())
    if removed is None or removed.name not in issue.labels:
        raise refused("label.absent")
    issue.labels.remove(removed.name)
    await _announce_label(issue, actor, "unlabeled", removed)


async def _announce_label(issue: Issue, actor: Actor, action: str, changed: Label) -> None:
    issue.touch()
    world, is_added = issue.repository.world, action == "labeled"
    change = LabelChange(world.new_id(), changed, is_added, actor.account, issue.updated_at)
    issue.label_changes.append(change)
    if issue.pull is not None:
        shape = pulls.label(issue.repository, changed)
        await pull_states.announce(issue.pull, action, actor.account, label=shape)


def _make_label(repository: Repository, name: str) -> Label:
    if not 0 < len(name) <= LABEL_MAX:
        message = f"name is too long (maximum is {LABEL_MAX} characters)"
        raise invalid(message, field="name", resource="Label")
    made = Label(repository.world.new_id(), name)
    repository.labels[name.lower()] = made
    return made


def open_issue(repository: Repository, actor: Actor, title: str, body: str | None) -> Issue:
    """Open an issue; raises `issues.opened` where the App listens.

    Raises Refusal: 410 where the repository has no issues, 422 for a wrong title or body.
    """
    _check_issue(repository, title, body)
    world, now = repository.world, repository.world.now()
    number, author = repository.next_number(), actor.account
    made = Issue(repository, world.new_id(), number, title, body, author, now, now, actor.app)
    repository.issues[made.number] = made
    _announce_issue(made, actor, "opened")
    return made


def edit_issue(issue: Issue, actor: Actor, fields: Json) -> None:
    """Change title, body or state of an issue; raises an event for each that is different.

    Raises Refusal as `open_issue`, and 422 for an unknown state.
    """
    title, body = fields.get("title", issue.title), fields.get("body", issue.body)
    state = fields.get("state", "open" if issue.open else "closed")
    _check_issue(issue.repository, title, body)
    if state not in ("open", "closed"):
        raise invalid(f"state {state} is unknown", field="state", resource="Issue")
    if (title, body) != (issue.title, issue.body):
        issue.title, issue.body = title, body
        issue.touch()
        _announce_issue(issue, actor, "edited")
    if (state == "open") != issue.open:
        issue.open = state == "open"
        issue.touch()
        issue.closed_at = None if issue.open else issue.updated_at
        issue.closed_by = None if issue.open else actor.account
        _announce_issue(issue, actor, "reopened" if issue.open else "closed")


def _check_issue(repository: Repository, title: str, body: str | None) -> None:
    if not repository.settings.issues:
        raise refused("issues.off")
    check_text("Issue", title, body)


def _announce_issue(issue: Issue, actor: Actor, action: str) -> None:
    deliver.emit(issue.repository, "issues", action, {"issue": pulls.issue(issue)}, actor.account)


def press(repository: Repository, actor: Actor, run: CheckRun, identifier: str) -> None:
    """Press a button of a check run; raises `requested_action`.

    Raises Refusal(400) for a button that is not shown: only completed runs show theirs.
    """
    if run.status != "completed" or identifier not in {one["identifier"] for one in run.actions}:
        raise Refusal(400, f"check run {run.name} shows no button {identifier!r}")
    shape = checks.check_run_event(repository, run)
    fields = {"check_run": shape, "requested_action": {"identifier": identifier}}
    deliver.emit(repository, "check_run", "requested_action", fields, actor.account)


def rerun(repository: Repository, actor: Actor, run: CheckRun) -> None:
    """Ask for a check run once more; raises `rerequested`, which its App alone receives."""
    fields = {"check_run": checks.check_run_event(repository, run)}
    deliver.emit(repository, "check_run", "rerequested", fields, actor.account)
