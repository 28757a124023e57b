"""Pull requests shaped for GraphQL, and the repository that leads to them."""

from typing import Any

from graphql import GraphQLResolveInfo

from bot.sandbox import merge_rules
from bot.sandbox.acts import differences
from bot.sandbox.git import Commit
from bot.sandbox.graph import accounts, connections, objects, rollups
from bot.sandbox.merges import FileChange
from bot.sandbox.records import Issue, Json, Label, Pull, Review, Thread
from bot.sandbox.shapes import pulls
from bot.sandbox.shapes.people import node_id
from bot.sandbox.timeline import stamp
from bot.sandbox.world import Repository


def repository(one: Repository) -> Json:
    """A repository, with its pull requests."""
    return {
        **objects.repository(one),
        "pullRequest": lambda _, number: _pull_request(one, number),
        "pullRequests": lambda info, **asked: _pull_requests(one, info, asked),
    }


def _pull_request(one: Repository, number: int) -> Json:
    issue = one.issues.get(number)
    if issue is None or issue.pull is None:
        raise accounts.not_found(f"Could not resolve to a PullRequest with the number of {number}.")
    return pull_request(one, issue, issue.pull)


def _pull_requests(one: Repository, info: GraphQLResolveInfo[Any], asked: dict[str, Any]) -> Json:
    states = asked.get("states")
    found = [
        (issue, pull)
        for issue, pull in one.pulls()
        if (states is None or state(issue) in states)
        and asked.get("baseRefName") in (None, pull.base_ref)
        and asked.get("headRefName") in (None, pull.head_ref)
    ]
    page = connections.connect(found, lambda pair: pull_request(one, pair[0], pair[1]))
    return page(info, **asked)


def pull_id(one: Repository, issue: Issue) -> str:
    """The opaque id of a pull request."""
    return node_id("PullRequest", f"{one.id}:{issue.number}")


def state(issue: Issue) -> str:
    """OPEN, CLOSED or MERGED."""
    if issue.open:
        return "OPEN"
    return "MERGED" if issue.merged else "CLOSED"


def pull_request(one: Repository, issue: Issue, pull: Pull) -> Json:
    """A pull request. `mergeable` is UNKNOWN until the provider has looked."""
    mergeable = {None: "UNKNOWN", True: "MERGEABLE", False: "CONFLICTING"}
    return {
        "__typename": "PullRequest",
        "id": pull_id(one, issue),
        "databaseId": issue.id,
        "fullDatabaseId": str(issue.id),
        "number": issue.number,
        "url": pulls.page(one, issue),
        "title": issue.title,
        "body": issue.body or "",
        "author": accounts.account(one.world, issue.author),
        "authorAssociation": pulls.association(one, issue.author),
        "state": state(issue),
        "isDraft": pull.draft,
        "locked": issue.locked,
        "closed": not issue.open,
        "closedAt": stamp(issue.closed_at) if issue.closed_at else None,
        "createdAt": stamp(issue.created_at),
        "updatedAt": stamp(issue.updated_at),
        "merged": issue.merged,
        "mergedAt": stamp(pull.merged_at) if pull.merged_at else None,
        "mergedBy": accounts.account(one.world, pull.merged_by) if pull.merged_by else None,
        "mergeable": mergeable[pull.mergeable],
        "mergeStateStatus": lambda _: merge_rules.merge_state(one, issue, pull),
        "reviewDecision": lambda _: merge_rules.review_decision(one, pull),
        "maintainerCanModify": False,
        "isInMergeQueue": pull.queued,
        "isMergeQueueEnabled": merge_rules.has_queue(one, pull.base_ref),
        "mergeQueue": lambda _: objects.merge_queue(one, pull.base_ref),
        "repository": lambda _: repository(one),
        **_ends(one, pull),
        **_lists(one, issue, pull),
        **_counts(one, issue, pull),
    }


def _ends(one: Repository, pull: Pull) -> Json:
    head = one.world.repositories.get(pull.head_repo) if pull.head_repo is not None else None

    def at(sha: str | None) -> Json | None:
        return objects.git_object(one, sha) if sha is not None else None

    def head_ref(_: Any) -> Json | None:
        return objects.ref(head, f"refs/heads/{pull.head_ref}") if head else None

    return {
        "headRefName": pull.head_ref,
        "headRefOid": pull.head_sha,
        "headRef": head_ref,
        "headRepository": lambda _: repository(head) if head else None,
        "headRepositoryOwner": accounts.account(one.world, pull.head_owner),
        "isCrossRepository": pull.head_repo != one.id,
        "baseRefName": pull.base_ref,
        "baseRefOid": pull.base_sha,
        "baseRef": lambda _: objects.ref(one, f"refs/heads/{pull.base_ref}"),
        "baseRepository": lambda _: repository(one),
        "mergeCommit": lambda _: at(pull.merge_commit),
        "potentialMergeCommit": lambda _: at(pull.test_merge if pull.mergeable else None),
        "statusCheckRollup": lambda _: rollups.rollup(one, pull.head_sha),
    }


def _lists(one: Repository, issue: Issue, pull: Pull) -> Json:
    def label(shown: Label) -> Json:
        return {
            "id": node_id("Label", shown.id),
            "name": shown.name,
            "color": shown.color,
            "description": shown.description,
        }

    def thread(shown: Thread) -> Json:
        return {
            "id": node_id("PullRequestReviewThread", shown.id),
            "isResolved": shown.is_resolved,
            "isOutdated": False,
            "path": shown.path,
        }

    def commit(shown: Commit) -> Json:
        number = node_id("PullRequestCommit", f"{one.id}:{issue.number}:{shown.sha}")
        return {"id": number, "commit": objects.commit(one, shown)}

    def commits(info: GraphQLResolveInfo[Any], **asked: Any) -> Json:
        return connections.connect(differences.commits(one, issue, pull), commit)(info, **asked)

    def reviews(info: GraphQLResolveInfo[Any], **asked: Any) -> Json:
        states = asked.get("states")
        found = [each for each in pull.reviews if states is None or each.state in states]
        return connections.connect(found, lambda each: _review(one, each))(info, **asked)

    return {
        "labels": connections.connect([one.labels[name.lower()] for name in issue.labels], label),
        "reviewThreads": connections.connect(pull.threads, thread),
        "commits": commits,
        "reviews": reviews,
    }


def _review(one: Repository, shown: Review) -> Json:
    return {
        "id": node_id("PullRequestReview", shown.id),
        "databaseId": shown.id,
        "author": accounts.account(one.world, shown.author),
        "body": shown.body,
        "state": shown.state,
        "submittedAt": stamp(shown.submitted_at),
        "commit": lambda _: objects.git_object(one, shown.commit),
    }


def _counts(one: Repository, issue: Issue, pull: Pull) -> Json:
    async def files() -> tuple[FileChange, ...]:
        return await differences.files(one, issue, pull)

    async def changed(_: Any) -> int:
        return len(await files())

    async def additions(_: Any) -> int:
        return sum(change.additions for change in await files())

    async def deletions(_: Any) -> int:
        return sum(change.deletions for change in await files())

    async def listed(info: GraphQLResolveInfo[Any], **asked: Any) -> Json:
        return connections.connect(await files(), _changed_file)(info, **asked)

    return {
        "changedFiles": changed,
        "additions": additions,
        "deletions": deletions,
        "files": listed,
    }


def _changed_file(change: FileChange) -> Json:
    return {
        "path": change.path,
        "changeType": CHANGE_TYPES[change.status],
        "additions": change.additions,
        "deletions": change.deletions,
    }


CHANGE_TYPES = {
    "added": "ADDED",
    "removed": "DELETED",
    "modified": "MODIFIED",
    "renamed": "RENAMED",
    "changed": "CHANGED",
    "copied": "COPIED",
}
"""The words of REST for what happened to a file, as GraphQL has them."""
