"""`upload-impacted-targets`: find the targets that a pull request touches, and send them.

The repository's own build tool finds them. Too many targets cost time, too few let a break through:
what cannot be found out is `ALL`.
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

from bot.uploader import ci
from bot.uploader.transport import Request, RequestFailed, Service

NAMES_MAX = 200_000
BODY_BYTES_MAX = 20 * 1024 * 1024
PATHS = "paths"

_ALL = "ALL"
_Targets = Union[list[str], str]
_TOOL_TIMEOUT_S = 1_800
_OUTPUT_MAX = 500
# As git and build files separate them.
_BUILD_FILES = ("BUILD.bazel", "BUILD")
_EVERYTHING = re.compile(
    r"(?:.*\.bzl|(?:.*/)?(?:MODULE\.bazel|WORKSPACE.*|\.bazelrc|\.bazelversion))"
)


class ToolFailed(Exception):
    """The build tool or git failed; the message says why."""


class Change(NamedTuple):
    """The paths changed between merge base and head; those in `is_new` were added or deleted."""

    base: str
    head: str
    paths: tuple[str, ...]
    is_new: frozenset[str]


class Options(NamedTuple):
    """The tool, the globs for `paths`, the base or an empty text, and what a failed tool does."""

    tool: str
    paths: str
    base: str
    fails: bool


def upload(options: Options, environ: Mapping[str, str], service: Service) -> int:
    """Find the targets and send them for the head; return the exit code.

    A refusal fails the job: otherwise the pull request would wait for its targets in silence.
    """
    pull = ci.pull_request_of(environ)
    if not pull:
        service.log("This run tests no pull request: there are no targets to upload.")
        return 0
    branch = environ.get("GITHUB_BASE_REF", "")
    try:
        targets = _find_targets(options, options.base or f"origin/{branch}", pull["sha"])
    except ToolFailed as failed:
        service.log(f"The touched targets cannot be found: {failed}")
        if options.fails:
            return 1
        targets = _ALL
    except ValueError as invalid:
        service.log(str(invalid))
        return 1
    try:
        about = {
            "repo": ci.repository_of(environ),
            "targetBranch": branch,
            "pr": {"number": int(pull["number"]), "sha": pull["sha"]},
        }
        headers = {"Content-Type": "application/json"}
        answer = service.send(Request("/setImpactedTargets", headers, body_of(about, targets)))
    except RequestFailed as refused:
        service.log(f"The service refused the targets: {refused.text or refused.reason}")
        return 1
    what = "everything" if answer.get("impactsAll") else f"{answer.get('targetCount')} targets"
    service.log(f"#{pull['number']} at {pull['sha'][:8]} touches {what}.")
    return 0


def _find_targets(options: Options, base: str, head: str) -> _Targets:
    """Return the targets touched between merge base and head; none if nothing changed.

    Raises ToolFailed, and ValueError for invalid options.
    """
    rules = _parse_rules(options.paths) if options.tool == PATHS else {}
    change = _change_between(base, head)
    if not change.paths:
        return []
    if options.tool == PATHS:
        return _by_paths(change, rules)
    return TOOLS[options.tool](change)


def body_of(about: Mapping[str, object], targets: _Targets) -> bytes:
    """Return the request's body; too many names become `ALL`."""
    if targets != _ALL and len(targets) <= NAMES_MAX:
        body = json.dumps({**about, "impactedTargets": targets}).encode()
        if len(body) <= BODY_BYTES_MAX:
            return body
    return json.dumps({**about, "impactedTargets": _ALL}).encode()


def _change_between(base: str, head: str) -> Change:
    """Return what the head has changed since it left the base. Raises ToolFailed."""
    merge_base = _run("git", "merge-base", base, head).strip()
    output = _run("git", "diff", "--name-status", "--no-renames", "-z", merge_base, head)
    fields = output.split("\0")[:-1]
    states = dict(zip(fields[1::2], fields[::2]))
    new = frozenset(path for path, state in states.items() if state != "M")
    return Change(merge_base, head, tuple(sorted(states)), new)


def _by_paths(change: Change, rules: Mapping[str, Sequence[str]]) -> _Targets:
    """Return the targets of which a glob matches a changed path."""
    return [
        target
        for target, globs in rules.items()
        if any(is_match(path, each) for each in globs for path in change.paths)
    ]


def _parse_rules(text: str) -> dict[str, list[str]]:
    """Return globs by target, from lines as `web: web/** shared/**`. Raises ValueError."""
    rules: dict[str, list[str]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        target, separator, globs = line.rpartition(": ")
        if not separator or not target.strip() or not globs.split():
            raise ValueError(f"`paths` has the line {line!r}: write `target: glob glob`")
        rules.setdefault(target.strip(), []).extend(globs.split())
    if not rules:
        raise ValueError("`paths` names no target: write `target: glob glob`, one a line")
    return rules


def is_match(path: str, glob: str) -> bool:
    """Return whether a path matches: `*` matches slashes too; `**/` may also match nothing."""
    start = "**/"
    bare = glob[len(start) :] if glob.startswith(start) else glob
    return fnmatch.fnmatchcase(path, glob) or fnmatch.fnmatchcase(path, bare)


def _by_nx(change: Change) -> _Targets:
    """Return the projects that Nx calls affected. Raises ToolFailed."""
    arguments = ("show", "projects", "--affected", "--json", f"--base={change.base}")
    names = _parse_array(_run("npx", "nx", *arguments, f"--head={change.head}"))
    if not all(isinstance(each, str) for each in names):
        raise ToolFailed("nx printed no list of names")
    return [str(each) for each in names]


def by_pnpm(change: Change) -> _Targets:
    """Return the changed packages, and those that depend on them. Raises ToolFailed."""
    output = _run("pnpm", "--filter", f"...[{change.base}]", "list", "--depth", "-1", "--json")
    # Without any package pnpm prints a sentence instead.
    packages = _parse_array(output) if "[" in output else []
    return [str(each["name"]) for each in packages if isinstance(each, dict) and "name" in each]


def _by_bazel(change: Change) -> _Targets:
    """Return the rules that depend on a changed file, or on a package whose files changed.

    An added or deleted file counts for its whole package, because globs match it. Raises
    ToolFailed.
    """
    if any(_EVERYTHING.fullmatch(path) for path in change.paths):
        return _ALL
    package_by_path = {path: _package_of(path) for path in change.paths}
    packages = {package for package in package_by_path.values() if package is not None}
    if not packages:
        return []
    files = set(_query(" + ".join(f"//{each}:*" for each in sorted(packages))))
    touched: set[str] = set()
    for path, package in package_by_path.items():
        if package is None:
            continue
        label = f"//{package}:{posixpath.relpath(path, package or '.')}"
        is_whole = path in change.is_new or posixpath.basename(path) in _BUILD_FILES
        touched |= {f"//{package}:*"} if is_whole else {label} & files
    if not touched:
        return []
    return _query(f"kind(rule, rdeps(//..., set({' '.join(map(_quoted, sorted(touched)))})))")


TOOLS: Mapping[str, Callable[[Change], _Targets]] = {
    "nx": _by_nx,
    "pnpm": by_pnpm,
    "bazel": _by_bazel,
}
"""The tools that need no further options."""


def _package_of(path: str) -> str | None:
    """Return the nearest folder above with a build file in the checkout; None without one."""
    folder = posixpath.dirname(path)
    while True:
        if any(Path(folder, name).is_file() for name in _BUILD_FILES):
            return folder
        if not folder:
            return None
        folder = posixpath.dirname(folder)


def _quoted(label: str) -> str:
    """Return a label as a word of a query. Raises ToolFailed for one that cannot be quoted."""
    if '"' in label:
        raise ToolFailed(f"{label!r} cannot be part of a query")
    return f'"{label}"'


def _query(text: str) -> list[str]:
    """Return the labels that a Bazel query finds. Raises ToolFailed."""
    handle, name = tempfile.mkstemp(suffix=".query")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        return _run("bazel", "query", f"--query_file={name}", "--output=label").split("\n")[:-1]
    finally:
        os.unlink(name)


def _parse_array(output: str) -> list[object]:
    """Return the JSON array that a tool printed, also below warnings. Raises ToolFailed."""
    start = re.search(r"^\[", output, re.MULTILINE)
    try:
        array = json.loads(output[start.start() :]) if start else None
    except ValueError:
        array = None
    if not isinstance(array, list):
        raise ToolFailed(f"it printed no JSON array: {output.strip()[:_OUTPUT_MAX]!r}")
    return array


def _run(*command: str) -> str:
    """Return what a command prints. Raises ToolFailed if it fails."""
    program = shutil.which(command[0])
    if program is None:
        raise ToolFailed(f"there is no {command[0]} on this machine")
    try:
        done = subprocess.run(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_TOOL_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as failed:
        raise ToolFailed(f"{' '.join(command[:2])}: {failed}") from failed
    if done.returncode:
        errors = done.stderr.decode("utf-8", "replace").strip()[-_OUTPUT_MAX:]
        raise ToolFailed(f"{' '.join(command[:2])} ended with {done.returncode}: {errors}")
    return done.stdout.decode("utf-8", "surrogateescape")
