"""Commits, refs, trees and files as JSON."""

import re
from base64 import encodebytes
from dataclasses import replace
from urllib.parse import quote

from bot.sandbox.git import Commit, Signature, TreeItem
from bot.sandbox.merges import FileChange
from bot.sandbox.records import NOREPLY, Account, Json
from bot.sandbox.shapes import people
from bot.sandbox.timeline import stamp
from bot.sandbox.world import Repository, World

CO_AUTHOR = re.compile(r"^co-authored-by: *(.+?) *<([^<>]*)>$", flags=re.IGNORECASE | re.MULTILINE)
CONTENT_MAX = 1_000_000  # a larger file comes without its content
FILES_OF_A_COMMIT_MAX = 3000  # of a pushed one


def signature(one: Signature) -> Json:
    """Name, address and date."""
    return {"name": one.name, "email": one.email, "date": stamp(one.at)}


def _verification(one: Repository, commit: Commit) -> Json:
    """The signature of a commit: valid for those that GitHub made itself."""
    if commit.sha not in one.git.objects.signed:
        absent = dict.fromkeys(("signature", "payload", "verified_at"))
        return {"verified": False, "reason": "unsigned", **absent}
    return {
        "verified": True,
        "reason": "valid",
        "signature": "-----BEGIN PGP SIGNATURE-----",
        "payload": f"tree {commit.tree}",
        "verified_at": stamp(commit.committer.at),
    }


def account_of(world: World, author: Signature) -> Account | None:
    """The account that an author's address names."""
    login = author.email.removesuffix(f"@{NOREPLY}").partition("+")[2]
    return world.account(login) if login else None


def _account_of(world: World, author: Signature) -> Json | None:
    return people.account_or_none(world, account_of(world, author))


def authors(value: Commit) -> list[Signature]:
    """The git author of a commit, then those whom its Co-authored-by trailers name."""
    named = CO_AUTHOR.findall(value.message)
    return [value.author, *(replace(value.author, name=name, email=email) for name, email in named)]


def commit(one: Repository, value: Commit) -> Json:
    """A commit as lists, branches and comparisons show it."""
    inner = git_commit(one, value)
    described = {key: inner[key] for key in ("url", "author", "committer", "message", "tree")}
    return {
        **_addressed(one, value.sha, "commits"),
        "node_id": inner["node_id"],
        "comments_url": f"{one.url}/commits/{value.sha}/comments",
        "commit": {**described, "comment_count": 0, "verification": inner["verification"]},
        "author": _account_of(one.world, value.author),
        "committer": _account_of(one.world, value.committer),
        "parents": [_addressed(one, parent, "commits") for parent in value.parents],
    }


def git_commit(one: Repository, value: Commit) -> Json:
    """A commit as the git database shows it."""
    return {
        **_addressed(one, value.sha, "git/commits"),
        "node_id": people.node_id("Commit", f"{one.id}:{value.sha}"),
        "author": signature(value.author),
        "committer": signature(value.committer),
        "message": value.message,
        "tree": {"sha": value.tree, "url": f"{one.url}/git/trees/{value.tree}"},
        "parents": [_addressed(one, parent, "git/commits") for parent in value.parents],
        "verification": _verification(one, value),
    }


def _addressed(one: Repository, sha: str, chapter: str) -> Json:
    page = f"{one.page}/commit/{sha}"
    return {"sha": sha, "url": f"{one.url}/{chapter}/{sha}", "html_url": page}


def simple_commit(value: Commit) -> Json:
    """A commit inside a check suite or a workflow run."""
    return {
        "id": value.sha,
        "tree_id": value.tree,
        "message": value.message,
        "timestamp": stamp(value.committer.at),
        "author": {"name": value.author.name, "email": value.author.email},
        "committer": {"name": value.committer.name, "email": value.committer.email},
    }


def pushed_commit(one: Repository, value: Commit) -> Json:
    """A commit inside a push event, with the first files that differ from its first parent's."""
    objects = one.git.objects
    before = objects.a_commit(value.parents[0]).tree if value.parents else None
    changed = list(objects.changed(before, value.tree))[:FILES_OF_A_COMMIT_MAX]
    return {
        **simple_commit(value),
        "distinct": True,
        "url": f"{one.page}/commit/{value.sha}",
        "added": [path for path, old, _ in changed if old is None],
        "removed": [path for path, _, new in changed if new is None],
        "modified": [path for path, old, new in changed if old and new],
    }


def ref(one: Repository, name: str) -> Json:
    """A ref; `name` is the whole one, with `refs/`."""
    sha = one.git.refs[name]
    return {
        "ref": name,
        "node_id": people.node_id("Ref", f"{one.id}:{name}"),
        "url": f"{one.url}/git/{quote(name)}",
        "object": {"sha": sha, "type": "commit", "url": f"{one.url}/git/commits/{sha}"},
    }


def tree_line(one: Repository, path: str, item: TreeItem) -> Json:
    """One line of a tree; only files have a size."""
    line: Json = {"path": path, "mode": item.mode, "type": item.kind, "sha": item.sha}
    if item.kind in ("tree", "blob"):
        line["url"] = f"{one.url}/git/{item.kind}s/{item.sha}"
    if item.kind == "blob":
        line["size"] = len(one.git.objects.blob(item.sha) or b"")
    return line


def blob(one: Repository, sha: str, body: bytes) -> Json:
    """A file's content in base64, whatever its size."""
    return {
        "sha": sha,
        "node_id": people.node_id("Blob", f"{one.id}:{sha}"),
        "size": len(body),
        "url": f"{one.url}/git/blobs/{sha}",
        "content": encodebytes(body).decode(),
        "encoding": "base64",
    }


def content_file(one: Repository, path: str, item: TreeItem, at: str) -> Json:
    """A file with its content in base64, empty above CONTENT_MAX as at GitHub."""
    body = one.git.objects.blob(item.sha) or b""
    is_large = len(body) > CONTENT_MAX
    links = {
        "self": f"{one.url}/contents/{quote(path)}?ref={at}",
        "git": f"{one.url}/git/blobs/{item.sha}",
        "html": f"{one.page}/blob/{at}/{quote(path)}",
    }
    return {
        "type": "dir" if item.kind == "tree" else "file",
        "encoding": "none" if is_large else "base64",
        "size": len(body),
        "name": item.name,
        "path": path,
        "content": "" if is_large else encodebytes(body).decode(),
        "sha": item.sha,
        "url": links["self"],
        "git_url": links["git"],
        "html_url": links["html"],
        "download_url": f"{one.page}/raw/{at}/{quote(path)}",
        "_links": links,
    }


def changed_file(one: Repository, change: FileChange, at: str) -> Json:
    """A changed file of a pull request or a comparison."""
    path = quote(change.path)
    shape: Json = {
        "sha": change.sha,
        "filename": change.path,
        "status": change.status,
        "additions": change.additions,
        "deletions": change.deletions,
        "changes": change.additions + change.deletions,
        "blob_url": f"{one.page}/blob/{at}/{path}",
        "raw_url": f"{one.page}/raw/{at}/{path}",
        "contents_url": f"{one.url}/contents/{path}?ref={at}",
    }
    if change.old_path is not None:
        shape["previous_filename"] = change.old_path
    return shape
