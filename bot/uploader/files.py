"""The reports of an upload: found by globs, packed, and put into requests that keep the limits."""

from __future__ import annotations

import glob
import gzip
import hashlib
import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

# API.md 8.4, 1.2; what is sent beside the files has room in the last MiB.
FILES_MAX = 100
PACKED_BYTES_MAX = 19 * 1024 * 1024
# Tests take at least 100 bytes each, so that 500,000 of them fit.
PLAIN_BYTES_MAX = 48 * 1024 * 1024
# Reports shrink to a tenth at any level; the lower ones take a fraction of the time.
PACKING_LEVEL = 3
PACKED = b"\x1f\x8b"
# Some file systems keep even seconds alone.
AGE_SLACK_S = 2
ANY_FOLDERS = "**"


class Report(NamedTuple):
    """A file that is sent: its name as people know it, its bytes as gzip, and how many it has."""

    name: str
    packed: bytes
    plain_bytes: int


class Found(NamedTuple):
    """The reports that there are, in the order of their names, and the names of unread ones."""

    reports: list[Report]
    unread: list[str]


def reports_in(globs: Iterable[str], since_s: float, told: Callable[[str], object]) -> Found:
    """The files that match, each once, whatever links name it; `**` spans folders.

    One that is older than `since_s` (seconds since 1970) was left by an earlier run: `told`
    hears of it, as of one that cannot be read.
    """
    names = sorted({each for pattern in globs for each in matching(pattern)})
    files = {os.path.realpath(name): name for name in reversed(names) if os.path.isfile(name)}
    found = Found([], [])
    for name in sorted(files.values()):
        try:
            if os.stat(name).st_mtime < since_s - AGE_SLACK_S:
                told(f"{shown(name)} is older than this run and was ignored")
                continue
            content = Path(name).read_bytes()
        except OSError as failed:
            told(f"{shown(name)} cannot be read ({failed.strerror})")
            found.unread.append(shown(name))
            continue
        if content.startswith(PACKED):
            # How much it is unpacked stands in its last bytes; they may lie, the service counts.
            plain_bytes = max(len(content), int.from_bytes(content[-4:], "little"))
            found.reports.append(Report(shown(name), content, plain_bytes))
            continue
        packed = gzip.compress(content, PACKING_LEVEL, mtime=0)
        found.reports.append(Report(shown(name), packed, len(content)))
    return found


def shown(name: str) -> str:
    """A file's name as text everywhere, also where its bytes are not."""
    return os.fsencode(name).decode("utf-8", "replace").replace(os.sep, "/")


def matching(pattern: str) -> Iterator[str]:
    """The names that match; the library's own search follows links, in circles too.

    `**` finds folders that are not hidden and no links; a link that the pattern names is followed.
    """
    segments = pattern.replace(os.sep, "/").split("/")
    if ANY_FOLDERS not in segments:
        yield from glob.iglob(pattern)
        return
    at = segments.index(ANY_FOLDERS)
    behind = segments[at + 1 :] or ["*"]
    # Before an absolute pattern stands an empty segment.
    tops = glob.iglob("/".join([*segments[:at], ""])) if at else [""]
    for top in tops:
        for folder in folders_in(top):
            start = [glob.escape(folder)] if folder or top else []
            yield from matching("/".join([*start, *behind]))


def folders_in(top: str) -> Iterator[str]:
    """A folder and all in it, however deep, without a slash at the end; none: where one stands."""
    for folder, folders, _ in os.walk(top or os.curdir):
        folders[:] = [each for each in folders if not each.startswith(".")]
        yield folder[2:] if not top else folder.rstrip("/")


def batches(reports: Iterable[Report]) -> Iterator[list[Report]]:
    """The reports in uploads that keep the limits, in order; a file is never cut."""
    batch: list[Report] = []
    for report in reports:
        packed = sum(len(each.packed) for each in batch) + len(report.packed)
        plain = sum(each.plain_bytes for each in batch) + report.plain_bytes
        is_full = len(batch) == FILES_MAX or packed > PACKED_BYTES_MAX or plain > PLAIN_BYTES_MAX
        if batch and is_full:
            yield batch
            batch = []
        batch.append(report)
    if batch:
        yield batch


def session_of(uploads: int, unread: Sequence[str]) -> dict[str, object]:
    """What each upload says of all that this run of the sender uploads.

    Nothing is excused until all of them have arrived, or while a report could not be read.
    """
    return {"session": uuid.uuid4().hex, "session_uploads": uploads, "unsent_files": len(unread)}


def form(
    meta: Mapping[str, object], batch: Sequence[Report], codeowners: bytes = b""
) -> tuple[str, bytes]:
    """Content-Type and bytes of an upload; the same again for the same content."""
    named = [("metadata", json.dumps(meta).encode())]
    named += [(f'file"; filename="{quoted(each.name)}', each.packed) for each in batch]
    named += [("codeowners", codeowners)] if codeowners else []
    digest = hashlib.sha256(b"".join(content for _, content in named)).hexdigest()
    boundary = f"headgate-{digest[:40]}"
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode()
        + content
        + b"\r\n"
        for name, content in named
    ]
    body = b"".join([*parts, f"--{boundary}--\r\n".encode()])
    return f"multipart/form-data; boundary={boundary}", body


def quoted(name: str) -> str:
    """A file's name inside of the quotes of a header."""
    plain = "".join(each if each.isprintable() else "?" for each in name)
    return plain.replace("\\", "\\\\").replace('"', '\\"')
