"""Choose the tests that CI should run first, by what its pull requests change and have failed.

The order is a guess and nothing more: it excuses and blames no test (docs/design/live-tests.md 5).
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import NamedTuple

from service.testhealth.early_failures import CaseNames
from service.testhealth.reports import classes


class SuspectedBecause(StrEnum):
    """Why a test is run first, the strongest reason first.

    FAILED_BEFORE: it failed for these pull requests in the last 7 days. CHANGED: a pull request
    changes its file. NAMED_AFTER_CHANGE: its file or class has the name of a changed file.
    BESIDE_CHANGE: its file is in the folder of a changed one.
    """

    FAILED_BEFORE = "failed_before"
    CHANGED = "changed"
    NAMED_AFTER_CHANGE = "named_after_change"
    BESIDE_CHANGE = "beside_change"


@dataclass(frozen=True, slots=True)
class SuspectedTest:
    """A test to run first."""

    test_id: str
    test: CaseNames
    because: SuspectedBecause


class CasePlace(NamedTuple):
    """The file and the class of some tests, as reports name them; empty when unknown."""

    file: str
    classname: str


PLACES_MAX = 200
"""Places of which tests are suspected by changes; those of the strongest reasons come first."""

PATHS_MAX = 1000
"""Changed paths that are compared; a change of more says little about single tests."""

STEM_MIN = 3
"""Shorter names of files are in too many names of tests."""

_STEMS_OF_ALL = frozenset({"__init__", "app", "conftest", "index", "init", "main", "mod", "setup"})
_OF_TESTS = re.compile(r"^tests?_|[._-]?(?:tests?|specs?)$", re.IGNORECASE)
_WORDS = re.compile(r"[./:$\\]+")


def places_by_changes(
    paths: Sequence[str], places: Iterable[CasePlace]
) -> dict[CasePlace, SuspectedBecause]:
    """Return the places that changed paths make suspect, the strongest reason first."""
    paths = paths[:PATHS_MAX]
    changed = frozenset(paths)
    folders = {str(PurePosixPath(path).parent) for path in paths} - {"."}
    stems = {_stem(path) for path in paths} - _STEMS_OF_ALL
    stems = {each for each in stems if len(each) >= STEM_MIN}
    found: dict[SuspectedBecause, list[CasePlace]] = {each: [] for each in SuspectedBecause}
    for place in places:
        because = _because(place, changed, stems, folders)
        if because is not None:
            found[because].append(place)
    chosen = [(place, because) for because, each in found.items() for place in sorted(each)]
    return dict(chosen[:PLACES_MAX])


def _because(
    place: CasePlace, changed: Collection[str], stems: Collection[str], folders: Collection[str]
) -> SuspectedBecause | None:
    file = place.file
    if file in changed or _is_in_changed(place, changed):
        return SuspectedBecause.CHANGED
    names = {_stem(file)} if file else {_bare(each) for each in _WORDS.split(place.classname)}
    if names & set(stems):
        return SuspectedBecause.NAMED_AFTER_CHANGE
    if file and str(PurePosixPath(file).parent) in folders:
        return SuspectedBecause.BESIDE_CHANGE
    return None


def _is_in_changed(place: CasePlace, changed: Collection[str]) -> bool:
    """Return whether a changed file may be that of the place, which may lack its first folders."""
    if place.file:
        return any(path.endswith(f"/{place.file}") for path in changed)
    return any(classes.may_hold(path, place.classname) for path in changed)


def _stem(path: str) -> str:
    """Return the name of a file without its extension and what marks a test: `cart`."""
    name = path.rpartition("/")[2]
    return _bare(name[: name.index(".", 1)] if "." in name[1:] else name)


def _bare(name: str) -> str:
    return _OF_TESTS.sub("", name).lower()
