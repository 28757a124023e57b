"""Repositories, refs and git objects, shaped for GraphQL."""

from bot.sandbox import merge_rules
from bot.sandbox.graph import accounts, connections
from bot.sandbox.records import Json
from bot.sandbox.shapes.people import node_id
from bot.sandbox.world import Repository


def repository(one: Repository) -> Json:
    """A repository."""
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
