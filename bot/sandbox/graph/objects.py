"""Repositories, refs and git objects, shaped for GraphQL."""

from typing import Any

from bot.sandbox import merge_rules
from bot.sandbox.git import Commit, Signature, TreeItem
from bot.sandbox.graph import accounts, connections, rollups
from bot.sandbox.records import Json
from bot.sandbox.shapes.people import node_id
from bot.sandbox.timeline import stamp
from bot.sandbox.world import Repository


def repository(one: Repository) -> Json:
    """A repository."""
    chosen = one.settings
    return {
        "__typename": "Repository",
        "id": node_id("Repository", one.id),
        "databaseId": one.id,
        "name": one.name,
        "nameWithOwner": one.full_name,
        "owner": accounts.account(one.world, one.owner),
        "url": f"{one.world.web}/{one.full_name}",
        "isFork": one.parent is not None,
        "isPrivate": one.private,
        "isArchived": one.archived,
        "mergeCommitAllowed": chosen.merge_commit,
        "squashMergeAllowed": chosen.squash,
        "rebaseMergeAllowed": chosen.rebase,
        "deleteBranchOnMerge": chosen.delete_head,
        "defaultBranchRef": lambda _: ref(one, f"refs/heads/{one.default_branch}"),
        "object": lambda _, **asked: _object(one, asked),
        "mergeQueue": lambda _, **asked: merge_queue(one, asked.get("branch")),
        "ref": lambda _, **asked: _named_ref(one, asked["qualifiedName"]),
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


def _named_ref(one: Repository, name: str) -> Json | None:
    for full in (name, f"refs/heads/{name}", f"refs/{name}"):
        if full in one.git.refs:
            return ref(one, full)
    return None


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
        "target": lambda _: git_object(one, sha),
    }


def _object(one: Repository, asked: dict[str, Any]) -> Json | None:
    if asked.get("oid") is not None:
        return git_object(one, asked["oid"])
    start, colon, path = (asked.get("expression") or "HEAD").partition(":")
    start = one.default_branch if start == "HEAD" else start
    sha = one.git.branch(start) or one.git.refs.get(start) or start
    if not colon:
        return git_object(one, sha)
    item = one.git.objects.item_at(sha, path)
    return git_object(one, item.sha) if item is not None else None


def git_object(one: Repository, sha: str) -> Json | None:
    """A commit, tree or blob; None when there is none of that name."""
    found = one.git.objects.read(sha)
    if found is None:
        return None
    kind, body = found
    if kind == "commit":
        return commit(one, one.git.objects.a_commit(sha))
    shown: Json = _named(one, sha, kind.capitalize())
    if kind == "tree":
        shown["entries"] = lambda _: [_entry(one, item) for item in one.git.objects.tree(sha) or ()]
    else:
        is_binary = b"\0" in body
        shown["byteSize"] = len(body)
        shown["isBinary"] = is_binary
        shown["isTruncated"] = False
        shown["text"] = None if is_binary else body.decode(errors="replace")
    return shown


def _named(one: Repository, sha: str, kind: str) -> Json:
    return {
        "__typename": kind,
        "id": node_id(kind, f"{one.id}:{sha}"),
        "oid": sha,
        "abbreviatedOid": sha[:7],
    }


def _entry(one: Repository, item: TreeItem) -> Json:
    return {
        "mode": int(item.mode, 8),
        "name": item.name,
        "oid": item.sha,
        "path": item.name,
        "type": item.kind,
        "object": lambda _: git_object(one, item.sha),
    }


def commit(one: Repository, shown: Commit) -> Json:
    """A commit with its tree, its parents and the checks on it."""
    parents = [one.git.objects.a_commit(sha) for sha in shown.parents]
    return {
        **_named(one, shown.sha, "Commit"),
        "message": shown.message,
        "messageHeadline": shown.message.partition("\n")[0],
        "author": _signature(shown.author),
        "committer": _signature(shown.committer),
        "authoredDate": stamp(shown.author.at),
        "committedDate": stamp(shown.committer.at),
        "url": f"{one.world.web}/{one.full_name}/commit/{shown.sha}",
        "tree": lambda _: git_object(one, shown.tree),
        "parents": connections.connect(parents, lambda parent: commit(one, parent)),
        "statusCheckRollup": lambda _: rollups.rollup(one, shown.sha),
    }


def _signature(who: Signature) -> Json:
    return {"name": who.name, "email": who.email, "date": stamp(who.at)}
