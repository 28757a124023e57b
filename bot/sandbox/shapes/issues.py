"""Issues, comments, reactions and labels as JSON."""

from collections import Counter
from urllib.parse import quote

from bot.sandbox.records import Account, Json, Label, Reaction
from bot.sandbox.shapes import people
from bot.sandbox.timeline import stamp
from bot.sandbox.world import Comment, Issue, Repository, World

REACTIONS = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")


def association(one: Repository, author: Account) -> str:
    """Return the association of an author with the repository."""
    if author is one.owner:
        return "OWNER"
    return "COLLABORATOR" if one.role_of(author) not in ("none", "read") else "NONE"


def label(one: Repository, value: Label) -> Json:
    """A label."""
    return {
        **people.identity("Label", value.id),
        "url": f"{one.url}/labels/{quote(value.name)}",
        "name": value.name,
        "color": "ededed",
        "default": False,
        **dict.fromkeys(("description", "archived_at", "archived_by")),
    }


def reaction_rollup(url: str, reactions: list[Reaction]) -> Json:
    """Return the number of reactions of each kind."""
    counts = Counter(reaction.content for reaction in reactions)
    return {
        "url": f"{url}/reactions",
        "total_count": len(reactions),
        **{word: counts[word] for word in REACTIONS},
    }


def reaction(world: World, value: Reaction) -> Json:
    """One reaction."""
    return {
        **people.identity("Reaction", value.id),
        "user": people.account(world, value.account),
        "content": value.content,
        "created_at": stamp(value.created_at),
    }


def comment(value: Comment) -> Json:
    """One comment."""
    issue, repository = value.issue, value.issue.repository
    url = f"{repository.url}/issues/comments/{value.id}"
    return {
        **people.identity("IssueComment", value.id),
        "url": url,
        "html_url": f"{issue.page}#issuecomment-{value.id}",
        "issue_url": f"{repository.url}/issues/{issue.number}",
        "user": people.account(repository.world, value.author),
        **people.lifetime(value.created_at, value.updated_at),
        "author_association": association(repository, value.author),
        "body": value.body,
        "performed_via_github_app": people.app_or_none(repository.world, value.via),
        "reactions": reaction_rollup(url, value.reactions),
    }


def discussion(value: Issue) -> Json:
    """The fields that an issue and a pull request share."""
    repository, world = value.repository, value.repository.world
    return {
        "id": value.id,
        "html_url": value.page,
        "number": value.number,
        "state": "open" if value.open else "closed",
        "locked": value.locked,
        "active_lock_reason": None,
        "title": value.title,
        "body": value.body,
        "user": people.account(world, value.author),
        "labels": [label(repository, repository.labels[name.lower()]) for name in value.labels],
        "assignee": None,
        "assignees": [],
        "milestone": None,
        **people.lifetime(value.created_at, value.updated_at),
        "closed_at": people.when(value.closed_at),
        "author_association": association(repository, value.author),
    }


def issue(value: Issue) -> Json:
    """An issue; for a pull request, with the field `pull_request`."""
    repository, pull = value.repository, value.pull
    url = f"{repository.url}/issues/{value.number}"
    shape = {
        **discussion(value),
        "node_id": people.node_id("Issue", value.id),
        "url": url,
        "repository_url": repository.url,
        **people.links(url, "labels comments events timeline"),
        "state_reason": None if value.open or pull else "completed",
        "comments": len(value.comments),
        "closed_by": people.account_or_none(repository.world, value.closed_by),
        "performed_via_github_app": people.app_or_none(repository.world, value.via),
        "reactions": reaction_rollup(url, value.reactions),
    }
    if pull is not None:
        shape["draft"] = pull.draft
        shape["pull_request"] = {
            "url": f"{repository.url}/pulls/{pull.number}",
            "html_url": pull.page,
            "diff_url": f"{pull.page}.diff",
            "patch_url": f"{pull.page}.patch",
            "merged_at": people.when(pull.merged_at),
        }
    return shape
