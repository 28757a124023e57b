"""The form of an upload: metadata first, then reports, perhaps code owners.

Its bytes are parts of `multipart/form-data` (RFC 7578), read strictly and in one pass. The body
lies in memory, bounded already (`limits.py`).
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser

from aiohttp import web

from service.errors import FieldError, Invalid, Malformed
from service.http import intake
from service.http.errors import HttpRefused
from service.http.intake import Intake, Schema
from service.http.models import common, unknown
from service.testhealth.api.models.uploads import UploadTestResults
from service.testhealth.operations.parsing import SentFile
from service.testhealth.operations.upload_values import UploadMeta

MEDIA_TYPE = "multipart/form-data"

# docs/design/limits.md 1: after expansion, counted while it streams.
EXPANDED_BYTES_MAX = 100 * 1024 * 1024
EXPANSION_RATIO_MAX = 200
EXPANSION_FREE_BYTES = 8 * 1024 * 1024
EXPANSION_STEP_BYTES = 1024 * 1024
GZIP_WINDOW = 16 + zlib.MAX_WBITS

HEAD_BYTES_MAX = 8 * 1024
BOUNDARY_CHARACTERS_MAX = 70
"""RFC 2046, 5.1.1."""
PLAIN_TRANSFER = frozenset({"", "7bit", "8bit", "binary"})


@dataclass(frozen=True, slots=True)
class Part:
    """One part; `filename` None: it has none."""

    name: str
    filename: str | None
    content: bytes


def boundary_of(content_type: str) -> bytes | None:
    """Return what separates the parts, None if the type is not multipart/form-data or lacks it."""
    message = Message()
    message["Content-Type"] = content_type
    if message.get_content_type() != MEDIA_TYPE:
        return None
    boundary = message.get_boundary("")
    if not boundary.isascii() or not 1 <= len(boundary) <= BOUNDARY_CHARACTERS_MAX:
        return None
    return boundary.encode()


def expanded(body: bytes) -> bytes:
    """A body that came as gzip, one layer, unpacked.

    Raises HttpRefused: 413 above 100 MiB, or 8 MiB and 200 times the body, 400 when it is damaged,
    cut or followed by something.
    """
    by_ratio = max(EXPANSION_FREE_BYTES, EXPANSION_RATIO_MAX * len(body))
    bytes_max = min(EXPANDED_BYTES_MAX, by_ratio)
    member = zlib.decompressobj(GZIP_WINDOW)
    content = bytearray()
    rest = body
    try:
        while rest and not member.eof:
            content += member.decompress(rest, EXPANSION_STEP_BYTES)
            rest = member.unconsumed_tail
            if len(content) > bytes_max:
                raise HttpRefused(
                    "body_too_large",
                    "The body expands to more than 100 MiB, or to more than 8 MiB and 200 times "
                    "its size.",
                )
    except zlib.error as damaged:
        raise _broken("the gzip stream is damaged") from damaged
    if not member.eof or member.unused_data:
        raise _broken("the gzip stream ends early or is followed by something")
    return bytes(content)


def parts(body: bytes, boundary: bytes) -> Iterator[Part]:
    """The parts in order, as they are asked for.

    Raises HttpRefused 400 for what is no multipart body, 415 for a part that is encoded again.
    """
    line = b"--" + boundary
    if body.startswith(line):
        at = len(line)
    else:
        at = body.find(b"\r\n" + line)
        if at < 0:
            raise _broken("its boundary does not occur")
        at += len(line) + 2
    while not body.startswith(b"--", at):
        head = _line_end(body, at)
        end = body.find(b"\r\n" + line, head - 2)
        if end < 0:
            raise _broken("its last part does not end")
        yield _part(body, head, end)
        at = end + len(line) + 2


def _line_end(body: bytes, at: int) -> int:
    """Return where the line after a boundary begins; blanks may stand between."""
    end = body.find(b"\r\n", at)
    if end < 0 or body[at:end].strip(b" \t"):
        raise _broken("something follows a boundary on its line")
    return end + 2


def _part(body: bytes, head: int, end: int) -> Part:
    """The part whose headers begin at `head` and whose content ends at `end`."""
    at = body.find(b"\r\n\r\n", head, min(end, head + HEAD_BYTES_MAX) + 4)
    if at < 0 or at > end:
        raise _broken("a part has no headers, or more than 8 KiB of them")
    try:
        headers = HeaderParser().parsestr(body[head:at].decode("utf-8"))
    except UnicodeDecodeError as unreadable:
        raise _broken("the headers of a part are not UTF-8") from unreadable
    encoding = str(headers.get("Content-Transfer-Encoding", "")).strip().lower()
    if encoding not in PLAIN_TRANSFER or "Content-Encoding" in headers:
        raise HttpRefused(
            "unsupported_encoding", "Send each part as it is; a file may be gzip by itself."
        )
    name = headers.get_param("name", header="Content-Disposition")
    if headers.get_content_disposition() != "form-data" or not isinstance(name, str):
        raise _broken("a part does not say its name by Content-Disposition: form-data")
    return Part(name, headers.get_filename(), body[at + 4 : max(end, at + 4)])


def _broken(what: str) -> HttpRefused:
    return HttpRefused("bad_request", f"The body is no multipart/form-data: {what}.")


METADATA = "metadata"
FILE = "file"
CODEOWNERS = "codeowners"

METADATA_BYTES_MAX = 64 * 1024
CODEOWNERS_BYTES_MAX = 3 * 1024 * 1024
FILES_MAX = 100
FILE_NAME_MAX = 1000

NO_FILE = (
    "/file is missing: send each report as a part with a file name, or say in `runner_ends` how"
    " the runner ended."
)

PARTS_MAX = 200
PARTS = (METADATA, FILE, CODEOWNERS)

GZIP = b"\x1f\x8b"
# Magic bytes and where they stand: containers that are not opened.
ARCHIVES = (
    ("zip", 0, b"PK\x03\x04"),
    ("zip", 0, b"PK\x05\x06"),
    ("zstd", 0, b"\x28\xb5\x2f\xfd"),
    ("bzip2", 0, b"BZh"),
    ("xz", 0, b"\xfd7zXZ\x00"),
    ("7z", 0, b"7z\xbc\xaf\x27\x1c"),
    ("rar", 0, b"Rar!\x1a\x07"),
    ("compress", 0, b"\x1f\x9d"),
    ("tar", 257, b"ustar"),
)


@dataclass(frozen=True, slots=True)
class Upload:
    """The parts of a request: the metadata's fields, and the other parts in their order."""

    asked: UploadTestResults
    files: tuple[SentFile, ...]
    codeowners: str | None

    def meta(self) -> UploadMeta:
        """As operations take it."""
        return self.asked.meta(self.codeowners)


def check_headers(request: web.BaseRequest) -> None:
    """Refuse what is no form, and encodings other than gzip. Raises HttpRefused 415."""
    encoding = request.headers.get("Content-Encoding")
    if encoding is not None and encoding.strip().lower() != "gzip":
        raise HttpRefused(
            "unsupported_encoding",
            f"Send the body as it is or as gzip; it came as {encoding[:40]!r}.",
        )
    kind = request.headers.get("Content-Type", "")
    if boundary_of(kind) is None:
        raise HttpRefused(
            "unsupported_media_type",
            f"Send the upload as multipart/form-data with a boundary; it came as {kind[:80]!r}.",
        )


def read(_model: type[common.Request], request: web.BaseRequest, body: bytes) -> Upload:
    """The upload that the body holds.

    Raises HttpRefused: 400 for a broken body, 413 for a part that is too large, 415 for
    archives; InvalidJson and Malformed for the metadata and for parts that are wrong.
    """
    is_packed = "Content-Encoding" in request.headers
    plain = expanded(body) if is_packed else body
    boundary = boundary_of(request.headers.get("Content-Type", "")) or b""
    parts = _parts(plain, boundary)
    if not parts or parts[0].name != METADATA:
        raise _faulty(METADATA, "missing", "must be the first part")
    for name in (METADATA, CODEOWNERS):
        if [each.name for each in parts].count(name) > 1:
            raise _faulty(name, "length", "must come once")
    _check_size(parts[0], METADATA_BYTES_MAX)
    asked = intake.read_json(UploadTestResults, request, parts[0].content)
    if not isinstance(asked, UploadTestResults):
        raise TypeError("a model is read as itself")
    is_needed = not asked.runner_ends
    files = _files(parts, is_packed=is_packed, is_needed=is_needed)
    return Upload(asked, files, _codeowners(parts))


def _parts(body: bytes, boundary: bytes) -> list[Part]:
    found: list[Part] = []
    for part in parts(body, boundary):
        if part.name not in PARTS:
            name = part.name[: unknown.NAME_SHOWN_MAX]
            meant = unknown.nearest(name, PARTS)
            fault = FieldError(common.pointer(name), "unknown", "is no part of this form", meant)
            raise common.refused((fault,))
        found.append(part)
        if len(found) > PARTS_MAX:
            raise _faulty(FILE, "length", f"must come {FILES_MAX} times at most")
    return found


def _files(parts: Sequence[Part], *, is_packed: bool, is_needed: bool) -> tuple[SentFile, ...]:
    """The reports, each with its name; at least one if `is_needed`."""
    files = [each for each in parts if each.name == FILE]
    if not files and is_needed:
        raise Invalid(NO_FILE, code="no_results", members={"files": []})
    if len(files) > FILES_MAX:
        raise _faulty(FILE, "length", f"must come {FILES_MAX} times at most")
    faults = tuple(
        FieldError(f"/{FILE}/{index}", code, message)
        for index, each in enumerate(files)
        for code, message in _faults_of_name(each.filename)
    )
    if faults:
        raise common.refused(faults[: common.ERRORS_MAX])
    for each in files:
        _check_container(each, is_packed=is_packed)
    return tuple(SentFile(each.filename or "", each.content) for each in files)


def _faults_of_name(name: str | None) -> list[tuple[str, str]]:
    """Return what is wrong with the file name of a part: code and sentence."""
    if not name:
        return [("missing", "needs a file name")]
    if len(name) > FILE_NAME_MAX:
        return [("length", f"must have a file name of at most {FILE_NAME_MAX} characters")]
    if not name.isprintable():
        return [("format", "must have a file name without control characters")]
    return []


def _check_container(part: Part, *, is_packed: bool) -> None:
    """Raise HttpRefused 415 for a file that is packed twice, or not by gzip."""
    if is_packed and part.content.startswith(GZIP):
        raise HttpRefused(
            "unsupported_encoding",
            f"{part.filename} is gzip inside of a gzip body; pack one of them.",
        )
    for kind, at, magic in ARCHIVES:
        if part.content.startswith(magic, at):
            raise HttpRefused(
                "unsupported_media_type",
                f"{part.filename} is a {kind} archive; send reports as they are or as gzip.",
            )


def _codeowners(parts: Sequence[Part]) -> str | None:
    """The text of the part of that name, bytes that are no UTF-8 replaced; None without it."""
    part = next((each for each in parts if each.name == CODEOWNERS), None)
    if part is None:
        return None
    _check_size(part, CODEOWNERS_BYTES_MAX)
    return part.content.decode("utf-8-sig", "replace").replace("\0", "\ufffd")


def _check_size(part: Part, bytes_max: int) -> None:
    if len(part.content) > bytes_max:
        raise HttpRefused(
            "body_too_large",
            f"The part {part.name} may have {bytes_max} bytes; this one has more.",
        )


def _faulty(name: str, code: str, message: str) -> Malformed:
    return common.refused((FieldError(f"/{name}", code, message),))


def _content(reference: Schema) -> Schema:
    file = {"type": "string", "format": "binary"}
    form = {
        "type": "object",
        # Without a file the metadata has `runner_ends`: a runner that was killed wrote none.
        "required": [METADATA],
        "properties": {
            METADATA: reference,
            FILE: {"type": "array", "items": file, "maxItems": FILES_MAX},
            CODEOWNERS: {"type": "string"},
        },
    }
    encoding = {METADATA: {"contentType": "application/json"}}
    return {MEDIA_TYPE: {"schema": form, "encoding": encoding}}


FORM = Intake(check_headers, read, _content)
"""The form of an upload, plain or gzip."""
