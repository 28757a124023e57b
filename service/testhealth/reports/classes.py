"""Find where a test's class may stand among the files of a repository.

Asked of tests whose report names no file.

See docs/design/reports.md 9; docs/design/evidence.md 4.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

BETWEEN = re.compile(r"\.|::|/")


def may_hold(path: str, classname: str) -> bool:
    """Return whether a file may hold a class: `a.b.C` in one that ends in `a/b/C.*` or `a/b.py`.

    A nested class (`C$D`) stands where its outer one does.
    """
    names, bare = _names_of(classname), _stem(path).split("/")
    return _ends(bare, names) or (path.endswith(".py") and _ends(bare, names[:-1]))


@dataclass(frozen=True, slots=True)
class Tree:
    """The files of a repository, by the last name of their path without its extension."""

    by_stem: dict[str, tuple[str, ...]]

    def file_of(self, classname: str) -> str:
        """The one file that may hold the class; empty when there is none, or several."""
        near = (self.by_stem.get(name, ()) for name in _names_of(classname)[-2:])
        candidates = {file for files in near for file in files if may_hold(file, classname)}
        return candidates.pop() if len(candidates) == 1 else ""


def tree_of(files: Iterable[str]) -> Tree:
    """The files, ready to be asked."""
    by_stem: dict[str, list[str]] = {}
    for file in files:
        by_stem.setdefault(_stem(file).rpartition("/")[2], []).append(file)
    return Tree({name: tuple(paths_of_stem) for name, paths_of_stem in by_stem.items()})


def _names_of(classname: str) -> list[str]:
    return [name for name in BETWEEN.split(classname.partition("$")[0]) if name]


def _stem(file: str) -> str:
    """The path without the extension of its last name."""
    folder, slash, name = file.rpartition("/")
    return f"{folder}{slash}{name.rpartition('.')[0] or name}"


def _ends(names: Sequence[str], ending: Sequence[str]) -> bool:
    return bool(ending) and list(names[-len(ending) :]) == list(ending)
