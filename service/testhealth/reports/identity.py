"""The stable id of a test, and the file paths and names it is made of.

See docs/design/reports.md 7.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha1
from uuid import NAMESPACE_URL, UUID

from service.testhealth.reports.results import CaseResult

# One constant for all formats, so that a test keeps its id when its report changes format.
CONSTANT = "JUNIT_TESTCASE"
CLAIM_PREFIXES = ("headgate:", "trunk:")
VERSION = 5
VERSION_DIGIT = str(VERSION)
# Both spelled once for all: half a million ids are made of one upload.
NAMESPACE = NAMESPACE_URL.bytes
# The two highest bits of this digit are 1 and 0 in every UUID of the kind.
VARIANT_DIGITS = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


@dataclass(frozen=True, slots=True)
class RepositoryKey:
    """Organization slug and `host/owner/name`, both as they were at the test's first sight."""

    org: str
    repo: str


@dataclass(frozen=True, slots=True)
class CaseKey:
    """A report's statements about a test: its fields at full length, missing ones empty.

    `claimed` is the id that the report itself gives, if any. Texts hold no lone surrogates.
    """

    file: str
    classname: str
    parent: str
    name: str
    claimed: str = ""


def id_of(repository: RepositoryKey, test: CaseKey, variant: str = "") -> UUID:
    """The id of a test, the same for ever and everywhere (docs/design/reports.md 7).

    A claimed UUIDv5 is taken as it is; a claim of a known prefix is hashed alone with
    repository and variant; any other claim is ignored.
    """
    owner = f"{repository.org}#{repository.repo}"
    if test.claimed:
        claimed = _uuid5_in(test.claimed)
        if claimed:
            return claimed
        if test.claimed.startswith(CLAIM_PREFIXES):
            text = f"{owner}#{test.claimed}"
            return UUID(_spelled(f"{text}#{variant}" if variant else text))
    base = f"{owner}#{test.file}#{test.classname}#{test.parent}#{test.name}#{CONSTANT}"
    return UUID(_spelled_with(base, variant))


def ids_of(repository: RepositoryKey, cases: Sequence[CaseResult], variant: str = "") -> list[str]:
    """The ids of many cases in their order, as `id_of` has them, spelled."""
    owner = f"{repository.org}#{repository.repo}"
    spelled = partial(_spelled_with, variant=variant) if variant else _spelled
    return [
        str(id_of(repository, key_of(case), variant_of(case, variant)))
        if case.claimed_id or case.variant
        else spelled(f"{owner}#{case.file}#{case.classname}#{case.parent}#{case.name}#{CONSTANT}")
        for case in cases
    ]


def _spelled_with(base: str, variant: str) -> str:
    return _spelled(f"{_spelled(f'{base}#{variant}')}#{variant}" if variant else base)


def _spelled(text: str) -> str:
    """The UUIDv5 of a text as `uuid.uuid5` makes it (RFC 9562, 5.5), in a quarter of the time."""
    made = sha1(NAMESPACE + text.encode(), usedforsecurity=False).hexdigest()
    return (
        f"{made[:8]}-{made[8:12]}-{VERSION_DIGIT}{made[13:16]}"
        f"-{VARIANT_DIGITS[made[16]]}{made[17:20]}-{made[20:32]}"
    )


def key_of(case: CaseResult) -> CaseKey:
    """Return what identity takes of a case."""
    return CaseKey(case.file, case.classname, case.parent, case.name, case.claimed_id)


def variant_of(case: CaseResult, variant: str) -> str:
    """The variant of a case in an upload of this variant: its own project comes behind it."""
    return "/".join(filter(None, (variant, case.variant)))


def aliases_of(
    repository: RepositoryKey, tests: Mapping[UUID, CaseResult], variant: str = ""
) -> dict[UUID, UUID]:
    """Other ids of an upload's tests in nested suites, to the test that each means.

    The id with the outermost suite alone as parent, as other tools make it
    (docs/design/reports.md 7); none that two tests would share, or that is the id of a test itself.
    """
    nested = {
        test: id_of(
            repository,
            replace(key_of(case), parent=case.outermost_suite),
            variant_of(case, variant),
        )
        for test, case in tests.items()
        if case.outermost_suite and not case.claimed_id
    }
    shared = Counter(nested.values())
    return {
        alias: test for test, alias in nested.items() if shared[alias] == 1 and alias not in tests
    }


def is_claim(text: str) -> bool:
    """Return whether an id given by a report counts: an UUIDv5, or a text of a known prefix."""
    return text.startswith(CLAIM_PREFIXES) or _uuid5_in(text) is not None


def _uuid5_in(text: str) -> UUID | None:
    """The UUIDv5 that the whole text spells, in any case."""
    try:
        read = UUID(text)
    except ValueError:
        return None
    return read if read.version == VERSION and str(read) == text.lower() else None


def normalized_file(file: str, source_root: str = "") -> str:
    """The path as identity uses it: forward slashes, below the root, `.` and `a/..` resolved.

    A path that is absolute outside `source_root` stays absolute (see `is_absolute`). Nothing
    is lowercased or trimmed.
    """
    path = _with_slashes(file)
    root = _with_slashes(source_root).rstrip("/")
    if root and path.startswith(f"{root}/"):
        path = path[len(root) :].lstrip("/")
    return resolved(path) if "./" in path or path.endswith("/..") else path


def _with_slashes(path: str) -> str:
    """The path without `file://`, its separators turned forward."""
    return path.removeprefix("file://").replace("\\", "/")


def resolved(path: str) -> str:
    """The path without `.` and without `a/..`; what leads above its start remains."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == ".." and kept and kept[-1] not in ("", ".."):
            kept.pop()
        elif segment != ".":
            kept.append(segment)
    return "/".join(kept)


def is_absolute(file: str) -> bool:
    """Return whether a normalized path names a place on one machine: `/src/a.py`, `C:/src/a.py`."""
    return file.startswith("/") or (file[1:3] == ":/" and file[:1].isalpha())


def masked_name(name: str, masks: Iterable[str]) -> str:
    """The name with what the `*` of the first fitting mask matches replaced by `*`.

    Masks are the repository's opt-in (setting `name_masks`), each with exactly one `*`.
    """
    for mask in masks:
        start, _, end = mask.partition("*")
        if len(name) >= len(start) + len(end) and name.startswith(start) and name.endswith(end):
            return mask
    return name
