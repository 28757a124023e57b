"""The files of the checkout, as the rules read them."""

import ast
import fnmatch
import functools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("bot", "service")


@dataclass(frozen=True, slots=True)
class Source:
    """A Python file: path from the root, with slashes, and its text."""

    path: str
    text: str

    @property
    def tree(self) -> ast.Module:
        """The parsed text."""
        return parsed(self.text)

    @property
    def nodes(self) -> Mapping[type[ast.AST], list[ast.AST]]:
        """The nodes of the tree by their kind, which is a leaf of the grammar."""
        return walked(self.text)


@functools.lru_cache(maxsize=4)
def parsed(text: str) -> ast.Module:
    """The text as a tree; every rule reads the same one."""
    return ast.parse(text)


@functools.lru_cache(maxsize=4)
def walked(text: str) -> Mapping[type[ast.AST], list[ast.AST]]:
    """The nodes of the text's tree by kind: a rule looks at few kinds, and most nodes are none."""
    found = defaultdict[type[ast.AST], list[ast.AST]](list)
    for node in ast.walk(parsed(text)):
        found[type(node)].append(node)
    return found


def sources(*folders: str, root: Path = ROOT) -> Iterator[Source]:
    """Every Python file of these folders, in order."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            yield Source(path.relative_to(root).as_posix(), path.read_text("utf-8"))


def texts(root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """(path, text) of every file that is not ignored; what is not UTF-8 is left out."""
    ignored = ignore_patterns(root)
    waiting = [root]
    while waiting:
        for path in sorted(waiting.pop().iterdir()):
            if path.name == ".git" or is_ignored(path, ignored):
                continue
            if path.is_dir():
                waiting.append(path)
                continue
            try:
                yield path.relative_to(root).as_posix(), path.read_text("utf-8")
            except UnicodeDecodeError:
                continue


def ignore_patterns(root: Path = ROOT) -> list[str]:
    """The patterns of .gitignore: ours are plain names, so no more of its grammar is known."""
    lines = (root / ".gitignore").read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def is_ignored(path: Path, patterns: list[str]) -> bool:
    """Whether git would leave the path out; only its last part is looked at."""
    names = [path.name, f"{path.name}/"] if path.is_dir() else [path.name]
    return any(fnmatch.fnmatch(name, pattern) for name in names for pattern in patterns)


def is_in(path: str, *folders: str) -> bool:
    """Whether the path is one of these, or lies in one of them."""
    return any(PurePosixPath(path).is_relative_to(folder) for folder in folders)
