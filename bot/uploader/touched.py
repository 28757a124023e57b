"""Which targets a pull request touches, asked of the repository's own build tool (UX.md 8).

Too much costs time, too little lets a break through: whatever cannot be told is `ALL`.
"""

from __future__ import annotations

import fnmatch
import json
import os
import posixpath
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Union

ALL = "ALL"
Targets = Union[list[str], str]
TOOL_TIMEOUT_S = 1_800
SAID_MAX = 500
# As git and build files separate them.
BUILD_FILES = ("BUILD.bazel", "BUILD")
EVERYTHING = re.compile(
    r"(?:.*\.bzl|(?:.*/)?(?:MODULE\.bazel|WORKSPACE.*|\.bazelrc|\.bazelversion))"
)


class ToolFailed(Exception):
    """The build tool or git gave no answer; the message says why."""


class Change(NamedTuple):
    """What lies between merge base and head; `is_new` paths were added or deleted."""

    base: str
    head: str
    paths: tuple[str, ...]
    is_new: frozenset[str]


def change_between(base: str, head: str) -> Change:
    """What the head has changed since it left the base. Raises ToolFailed."""
    merge_base = ran("git", "merge-base", base, head).strip()
    said = ran("git", "diff", "--name-status", "--no-renames", "-z", merge_base, head)
    fields = said.split("\0")[:-1]
    states = dict(zip(fields[1::2], fields[::2]))
    new = frozenset(path for path, state in states.items() if state != "M")
    return Change(merge_base, head, tuple(sorted(states)), new)


def by_paths(change: Change, rules: Mapping[str, Sequence[str]]) -> Targets:
    """The targets of which a glob matches a changed path."""
    return [
        target
        for target, globs in rules.items()
        if any(is_match(path, each) for each in globs for path in change.paths)
    ]


def rules_in(text: str) -> dict[str, list[str]]:
    """Target → its globs, of lines as `web: web/** shared/**`. Raises ValueError."""
    rules: dict[str, list[str]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        target, between, globs = line.rpartition(": ")
        if not between or not target.strip() or not globs.split():
            raise ValueError(f"`paths` has the line {line!r}: write `target: glob glob`")
        rules.setdefault(target.strip(), []).extend(globs.split())
    if not rules:
        raise ValueError("`paths` names no target: write `target: glob glob`, one a line")
    return rules


def is_match(path: str, glob: str) -> bool:
    """Whether a path fits: `*` is any run, slashes included; `**/` may also be nothing."""
    start = "**/"
    bare = glob[len(start) :] if glob.startswith(start) else glob
    return fnmatch.fnmatchcase(path, glob) or fnmatch.fnmatchcase(path, bare)


def by_nx(change: Change) -> Targets:
    """The projects that Nx calls affected. Raises ToolFailed."""
    asked = ("show", "projects", "--affected", "--json", f"--base={change.base}")
    found = json_in(ran("npx", "nx", *asked, f"--head={change.head}"))
    if not all(isinstance(each, str) for each in found):
        raise ToolFailed("nx printed no list of names")
    return [str(each) for each in found]


def by_pnpm(change: Change) -> Targets:
    """The packages that changed, and those that depend on them. Raises ToolFailed."""
    said = ran("pnpm", "--filter", f"...[{change.base}]", "list", "--depth", "-1", "--json")
    # Without any package it prints a sentence instead.
    found = json_in(said) if "[" in said else []
    return [str(each["name"]) for each in found if isinstance(each, dict) and "name" in each]


def by_bazel(change: Change) -> Targets:
    """The rules that depend on a changed file, or on a package whose make-up changed.

    A file that came or went counts for its whole package, for globs see it. Raises ToolFailed.
    """
    if any(EVERYTHING.fullmatch(path) for path in change.paths):
        return ALL
    places = {path: package_of(path) for path in change.paths}
    packages = {package for package in places.values() if package is not None}
    if not packages:
        return []
    known = set(query(" + ".join(f"//{each}:*" for each in sorted(packages))))
    asked: set[str] = set()
    for path, package in places.items():
        if package is None:
            continue
        label = f"//{package}:{posixpath.relpath(path, package or '.')}"
        is_whole = path in change.is_new or posixpath.basename(path) in BUILD_FILES
        asked |= {f"//{package}:*"} if is_whole else {label} & known
    if not asked:
        return []
    return query(f"kind(rule, rdeps(//..., set({' '.join(map(quoted, sorted(asked)))})))")


def package_of(path: str) -> str | None:
    """The nearest folder above with a build file, as it is checked out; None without one."""
    folder = posixpath.dirname(path)
    while True:
        if any(Path(folder, name).is_file() for name in BUILD_FILES):
            return folder
        if not folder:
            return None
        folder = posixpath.dirname(folder)


def quoted(label: str) -> str:
    """A label as a word of a query. Raises ToolFailed for one that cannot be."""
    if '"' in label:
        raise ToolFailed(f"{label!r} cannot be asked for")
    return f'"{label}"'


def query(text: str) -> list[str]:
    """The labels that a query finds. Raises ToolFailed."""
    handle, name = tempfile.mkstemp(suffix=".query")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        return ran("bazel", "query", f"--query_file={name}", "--output=label").split("\n")[:-1]
    finally:
        os.unlink(name)


TOOLS: Mapping[str, Callable[[Change], Targets]] = {
    "nx": by_nx,
    "pnpm": by_pnpm,
    "bazel": by_bazel,
}
"""The tools that need nothing said but their name."""


def json_in(said: str) -> list[object]:
    """The array that a tool printed, maybe below warnings. Raises ToolFailed."""
    at = re.search(r"^\[", said, re.MULTILINE)
    try:
        found = json.loads(said[at.start() :]) if at else None
    except ValueError:
        found = None
    if not isinstance(found, list):
        raise ToolFailed(f"it printed no JSON array: {said.strip()[:SAID_MAX]!r}")
    return found


def ran(*command: str) -> str:
    """What a command prints. Raises ToolFailed when it does not end well."""
    program = shutil.which(command[0])
    if program is None:
        raise ToolFailed(f"there is no {command[0]} on this machine")
    try:
        done = subprocess.run(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=TOOL_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as failed:
        raise ToolFailed(f"{' '.join(command[:2])}: {failed}") from failed
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()[-SAID_MAX:]
        raise ToolFailed(f"{' '.join(command[:2])} ended with {done.returncode}: {said}")
    return done.stdout.decode("utf-8", "surrogateescape")
