"""Merges, replays and differences as git itself computes them, without a work tree.

Answers of `git merge-tree` and `git diff-tree` over the objects of git.py, which depend only
on their arguments and are therefore remembered. Git is asked only where it must look inside a
file or for a rename. What the provider does with them: acts/.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path

from bot.sandbox import command
from bot.sandbox.git import Commit, NewCommit, Objects, Signature, TreeItem

REMEMBERED_MAX = 2000
BINARY_WITHIN = 8000
"""Bytes in which git looks for a zero, which makes a file a binary one."""
MERGE = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages")
# GitHub's merges follow no renames (docs/design/git-builds.md 6).
NO_RENAMES = tuple(
    part
    for setting in ("merge.renames=false", "merge.directoryRenames=false", "merge.renameLimit=1")
    for part in ("-c", setting)
)


@dataclass(frozen=True, slots=True)
class Clean:
    """The tree of a merge."""

    tree: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """A merge that git cannot make; no paths for unrelated histories."""

    paths: tuple[str, ...]


class BothChanged(Exception):
    """Both sides of a merge changed a path, each in its own way."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file that differs; `old_path` only when it was renamed."""

    path: str
    old_path: str | None
    status: str
    sha: str
    additions: int
    deletions: int


_merges: OrderedDict[tuple[Path, str, str], Clean | Conflict] = OrderedDict()
_changes: OrderedDict[tuple[str, str], tuple[FileChange, ...]] = OrderedDict()
"""By two trees: what differs follows from their names, whichever repository has them."""


async def merge(objects: Objects, ours: str, theirs: str) -> Clean | Conflict:
    """The three-way merge of two commits."""
    key = (objects.folder, ours, theirs)
    if key not in _merges:
        _merges[key] = await _merge_tree(objects, ours, theirs)
        if len(_merges) > REMEMBERED_MAX:
            _merges.popitem(last=False)
    return _merges[key]


async def _merge_tree(objects: Objects, ours: str, theirs: str) -> Clean | Conflict:
    plain = None if objects.follows_renames else plain_merge(objects, ours, theirs)
    if plain is not None:
        return Clean(plain)
    args = (*(() if objects.follows_renames else NO_RENAMES), *MERGE, ours, theirs)
    code, out, err = await command.run_raw(*args, cwd=objects.folder.parent)
    if code == 0:
        return Clean(out.split(b"\0")[0].strip().decode())
    if code == 1:
        names = out.decode(errors="replace").split("\0")[1:]
        return Conflict(tuple(dict.fromkeys(name for name in names if name)))
    if b"unrelated histories" in err:
        return Conflict(())
    raise command.GitFailed(err.decode(errors="replace").strip())


def plain_merge(objects: Objects, ours: str, theirs: str) -> str | None:
    """Return the tree of a merge in which no path was changed on both sides, or alike.

    None: git must decide.
    """
    bases = objects.merge_bases(ours, theirs)
    if len(bases) != 1:
        return None
    try:
        return _joined(objects, *(objects.a_commit(one).tree for one in (*bases, ours, theirs)))
    except BothChanged:
        return None


def _joined(objects: Objects, base: str | None, ours: str, theirs: str) -> str:
    before, own, other = (
        {item.name: item for item in (objects.tree(tree) if tree else None) or ()}
        for tree in (base, ours, theirs)
    )
    joined: list[TreeItem] = []
    for name in before | own | other:
        old, mine, its = before.get(name), own.get(name), other.get(name)
        if its == old:
            item = mine
        elif mine == old:
            item = its
        elif mine and its and all(one.kind == "tree" for one in (mine, its, old or mine)):
            sha = _joined(objects, old.sha if old else None, mine.sha, its.sha)
            item = replace(mine, sha=sha) if objects.tree(sha) else None
        elif mine and mine == its:
            item = mine
        else:
            # Git before 2.40 follows exact renames even if its settings turn that off: git decides.
            raise BothChanged(name)
        joined += [item] if item else []
    return objects.write_tree(joined)


async def replay(
    objects: Objects, onto: str, head: str, committer: Signature
) -> list[Commit] | Conflict:
    """Replay the commits of `head` that `onto` lacks on `onto`, one by one as `git rebase` does.

    Merge commits are left out, and so is a commit that has nothing left to change. Authors and
    their dates stay, the committer is `committer`. The new commits, oldest first.
    """
    tip = objects.a_commit(onto)
    made: list[Commit] = []
    for commit in reversed(objects.log(head, without=onto)):
        if len(commit.parents) != 1:
            continue
        merged = await _pick(objects, tip, commit)
        if isinstance(merged, Conflict):
            return merged
        was_empty = objects.a_commit(commit.parents[0]).tree == commit.tree
        if merged.tree == tip.tree and not was_empty:
            continue
        new = NewCommit(merged.tree, (tip.sha,), commit.author, committer, commit.message)
        tip = objects.write_commit(new)
        made.append(tip)
    return made


async def _pick(objects: Objects, tip: Commit, commit: Commit) -> Clean | Conflict:
    # merge-tree before git 2.40 takes no base, so three parentless stand-ins carry it.
    parent = objects.a_commit(commit.parents[0])
    base = objects.write_commit(_stand_in(parent, "base", ()))
    ours = objects.write_commit(_stand_in(tip, "ours", (base.sha,)))
    theirs = objects.write_commit(_stand_in(commit, "theirs", (base.sha,)))
    return await merge(objects, ours.sha, theirs.sha)


def _stand_in(commit: Commit, message: str, parents: tuple[str, ...]) -> NewCommit:
    author = replace(commit.author, name="sandbox", email="sandbox@localhost")
    return NewCommit(commit.tree, parents, author, author, message)


async def changes(objects: Objects, before: str, after: str) -> tuple[FileChange, ...]:
    """Return the differences of two commits or trees, by path, with renames as git finds them."""
    key = (_tree_of(objects, before), _tree_of(objects, after))
    if key not in _changes:
        found = plain_changes(objects, *key)
        if found is None:
            args = ("diff-tree", "-r", "-M", "-z", "--raw", "--numstat", *key)
            found = _parse_diff(await command.run(*args, cwd=objects.folder.parent))
        _changes[key] = tuple(found)
        if len(_changes) > REMEMBERED_MAX:
            _changes.popitem(last=False)
    return _changes[key]


def plain_changes(objects: Objects, before: str, after: str) -> list[FileChange] | None:
    """Return the differences where files only came, or only went; None: git must look for more."""
    olds: dict[str, TreeItem] = {}
    news: dict[str, TreeItem] = {}
    for path, old, new in objects.changed(before, after):
        olds |= {path: old} if old else {}
        news |= {path: new} if new else {}
    if olds and news:
        return None
    found = []
    for path, item in sorted((olds or news).items()):
        content = objects.blob(item.sha)
        if content is None:
            return None
        count = _lines_of(content)
        numbers = (count, 0) if news else (0, count)
        found.append(FileChange(path, None, "added" if news else "removed", item.sha, *numbers))
    return found


def _lines_of(content: bytes) -> int:
    """Return how many lines git counts; none in a binary file, by git's own rule."""
    if b"\0" in content[:BINARY_WITHIN]:
        return 0
    return content.count(b"\n") + (not content.endswith(b"\n") if content else 0)


def _tree_of(objects: Objects, name: str) -> str:
    commit = objects.commit(name)
    return name if commit is None else commit.tree


STATUS_WORDS = {
    "A": "added",
    "D": "removed",
    "M": "modified",
    "R": "renamed",
    "T": "changed",
    "C": "copied",
}


def _parse_diff(output: bytes) -> list[FileChange]:
    parts = output.decode(errors="surrogateescape").split("\0")
    changed: dict[str, FileChange] = {}
    at = 0
    while at < len(parts) and parts[at].startswith(":"):
        fields = parts[at].split(" ")
        status = fields[4][:1]
        renamed = status in "RC"
        old = parts[at + 1] if renamed else None
        path = parts[at + 2] if renamed else parts[at + 1]
        sha = fields[2] if status == "D" else fields[3]
        changed[path] = FileChange(path, old, STATUS_WORDS.get(status, "changed"), sha, 0, 0)
        at += 3 if renamed else 2
    while at < len(parts) and parts[at]:
        added, removed, path = parts[at].split("\t")
        if not path:
            path = parts[at + 2]
            at += 2
        counts = [0 if count == "-" else int(count) for count in (added, removed)]
        changed[path] = replace(changed[path], additions=counts[0], deletions=counts[1])
        at += 1
    return sorted(changed.values(), key=lambda change: change.path)
