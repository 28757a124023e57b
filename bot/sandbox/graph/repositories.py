"""Repositories, branches, commits and pull requests, shaped for GraphQL."""

from typing import Any

from graphql import GraphQLResolveInfo

from bot.sandbox import merge_rules
from bot.sandbox.acts import pull_states
from bot.sandbox.graph import accounts, connections, rollups
from bot.sandbox.merges import FileChange
from bot.sandbox.records import Issue, Json, Label, Pull, Thread
from bot.sandbox.shapes import pulls
from bot.sandbox.shapes.people import node_id
from bot.sandbox.world import Repository


def repository(one: Repository) -> Json:
    """A repository, with its pull requests."""
    return {
        "__typename": "Repository",
        "id": node_id("Repository", one.id),
        "databaseId": one.id,
        "name": one.name,
        "nameWithOwner": one.full_name,
        "owner": accounts.account(one.world, one.owner),
        "url": f"{one.world.web}/{one.full_name}",
        "defaultBranchRef": lambda _: ref(one, f"refs/heads/{one.default_branch}"),
        "mergeQueue": lambda _, **asked: merge_queue(one, asked.get("branch")),
        "pullRequest": lambda _, number: _pull_request(one, number),
    }


def merge_queue(one: Repository, branch: str | None) -> Json | None:
    """The provider's own merge queue of a branch, by a rule or by classic protection."""
    named = branch or one.default_branch
    if not merge_rules.has_queue(one, named):
        return None
    return {
        "id": node_id("MergeQueue", f"{one.id}:{named}"),
        "url": f"{one.world.web}/{one.full_name}/queue/{named}",
    }


def ref(one: Repository, name: str) -> Json | None:
    """A ref by its whole name; None when there is none."""
    sha = one.git.refs.get(name)
    if sha is None:
        return None
    prefix, _, short = name.partition("/heads/")
    return {
        "__typename": "Ref",
        "id": node_id("Ref", f"{one.id}:{name}"),
        "name": short or name,
        "prefix": f"{prefix}/heads/" if short else "",
        "target": lambda _: commit(one, sha),
    }


def _named(one: Repository, sha: str, kind: str) -> Json:
    return {"__typename": kind, "id": node_id(kind, f"{one.id}:{sha}"), "oid": sha}


def commit(one: Repository, sha: str) -> Json:
    """A commit with its tree and its parents."""
    shown = one.git.objects.a_commit(sha)
    return {
        **_named(one, sha, "Commit"),
        "message": shown.message,
        "tree": _named(one, shown.tree, "Tree"),
        "parents": connections.connect(shown.parents, lambda parent: commit(one, parent)),
    }


def _pull_request(one: Repository, number: int) -> Json:
    issue = one.issues.get(number)
    if issue is None or issue.pull is None:
        raise accounts.not_found(f"Could not resolve to a PullRequest with the number of {number}.")
    return pull_request(one, issue, issue.pull)


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
        "number": issue.number,
        "url": pulls.page(one, issue),
        "title": issue.title,
        "body": issue.body or "",
        "author": accounts.account(one.world, issue.author),
        "state": state(issue),
        "isDraft": pull.draft,
        "merged": issue.merged,
        "mergeable": mergeable[pull.mergeable],
        "mergeStateStatus": lambda _: merge_rules.merge_state(one, issue, pull),
        "reviewDecision": lambda _: merge_rules.review_decision(one, pull),
        "isInMergeQueue": pull.queued,
        "isMergeQueueEnabled": merge_rules.has_queue(one, pull.base_ref),
        "mergeQueue": lambda _: merge_queue(one, pull.base_ref),
        **_ends(one, pull),
        **_lists(one, issue, pull),
    }


def _ends(one: Repository, pull: Pull) -> Json:
    head = one.world.repositories.get(pull.head_repo) if pull.head_repo is not None else None

    def at(sha: str | None) -> Json | None:
        return commit(one, sha) if sha is not None else None

    return {
        "headRefName": pull.head_ref,
        "headRefOid": pull.head_sha,
        "headRepository": lambda _: repository(head) if head else None,
        "isCrossRepository": pull.head_repo != one.id,
        "baseRefName": pull.base_ref,
        "baseRefOid": pull.base_sha,
        "baseRef": lambda _: ref(one, f"refs/heads/{pull.base_ref}"),
        "mergeCommit": lambda _: at(pull.merge_commit),
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

    async def files(info: GraphQLResolveInfo[Any], **asked: Any) -> Json:
        changed = await pull_states.changed_files(one, issue, pull)
        return connections.connect(changed, _changed_file)(info, **asked)

    return {
        "files": files,
        "labels": connections.connect([one.labels[name.lower()] for name in issue.labels], label),
        "reviewThreads": connections.connect(pull.threads, thread),
    }


def _changed_file(change: FileChange) -> Json:
    return {
        "path": change.path,
        "changeType": CHANGE_TYPES[change.status],
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
