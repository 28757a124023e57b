"""Find reports by globs, pack them, and put them into requests within the API's limits."""

from __future__ import annotations

import glob
import gzip
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bot.uploader import transport

# Limits of an upload; the last MiB is left for what is sent beside the files.
FILES_MAX = 100
PACKED_BYTES_MAX = 19 * 1024 * 1024
# Tests take at least 100 bytes each, so that 500,000 of them fit.
PLAIN_BYTES_MAX = 48 * 1024 * 1024
# Reports shrink to a tenth at any level; the lower ones take a fraction of the time.
PACKING_LEVEL = 3
GZIP_MAGIC = b"\x1f\x8b"
# Some file systems store even seconds only.
AGE_SLACK_S = 2
ANY_FOLDERS = "**"


class Report(NamedTuple):
    """A file to upload: its name for people, its bytes as gzip, and its unpacked size."""

    name: str
    packed: bytes
    plain_bytes: int


class Reports(NamedTuple):
    """The reports that match, ordered by name, and the names of those that cannot be read."""

    readable: list[Report]
    unread: list[str]


def find_reports(globs: Iterable[str], since_s: float, log: Callable[[str], object]) -> Reports:
    """Return the files that match, each once however many links name it; `**` spans folders.

    A file older than `since_s` (seconds since 1970) was left by an earlier run and is skipped;
    `log` receives a line about it, and about a file that cannot be read.
    """
    names = sorted({each for pattern in globs for each in matching(pattern)})
    paths = {os.path.realpath(name): name for name in reversed(names) if os.path.isfile(name)}
    reports = Reports([], [])
    for path in sorted(paths.values()):
        name = _printable(path)
        try:
            if os.stat(path).st_mtime < since_s - AGE_SLACK_S:
                log(f"{name} is older than this run and was ignored")
                continue
            content = Path(path).read_bytes()
        except OSError as failed:
            log(f"{name} cannot be read ({failed.strerror})")
            reports.unread.append(name)
            continue
        reports.readable.append(_packed_report(name, content))
    return reports


def _packed_report(name: str, content: bytes) -> Report:
    """Return a file as it is uploaded; one that is gzip already stays as it is."""
    if content.startswith(GZIP_MAGIC):
        # Its last bytes name the unpacked size. They may lie; the service counts for itself.
        return Report(name, content, max(len(content), int.from_bytes(content[-4:], "little")))
    return Report(name, gzip.compress(content, PACKING_LEVEL, mtime=0), len(content))


def _printable(path: str) -> str:
    """Return a file's name as text, also if its bytes are not text, with `/` between folders."""
    return os.fsencode(path).decode("utf-8", "replace").replace(os.sep, "/")


def matching(pattern: str) -> Iterator[str]:
    """Yield the names that match; the library's own search follows links, in circles too.

    `**` finds folders that are neither hidden nor links; a link in the pattern is followed.
    """
    segments = pattern.replace(os.sep, "/").split("/")
    if ANY_FOLDERS not in segments:
        yield from glob.iglob(pattern)
        return
    at = segments.index(ANY_FOLDERS)
    rest = segments[at + 1 :] or ["*"]
    # An absolute pattern begins with an empty segment.
    tops = glob.iglob("/".join([*segments[:at], ""])) if at else [""]
    for top in tops:
        for folder in _folders_in(top):
            start = [glob.escape(folder)] if folder or top else []
            yield from matching("/".join([*start, *rest]))


def _folders_in(top: str) -> Iterator[str]:
    """Yield a folder and all below it, without a slash at the end; empty is the current one."""
    for folder, folders, _ in os.walk(top or os.curdir):
        folders[:] = [each for each in folders if not each.startswith(".")]
        yield folder[2:] if not top else folder.rstrip("/")


def batches(reports: Iterable[Report]) -> Iterator[list[Report]]:
    """Yield the reports in groups within the limits, in order; a file is never cut."""
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
    """Return the metadata that joins the uploads of one run.

    The service excuses no failure until all of them have arrived, or if a report is unreadable.
    """
    return {
        "session": transport.unique_id(),
        "session_uploads": uploads,
        "unsent_files": len(unread),
    }


def form(
    meta: Mapping[str, object], batch: Sequence[Report], codeowners: bytes = b""
) -> tuple[str, bytes]:
    """Return Content-Type and bytes of an upload; equal for equal content."""
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
    """Return a file's name as it stands between the quotes of a header."""
    plain = "".join(each if each.isprintable() else "?" for each in name)
    return plain.replace("\\", "\\\\").replace('"', '\\"')
