"""Landings that a merge result would take back, and what says that this is meant.

Values that the provider, the queue and its store share. Rules: docs/design/undone-work.md.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from service.vocabulary import RepoRef, Sha

LABEL = "headgate:undoes"
"""The label by which people declare that a pull request takes back what it takes back."""

GENERATED = (
    *("*/package-lock.json", "*/npm-shrinkwrap.json", "*/pnpm-lock.yaml", "*/go.sum", "*.lock"),
    *("*/bun.lockb", "*/gradle.lockfile", "*/packages.lock.json"),
    *("*.snap", "*.min.js", "*.min.css", "*.map", "*.generated.*"),
    *("*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py", "*.pb.go", "*.pb.cc", "*.pb.h"),
    *("*/vendor/*", "*/node_modules/*", "*/dist/*"),
)
"""Globs for paths of files that no person writes; `*` is any run, slashes included."""

_GIT = re.compile(r"\bThis reverts commit ([0-9a-f]{7,64})\b")
_GITHUB = re.compile(r"^Reverts (?:([\w.-]+/[\w.-]+))?#(\d{1,10})\b", re.MULTILINE | re.IGNORECASE)
_TITLE = re.compile(r'^(Revert|Reapply) "(.+)"(?: \(#\d+\))?\r?$', re.MULTILINE)
_NUMBERED = re.compile(r" \(#\d+\)$")


@dataclass(frozen=True, slots=True)
class Declaration:
    """Landings that a pull request says it takes back.

    By the numbers of their pull requests, beginnings of commit ids, and titles. It guards against
    accidents, not against attacks: its author may write it, and it counts for the landings that it
    names and for no other. `covers_all`: whichever they are.
    """

    numbers: frozenset[int] = frozenset()
    commits: frozenset[str] = frozenset()
    titles: frozenset[str] = frozenset()
    covers_all: bool = False

    @classmethod
    def of(cls, texts: Sequence[str], repo: RepoRef) -> "Declaration":
        """Return what texts of a pull request declare, by the sentences of git and of GitHub."""
        commits = {sha for text in texts for sha in _GIT.findall(text)}
        numbers = {
            int(number)
            for text in texts
            for slug, number in _GITHUB.findall(text)
            if not slug or slug.lower() == repo.slug.lower()
        }
        titles = {
            _plain(title if verb == "Revert" else f'Revert "{title}"')
            for text in texts
            for verb, title in _TITLE.findall(text)
        }
        return cls(frozenset(numbers), frozenset(commits), frozenset(titles))

    def names(self, commits: Sequence[Sha], number: int | None, title: str) -> bool:
        """Return whether it names a landing, whose commits, pull request and title these are."""
        if self.covers_all or number in self.numbers:
            return True
        if title and _plain(title) in self.titles:
            return True
        return any(sha.startswith(start) for sha in commits for start in self.commits)


NOTHING_DECLARED = Declaration()


@dataclass(frozen=True, slots=True)
class LandedWork:
    """A landing, as a pull request that takes it back is told of it.

    `number` is that of its pull request, None if it is not known to have one. `commits`: it and the
    first of those that came with it. `lines` of it would be gone, of which `shown` are some, in
    these `paths`. `is_ahead`: it has yet to land, as the same test branch has it.
    """

    commit: Sha
    number: int | None
    title: str
    author: str
    commits: tuple[Sha, ...] = ()
    lines: int = 0
    shown: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    is_ahead: bool = False


@dataclass(frozen=True, slots=True)
class WorkJudged:
    """A judgement of the merge of one head onto one commit, against what landed before.

    `undone`, newest first, are without those that commits of the head itself declare. `has_landed`:
    the merge changes nothing because its work is in already, by the landing `landed_by` if one is
    known. `trouble`: why it could not be judged, in words; `later`: its test branch may be.
    """

    head: Sha
    tip: Sha
    undone: tuple[LandedWork, ...] = ()
    has_landed: bool = False
    landed_by: LandedWork | None = None
    trouble: str = ""
    later: bool = False


def _plain(title: str) -> str:
    """Return a title without the number that a squash appends."""
    return _NUMBERED.sub("", title)
