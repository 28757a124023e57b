"""Real bare git repositories: objects, refs, and what is reachable from what.

Objects and refs are read and written in git's own loose formats in this process, because a test
does thousands of reads and a landing moves many refs. The `git` command does the rest: merges
within a file, renames, packs. Only this process moves refs. A fork shares its parent's object
folder, as forks do at the provider, so a fork's head is a commit of the parent too. No rule of
the provider is here.
"""

import hashlib
import heapq
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cachetools import LRUCache

from bot.sandbox.command import GitFailed

ZERO = "0" * 40
TREE_MODE = "040000"
SHA = re.compile(r"[0-9a-f]{40}")
FROM_ONE, FROM_OTHER, BELOW_A_BASE = 1, 2, 7
"""From which ends a search for common ancestors has reached a commit."""
REF_NAME = re.compile(r"refs(/(?!\.)((?!\.\.|@\{)[^\x00-\x20\x7f~^:?*\[\\/])+(?<!\.lock))+(?<!\.)")
"""The names that `git check-ref-format` accepts."""
PART_MAX = 250
"""Bytes of a part of a name: it is the name of a file, for a moment with `.lock`."""
COMMITS_MAX = 20_000
LINES_MAX = 100_000
"""Commits, and lines of trees, that are kept parsed: about 20 MB and 25 MB."""

# Packs would hide objects from the loose reader below, so git must never make one here.
CONFIG = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
[gc]
\tauto = 0
[receive]
\tunpackLimit = 100000000
\thideRefs = refs/pull
[http]
\treceivepack = true
[uploadpack]
\tallowAnySHA1InWant = true
\tallowFilter = true
"""


@dataclass(frozen=True, slots=True)
class Signature:
    """The author or committer of a commit, and the time."""

    name: str
    email: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit; parents in git's order."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Signature
    committer: Signature
    message: str


@dataclass(frozen=True, slots=True)
class TreeItem:
    """One line of a tree: mode as six digits, kind blob, tree or commit."""

    mode: str
    kind: str
    sha: str
    name: str


@dataclass(frozen=True, slots=True)
class NewCommit:
    """A commit to be written."""

    tree: str
    parents: tuple[str, ...]
    author: Signature
    committer: Signature
    message: str


class Objects:
    """The objects of a repository and all its forks; none is ever removed from the disk.

    `signed` holds the commits that the provider made, and therefore signed, itself.
    `follows_renames` makes merges that GitHub was not seen to make.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.follows_renames = False
        self.signed: set[str] = set()
        self._commits: LRUCache[str, Commit] = LRUCache(COMMITS_MAX)
        self._trees: LRUCache[str, tuple[TreeItem, ...]] = LRUCache(LINES_MAX, _size_of)
        self._generations: dict[str, int] = {}

    def read(self, sha: str) -> tuple[str, bytes] | None:
        """Kind and content of an object, or None when there is none of that name."""
        if not SHA.fullmatch(sha):
            return None
        try:
            raw = zlib.decompress((self.folder / sha[:2] / sha[2:]).read_bytes())
        except FileNotFoundError:
            return None
        head, _, body = raw.partition(b"\0")
        return head.split(b" ")[0].decode(), body

    def write(self, kind: str, body: bytes) -> str:
        """Store an object; storing it again changes nothing."""
        raw = f"{kind} {len(body)}\0".encode() + body
        sha = hashlib.sha1(raw, usedforsecurity=False).hexdigest()
        path = self.folder / sha[:2] / sha[2:]
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            fresh = path.with_name(f"tmp_{sha}")
            fresh.write_bytes(zlib.compress(raw, 1))
            fresh.rename(path)
        return sha

    def commit(self, sha: str) -> Commit | None:
        """The commit of that name, or None."""
        parsed = self._commits.get(sha)
        if parsed is None:
            stored = self.read(sha)
            if stored is None or stored[0] != "commit":
                return None
            parsed = self._commits[sha] = _parse_commit(sha, stored[1])
        return parsed

    def a_commit(self, sha: str) -> Commit:
        """The commit of a name that must be one. Raises GitFailed otherwise."""
        stored = self.commit(sha)
        if stored is None:
            raise GitFailed(f"no commit {sha}")
        return stored

    def tree(self, sha: str) -> tuple[TreeItem, ...] | None:
        """The lines of a tree, in git's order; a commit's name stands for its tree."""
        parsed = self._trees.get(sha)
        if parsed is None:
            stored = self.read(sha)
            if stored is None or stored[0] not in ("tree", "commit"):
                return None
            if stored[0] == "commit":
                return self.tree(self.a_commit(sha).tree)
            parsed = tuple(_parse_tree(stored[1]))
            if _size_of(parsed) <= LINES_MAX:
                self._trees[sha] = parsed
        return parsed

    def blob(self, sha: str) -> bytes | None:
        """The content of a file, or None."""
        stored = self.read(sha)
        return stored[1] if stored is not None and stored[0] == "blob" else None

    def item_at(self, tree: str, path: str) -> TreeItem | None:
        """Return the item at a path below a tree (or a commit); None when there is none."""
        item = TreeItem(TREE_MODE, "tree", tree, "")
        for name in filter(None, path.split("/")):
            lines = self.tree(item.sha) if item.kind == "tree" else None
            stored = next((line for line in lines or () if line.name == name), None)
            if stored is None:
                return None
            item = stored
        return item

    def file_at(self, tree: str, path: str) -> bytes | None:
        """The content of the file at a path below a tree (or a commit); None if absent."""
        item = self.item_at(tree, path)
        return self.blob(item.sha) if item is not None else None

    def walk(self, tree: str, prefix: str = "") -> Iterable[tuple[str, TreeItem]]:
        """Every path below a tree with its item, folders before their content."""
        for item in self.tree(tree) or ():
            path = f"{prefix}{item.name}"
            yield path, item
            if item.kind == "tree":
                yield from self.walk(item.sha, f"{path}/")

    def changed(
        self, before: str | None, after: str | None, prefix: str = ""
    ) -> Iterable[tuple[str, TreeItem | None, TreeItem | None]]:
        """Paths of files that differ between two trees, with the item of each."""
        olds, news = (
            {item.name: item for item in (self.tree(tree) if tree else None) or ()}
            for tree in (before, after)
        )
        for name in sorted(olds.keys() | news.keys()):
            old, new = olds.get(name), news.get(name)
            if old == new:
                continue
            old_tree = old.sha if old and old.kind == "tree" else None
            new_tree = new.sha if new and new.kind == "tree" else None
            if old_tree or new_tree:
                yield from self.changed(old_tree, new_tree, f"{prefix}{name}/")
            files = (None if old_tree else old, None if new_tree else new)
            if any(files):
                yield f"{prefix}{name}", *files

    def write_tree(self, items: Iterable[TreeItem]) -> str:
        """Store a tree; the lines may come in any order."""
        ordered = sorted(
            items, key=lambda item: (item.name + ("/" if item.kind == "tree" else "")).encode()
        )
        body = b"".join(
            f"{item.mode.lstrip('0')} {item.name}".encode() + b"\0" + bytes.fromhex(item.sha)
            for item in ordered
        )
        return self.write("tree", body)

    def tree_with(self, tree: str | None, files: Mapping[str, bytes | None]) -> str:
        """The tree with some files replaced; None removes one. Modes stay as they were."""
        lines = self.tree(tree) if tree is not None else None
        items = {item.name: item for item in lines or ()}
        below: dict[str, dict[str, bytes | None]] = {}
        for path, content in files.items():
            first, _, rest = path.partition("/")
            if rest:
                below.setdefault(first, {})[rest] = content
            elif content is None:
                items.pop(first, None)
            else:
                old = items.get(first)
                mode = old.mode if old is not None and old.kind == "blob" else "100644"
                items[first] = TreeItem(mode, "blob", self.write("blob", content), first)
        for name, inner in below.items():
            old = items.get(name)
            sha = self.tree_with(old.sha if old and old.kind == "tree" else None, inner)
            if self.tree(sha):
                items[name] = TreeItem(TREE_MODE, "tree", sha, name)
            else:
                items.pop(name, None)
        return self.write_tree(items.values())

    def write_commit(self, new: NewCommit, *, signed: bool = False) -> Commit:
        """Store a commit. Equal fields give the same commit again."""
        lines = [f"tree {new.tree}", *(f"parent {parent}" for parent in new.parents)]
        lines += [f"author {_signed_off(new.author)}", f"committer {_signed_off(new.committer)}"]
        message = new.message if new.message.endswith("\n") else f"{new.message}\n"
        sha = self.write("commit", ("\n".join(lines) + "\n\n" + message).encode())
        if signed:
            self.signed.add(sha)
        return self.a_commit(sha)

    def generation(self, sha: str) -> int:
        """Length of the longest way down to a root; larger than that of every ancestor."""
        todo = [sha]
        while todo:
            commit = self.a_commit(todo[-1])
            missing = [one for one in commit.parents if one not in self._generations]
            if missing:
                todo.extend(missing)
                continue
            todo.pop()
            self._generations[commit.sha] = 1 + max(
                (self._generations[one] for one in commit.parents), default=0
            )
        return self._generations[sha]

    def is_ancestor(self, ancestor: str, commit: str) -> bool:
        """Return whether `ancestor` is `commit` or reachable from it."""
        return ancestor in self.ancestors(commit, self.generation(ancestor))

    def ancestors(self, commit: str, floor: int = 0) -> set[str]:
        """The commit and everything reachable from it whose generation is at least `floor`."""
        seen, todo = {commit}, [commit]
        while todo:
            for parent in self.a_commit(todo.pop()).parents:
                if parent not in seen and self.generation(parent) >= floor:
                    seen.add(parent)
                    todo.append(parent)
        return seen

    def log(self, tip: str, without: str | None = None) -> list[Commit]:
        """The commits of `tip` that `without` does not have; descendants before ancestors."""
        inside = self._only_of(tip, without) if without else self.ancestors(tip)
        commits = [self.a_commit(sha) for sha in inside]
        return sorted(
            commits, key=lambda one: (self.generation(one.sha), one.committer.at), reverse=True
        )

    def _only_of(self, tip: str, without: str) -> Iterable[str]:
        """Return what `tip` reaches and `without` does not; the rest of the past is not read."""
        reached: dict[str, bool] = {tip: True}
        reached[without] = False
        # Descendants come first, so it is known of each whether `without` reaches it.
        todo = [(-self.generation(sha), sha) for sha in reached]
        heapq.heapify(todo)
        own = 0 if tip == without else 1
        while own:
            sha = heapq.heappop(todo)[1]
            own -= reached[sha]
            for parent in self.a_commit(sha).parents:
                if parent not in reached:
                    heapq.heappush(todo, (-self.generation(parent), parent))
                    own += reached[sha]
                    reached[parent] = reached[sha]
                elif reached[parent] and not reached[sha]:
                    reached[parent] = False
                    own -= 1
        return (sha for sha, is_own in reached.items() if is_own)

    def first_parents(self, tip: str, most: int) -> list[Commit]:
        """The newest `most` commits of the first-parent history, newest first."""
        chain = [self.a_commit(tip)]
        while chain[-1].parents and len(chain) < most:
            chain.append(self.a_commit(chain[-1].parents[0]))
        return chain

    def merge_base(self, one: str, other: str) -> str | None:
        """A best common ancestor; None for unrelated histories."""
        bases = self.merge_bases(one, other)
        return max(bases, key=lambda sha: (self.generation(sha), sha), default=None)

    def merge_bases(self, one: str, other: str) -> list[str]:
        """All best common ancestors: those that no other common ancestor descends from."""
        bases: list[str] = []
        reached = {one: FROM_ONE}
        reached[other] = reached.get(other, 0) | FROM_OTHER
        # Descendants come first, so what reaches a commit is known when its turn comes.
        todo = [(-self.generation(sha), sha) for sha in reached]
        heapq.heapify(todo)
        while any(reached[sha] != BELOW_A_BASE for _, sha in todo):
            sha = heapq.heappop(todo)[1]
            if reached[sha] == FROM_ONE | FROM_OTHER:
                bases.append(sha)
                reached[sha] = BELOW_A_BASE
            for parent in self.a_commit(sha).parents:
                if parent not in reached:
                    heapq.heappush(todo, (-self.generation(parent), parent))
                reached[parent] = reached.get(parent, 0) | reached[sha]
        return bases


class BareRepository:
    """One bare repository: a folder that the git command serves, and its refs in memory."""

    def __init__(self, folder: Path, objects: Objects) -> None:
        self.folder = folder
        self.objects = objects
        self.refs: dict[str, str] = {}

    def move(self, updates: Sequence[tuple[str, str, str]]) -> None:
        """Set refs from (name, old, new), all or none; ZERO means absent.

        Raises GitFailed when an old value does not hold or a name cannot be taken.
        """
        for name, old, new in updates:
            if self.refs.get(name, ZERO) != old:
                raise GitFailed(f"{name} is not at {old}")
            if new != ZERO:
                self._check(name, [*self.refs, *(one[0] for one in updates)])
                self.objects.a_commit(new)
        for name, _, new in updates:
            if new == ZERO:
                self.refs.pop(name, None)
                self._remove(self.folder / name)
            else:
                self.refs[name] = new
                _write_whole(self.folder / name, f"{new}\n")

    def _check(self, name: str, others: Iterable[str]) -> None:
        """Raise GitFailed when git has no file for a ref of this name beside the others."""
        if not REF_NAME.fullmatch(name) or max(map(len, name.encode().split(b"/"))) > PART_MAX:
            raise GitFailed(f"{name} is no name of a ref")
        if any(one.startswith(f"{name}/") or name.startswith(f"{one}/") for one in others):
            raise GitFailed(f"{name} is a folder of refs, or in a ref")

    def _remove(self, path: Path) -> None:
        """Remove a ref and the folders that were there for it alone."""
        path.unlink(missing_ok=True)
        for folder in path.parents:
            if folder == self.folder / "refs" or any(folder.iterdir()):
                return
            folder.rmdir()

    def branch(self, name: str) -> str | None:
        """The tip of a branch, or None."""
        return self.refs.get(f"refs/heads/{name}")

    def branches(self) -> list[str]:
        """The names of all branches, sorted."""
        heads = sorted(ref for ref in self.refs if ref.startswith("refs/heads/"))
        return [ref.removeprefix("refs/heads/") for ref in heads]

    def point_head_at(self, branch: str) -> None:
        """Make `branch` what a clone checks out."""
        _write_whole(self.folder / "HEAD", f"ref: refs/heads/{branch}\n")


def create(
    folder: Path, default_branch: str, parent: BareRepository | None = None
) -> BareRepository:
    """A new bare repository; one with a `parent` shares the parent's objects."""
    (folder / "refs").mkdir(parents=True)
    (folder / "config").write_text(CONFIG)
    if parent is None:
        (folder / "objects").mkdir()
        objects = Objects(folder / "objects")
    else:
        objects = parent.objects
        (folder / "objects").symlink_to(objects.folder, target_is_directory=True)
    made = BareRepository(folder, objects)
    made.point_head_at(default_branch)
    return made


def _write_whole(path: Path, content: str) -> None:
    """Replace a file at once; git passes over the new one while it is written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.lock")
    fresh.write_text(content)
    fresh.rename(path)


def _size_of(tree: tuple[TreeItem, ...]) -> int:
    return len(tree) + 1


def _parse_commit(sha: str, body: bytes) -> Commit:
    """A commit from its stored form."""
    head, _, message = body.decode(errors="replace").partition("\n\n")
    fields: dict[str, list[str]] = {}
    for line in head.split("\n"):
        key, _, value = line.partition(" ")
        fields.setdefault(key, []).append(value)
    return Commit(
        sha,
        fields["tree"][0],
        tuple(fields.get("parent", ())),
        _parse_signature(fields["author"][0]),
        _parse_signature(fields["committer"][0]),
        message.rstrip("\n"),
    )


def _parse_tree(body: bytes) -> Iterable[TreeItem]:
    """The lines of a tree from its stored form."""
    at = 0
    while at < len(body):
        space = body.index(b" ", at)
        nul = body.index(b"\0", space)
        mode = body[at:space].decode().zfill(6)
        kind = {"040000": "tree", "160000": "commit"}.get(mode, "blob")
        name = body[space + 1 : nul].decode(errors="surrogateescape")
        yield TreeItem(mode, kind, body[nul + 1 : nul + 21].hex(), name)
        at = nul + 21


def _parse_signature(line: str) -> Signature:
    who, _, when = line.rpartition("> ")
    name, _, email = who.partition(" <")
    return Signature(name, email, datetime.fromtimestamp(int(when.split(" ")[0]), UTC))


def _signed_off(who: Signature) -> str:
    name = re.sub(r"[<>\n\0]", "", who.name) or "nobody"
    email = re.sub(r"[<> \n]", "", who.email)
    return f"{name} <{email}> {int(who.at.timestamp())} +0000"
