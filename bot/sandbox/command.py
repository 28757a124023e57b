"""The git command, run apart from every configuration of this machine."""

import asyncio
import os
import re
from collections.abc import Mapping
from pathlib import Path

VERSION_NEEDED = (2, 38)  # the first with `merge-tree --write-tree`


class GitFailed(Exception):
    """The git command refused; the message is what it output."""


async def run(
    *args: str, cwd: Path, feed: bytes = b"", env: Mapping[str, str] | None = None
) -> bytes:
    """Return the output of `git ARGS`, run without any configuration of this machine.

    Raises GitFailed when it exits with anything but 0.
    """
    code, out, err = await run_raw(*args, cwd=cwd, feed=feed, env=env)
    if code:
        raise GitFailed(err.decode(errors="replace").strip() or f"git {args[0]} exited {code}")
    return out


async def run_raw(
    *args: str, cwd: Path, feed: bytes = b"", env: Mapping[str, str] | None = None
) -> tuple[int, bytes, bytes]:
    """Exit code, output and errors of `git ARGS`."""
    child = await asyncio.create_subprocess_exec(
        "git",
        *args,
        cwd=cwd,
        env={**isolated_environment(), **(env or {})},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await child.communicate(feed)
    return child.returncode or 0, out, err


def isolated_environment() -> dict[str, str]:
    """The environment of every git command: no user or system configuration, no prompts."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
    }


_versions: dict[str, tuple[int, int]] = {}
"""By PATH: each sandbox of a process would ask again."""


async def version(cwd: Path) -> tuple[int, int]:
    """Major and minor version of the git command; (0, 0) where it is missing."""
    path = isolated_environment()["PATH"]
    if path not in _versions:
        _versions[path] = await _version(cwd)
    return _versions[path]


async def _version(cwd: Path) -> tuple[int, int]:
    try:
        output = await run("version", cwd=cwd)
    except OSError:
        return (0, 0)
    found = re.search(rb"(\d+)\.(\d+)", output)
    return (int(found[1]), int(found[2])) if found else (0, 0)
