"""Commits, refs, trees and files as JSON."""

from base64 import encodebytes
from urllib.parse import quote

from bot.sandbox.git import Commit, Signature, TreeItem
from bot.sandbox.merges import FileChange
from bot.sandbox.records import NOREPLY, Json
from bot.sandbox.shapes import people
from bot.sandbox.timeline import stamp
from bot.sandbox.world import Repository, World


def address(one: Repository) -> str:
    """The REST address of a repository."""
    return f"{people.api(one.world)}/repos/{one.full_name}"


def signature(who: Signature) -> Json:
    """Name, address and date."""
    return {"name": who.name, "email": who.email, "date": stamp(who.at)}


def verification(one: Repository, sha: str) -> Json:
    """The signature of a commit: valid for those that the provider made itself."""
    signed = sha in one.git.objects.signed
    return {
        "verified": signed,
        "reason": "valid" if signed else "unsigned",
        "signature": "-----BEGIN PGP SIGNATURE-----" if signed else None,
        "payload": f"tree {one.git.objects.a_commit(sha).tree}" if signed else None,
        "verified_at": stamp(one.git.objects.a_commit(sha).committer.at) if signed else None,
    }


def _account_of(world: World, who: Signature) -> Json | None:
    login = who.email.removesuffix(f"@{NOREPLY}").partition("+")[2]
    found = world.account(login) if login else None
    return people.account(world, found) if found is not None else None


def commit(one: Repository, shown: Commit) -> Json:
    """A commit as lists, branches and comparisons show it."""
    url = f"{address(one)}/commits/{shown.sha}"
    git_url = f"{address(one)}/git/commits/{shown.sha}"
    return {
        "sha": shown.sha,
        "node_id": people.node_id("Commit", f"{one.id}:{shown.sha}"),
        "url": url,
        "html_url": f"{one.world.web}/{one.full_name}/commit/{shown.sha}",
        "comments_url": f"{url}/comments",
        "commit": {
            "url": git_url,
            "author": signature(shown.author),
            "committer": signature(shown.committer),
            "message": shown.message,
            "comment_count": 0,
            "tree": _tree_link(one, shown.tree),
            "verification": verification(one, shown.sha),
        },
        "author": _account_of(one.world, shown.author),
        "committer": _account_of(one.world, shown.committer),
        "parents": [
            {
                "sha": parent,
                "url": f"{address(one)}/commits/{parent}",
                "html_url": f"{one.world.web}/{one.full_name}/commit/{parent}",
            }
            for parent in shown.parents
        ],
    }


def git_commit(one: Repository, shown: Commit) -> Json:
    """A commit as the git database shows it."""
    url = f"{address(one)}/git/commits"
    web = f"{one.world.web}/{one.full_name}/commit"
    return {
        "sha": shown.sha,
        "node_id": people.node_id("Commit", f"{one.id}:{shown.sha}"),
        "url": f"{url}/{shown.sha}",
        "html_url": f"{web}/{shown.sha}",
        "author": signature(shown.author),
        "committer": signature(shown.committer),
        "message": shown.message,
        "tree": _tree_link(one, shown.tree),
        "parents": [
            {"sha": parent, "url": f"{url}/{parent}", "html_url": f"{web}/{parent}"}
            for parent in shown.parents
        ],
        "verification": verification(one, shown.sha),
    }


def simple_commit(shown: Commit) -> Json:
    """A commit inside a check suite or a workflow run."""
    return {
        "id": shown.sha,
        "tree_id": shown.tree,
        "message": shown.message,
        "timestamp": stamp(shown.committer.at),
        "author": {"name": shown.author.name, "email": shown.author.email},
        "committer": {"name": shown.committer.name, "email": shown.committer.email},
    }


def pushed_commit(one: Repository, shown: Commit) -> Json:
    """A commit inside a push event, with the files that differ from its first parent's."""
    objects = one.git.objects
    before = objects.a_commit(shown.parents[0]).tree if shown.parents else None
    changed = list(objects.changed(before, shown.tree))
    return {
        **simple_commit(shown),
        "distinct": True,
        "url": f"{one.world.web}/{one.full_name}/commit/{shown.sha}",
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
        "url": f"{address(one)}/git/{quote(name)}",
        "object": {
            "sha": sha,
            "type": "commit",
            "url": f"{address(one)}/git/commits/{sha}",
        },
    }


def _tree_link(one: Repository, sha: str) -> Json:
    return {"sha": sha, "url": f"{address(one)}/git/trees/{sha}"}


def tree_line(one: Repository, path: str, item: TreeItem) -> Json:
    """One line of a tree; only files have a size."""
    kind = {"tree": "trees", "blob": "blobs"}.get(item.kind)
    line: Json = {"path": path, "mode": item.mode, "type": item.kind, "sha": item.sha}
    if kind is not None:
        line["url"] = f"{address(one)}/git/{kind}/{item.sha}"
    if item.kind == "blob":
        line["size"] = len(one.git.objects.blob(item.sha) or b"")
    return line


def blob(one: Repository, sha: str, body: bytes) -> Json:
    """A file's content in base64, however long it is."""
    return {
        "sha": sha,
        "node_id": people.node_id("Blob", f"{one.id}:{sha}"),
        "size": len(body),
        "url": f"{address(one)}/git/blobs/{sha}",
        "content": encodebytes(body).decode(),
        "encoding": "base64",
    }


def content_file(one: Repository, path: str, item: TreeItem, at: str) -> Json:
    """A file with its content in base64, empty above 1 MB as at the provider."""
    body = one.git.objects.blob(item.sha) or b""
    large = len(body) > 1_000_000
    url = f"{address(one)}/contents/{quote(path)}?ref={at}"
    web = f"{one.world.web}/{one.full_name}/blob/{at}/{quote(path)}"
    git_url = f"{address(one)}/git/blobs/{item.sha}"
    return {
        "type": "file",
        "encoding": "none" if large else "base64",
        "size": len(body),
        "name": item.name,
        "path": path,
        "content": "" if large else encodebytes(body).decode(),
        "sha": item.sha,
        "url": url,
        "git_url": git_url,
        "html_url": web,
        "download_url": f"{one.world.web}/{one.full_name}/raw/{at}/{quote(path)}",
        "_links": {"git": git_url, "self": url, "html": web},
    }


def changed_file(one: Repository, change: FileChange, at: str) -> Json:
    """A changed file of a pull request or a comparison."""
    path = quote(change.path)
    shown: Json = {
        "sha": change.sha,
        "filename": change.path,
        "status": change.status,
        "additions": change.additions,
        "deletions": change.deletions,
        "changes": change.additions + change.deletions,
        "blob_url": f"{one.world.web}/{one.full_name}/blob/{at}/{path}",
        "raw_url": f"{one.world.web}/{one.full_name}/raw/{at}/{path}",
        "contents_url": f"{address(one)}/contents/{path}?ref={at}",
    }
    if change.old_path is not None:
        shown["previous_filename"] = change.old_path
    return shown
