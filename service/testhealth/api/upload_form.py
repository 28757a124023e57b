"""The form of an upload: metadata first, then reports, perhaps code owners."""

from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web

from service.errors import FieldError, Malformed
from service.http import intake
from service.http.errors import HttpRefused
from service.http.intake import Intake, Schema
from service.http.models import common, unknown
from service.testhealth.api import multipart
from service.testhealth.api.models.uploads import UploadTestResults
from service.testhealth.api.multipart import Part
from service.testhealth.operations.parsing import SentFile
from service.testhealth.operations.upload_values import UploadMeta

METADATA = "metadata"
FILE = "file"
CODEOWNERS = "codeowners"

METADATA_BYTES_MAX = 64 * 1024
CODEOWNERS_BYTES_MAX = 3 * 1024 * 1024
FILES_MAX = 100
FILE_NAME_MAX = 1000

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
    """What was asked: the metadata's fields, and the other parts in their order."""

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
    if multipart.boundary_of(kind) is None:
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
    plain = multipart.expanded(body) if is_packed else body
    boundary = multipart.boundary_of(request.headers.get("Content-Type", "")) or b""
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
    return Upload(asked, _files(parts, is_packed=is_packed), _codeowners(parts))


def _parts(body: bytes, boundary: bytes) -> list[Part]:
    parts: list[Part] = []
    for part in multipart.parts(body, boundary):
        if part.name not in PARTS:
            name = part.name[: unknown.NAME_SHOWN_MAX]
            meant = unknown.nearest(name, PARTS)
            fault = FieldError(common.pointer(name), "unknown", "is no part of this form", meant)
            raise common.refused((fault,))
        parts.append(part)
        if len(parts) > PARTS_MAX:
            raise _faulty(FILE, "length", f"must come {FILES_MAX} times at most")
    return parts


def _files(parts: Sequence[Part], *, is_packed: bool) -> tuple[SentFile, ...]:
    """The reports, each with its name."""
    files = [each for each in parts if each.name == FILE]
    if not files:
        raise _faulty(FILE, "missing", "is required: a part with a file name")
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
    """What is wrong with the file name of a part: code and sentence."""
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
        "required": [METADATA, FILE],
        "properties": {
            METADATA: reference,
            FILE: {"type": "array", "items": file, "minItems": 1, "maxItems": FILES_MAX},
            CODEOWNERS: {"type": "string"},
        },
    }
    encoding = {METADATA: {"contentType": "application/json"}}
    return {multipart.MEDIA_TYPE: {"schema": form, "encoding": encoding}}


FORM = Intake(check_headers, read, _content)
"""The form of an upload, plain or gzip."""
