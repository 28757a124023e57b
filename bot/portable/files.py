"""The reports of an upload: found by globs, packed, and put into requests that keep the limits."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import NamedTuple

# API.md 8.4, 1.2; what is sent beside the files has room in the last MiB.
FILES_MAX = 100
PACKED_BYTES_MAX = 19 * 1024 * 1024
# Tests take at least 100 bytes each, so that 500,000 of them fit.
PLAIN_BYTES_MAX = 48 * 1024 * 1024
# Reports shrink to a tenth at any level; the lower ones take a fraction of the time.
PACKING_LEVEL = 3
# Some file systems keep even seconds alone.
AGE_SLACK_S = 2


class Report(NamedTuple):
    """A file that is sent: its name as people know it, its bytes as gzip, and how many it has."""

    name: str
    packed: bytes
    plain_bytes: int


def reports_in(
    globs: Iterable[str], since_s: float, told: Callable[[str], object]
) -> Iterator[Report]:
    """The files that match, each once, in the order of their names; `**` spans folders.

    One that is older than `since_s` (seconds since 1970) was left by an earlier run: `told`
    hears of it, as of one that cannot be read.
    """
    names = {each for pattern in globs for each in glob(pattern, recursive=True)}
    for name in sorted(name for name in names if os.path.isfile(name)):
        try:
            if os.stat(name).st_mtime < since_s - AGE_SLACK_S:
                told(f"{name} is older than this run and was ignored")
                continue
            content = Path(name).read_bytes()
        except OSError as failed:
            told(f"{name} cannot be read ({failed.strerror})")
            continue
        is_packed = content.startswith(b"\x1f\x8b")
        packed = content if is_packed else gzip.compress(content, PACKING_LEVEL, mtime=0)
        yield Report(name.replace(os.sep, "/"), packed, len(content))


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
