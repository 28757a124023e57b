"""Branches with landings, and changes that may take them back: in git, and as values."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from hashlib import sha1
from pathlib import Path

from bot.github.gitbuild.command import Git
from bot.github.gitbuild.mirror import Mirror
from bot.github.gitbuild.undoing import Landed, Landings, Question
from service.clock import SystemClock
from service.provider.undoing.changes import Content, FileChange, Hunk, Landing
from service.provider.undoing.ledger import Undone
from service.vocabulary import Sha

FILES_MAX = 1 << 30
WHO = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "ann"), ("EMAIL", "ann@example.org"), ("DATE", "@1 +0000"))
}
Text = str | bytes
Files = Mapping[str, Text | tuple[str, Text] | None]
"""By path: a text, or a mode with a text or with the id of a submodule; None deletes."""


class Branch:
    """A branch in a bare repository, on which pull requests land one after the other."""

    def __init__(self, folder: Path, files: Files) -> None:
        self.folder = folder
        self.git("init", "-q", "--bare", "--template=", str(folder))
        self.first = self.tip = self._commit(self._tree(None, files), "start")
        mirror = Mirror(folder, Git(FILES_MAX, os.environ), SystemClock())
        self.landings = Landings(mirror)

    def land(self, files: Files, message: str = "a landing") -> Sha:
        """Land a squashed change."""
        self.tip = self._commit(self._tree(self.tip, files), message, self.tip)
        return self.tip

    def land_merge(self, head: Sha) -> Sha:
        """Land a head by a merge commit."""
        self.tip = self._commit(self.merged(head), f"Merge {head}", self.tip, head)
        return self.tip

    def head(self, files: Files, base: Sha | None = None) -> Sha:
        """Make a pull request's head, on the tip unless on another base."""
        base = base or self.tip
        return self._commit(self._tree(base, files), "a head", base)

    def merged(self, head: Sha) -> Sha:
        """Return the tree of a merge with the tip."""
        return Sha(self.git("merge-tree", "--write-tree", self.tip, head).split("\n")[0])

    def text(self, path: str, at: Sha | None = None) -> str:
        """Return a file at a commit, the tip unless another one is named."""
        return self.git("cat-file", "blob", f"{at or self.tip}:{path}", keep=True)

    def question(self, head: Sha, after: Sha | None = None) -> Question:
        """Return what is asked about a head on the tip."""
        return Question(self.tip, self.merged(head), head, after or self.first)

    async def undone_by(self, files: Files, after: Sha | None = None) -> Sequence[Undone]:
        """Return what a pull request with these files on the tip takes back."""
        return await self.landings.undone_by(self.question(self.head(files), after))

    async def named(self, files: Files, after: Sha | None = None) -> list[Sha]:
        """Return the landings that such a pull request takes back."""
        return [each.landing.commit for each in await self.undone_by(files, after)]

    async def landed_already(self, head: Sha) -> Landed | None:
        """Return the landing that has done a head's work."""
        return await self.landings.landed_already(self.question(head))

    def git(self, *arguments: str, feed: Text = b"", keep: bool = False) -> str:
        """Run git; return its output without the line end, unless that is kept."""
        given = feed.encode("utf-8", "surrogateescape") if isinstance(feed, str) else feed
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_DIR": str(self.folder),
            "GIT_INDEX_FILE": str(self.folder / "test-index"),
            **WHO,
        }
        command = ["git", *arguments]
        done = subprocess.run(
            command, input=given, env=environment, stdout=subprocess.PIPE, check=True
        )
        text = done.stdout.decode("utf-8", "surrogateescape")
        return text if keep else text.strip("\n")

    def _tree(self, base: Sha | None, files: Files) -> Sha:
        self.git("read-tree", *([base] if base else ["--empty"]))
        lines = []
        for path, held in files.items():
            mode, text = held if isinstance(held, tuple) else ("100644", held)
            if text is None:
                lines.append(f"0 {'0' * 40}\t{path}\0")
                continue
            is_module = mode == "160000"
            blob = text if is_module else self.git("hash-object", "-w", "--stdin", feed=text)
            lines.append(f"{mode} {blob!s}\t{path}\0")
        self.git("update-index", "-z", "--index-info", feed="".join(lines))
        return Sha(self.git("write-tree"))

    def _commit(self, tree: Sha, message: str, *parents: Sha) -> Sha:
        named = [part for parent in parents for part in ("-p", parent)]
        return Sha(self.git("commit-tree", tree, *named, feed=message))


def lines(*names: object) -> str:
    """Return a text with a line for each name, like a line of a program."""
    return "".join(f"    {name} = compute({name!r})\n" for name in names)


def between(
    before: Mapping[str, str], after: Mapping[str, str], moved: Mapping[str, str] | None = None
) -> tuple[FileChange, ...]:
    """Return the change between two sets of texts by path; `moved`: a path's name before."""
    moved = moved or {}
    found = []
    for path in sorted({*before, *after} - set(moved.values())):
        source = moved.get(path, path)
        old, new = before.get(source), after.get(path)
        if old != new or source != path:
            change = FileChange(path.encode(), source.encode(), _content(old), _content(new))
            found.append(replace(change, hunks=_hunks(old or "", new or "")))
    return tuple(found)


def landing(number: int, files: tuple[FileChange, ...]) -> Landing:
    """Return a landing with a made-up id."""
    return Landing(Sha(f"{number:040x}"), files)


def _content(text: str | None) -> Content | None:
    return None if text is None else Content("100644", Sha(sha1(text.encode()).hexdigest()))


def _hunks(old: str, new: str) -> tuple[Hunk, ...]:
    mine, theirs = old.encode().splitlines(), new.encode().splitlines()
    steps = SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes()
    return tuple(
        Hunk(tuple(mine[a:b]), tuple(theirs[c:d])) for tag, a, b, c, d in steps if tag != "equal"
    )
