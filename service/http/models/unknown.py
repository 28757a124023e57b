"""Fields that a request does not know: where they are, and what was probably meant."""

import difflib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import cast, get_args

from pydantic import BaseModel

FOUND = "extra_forbidden"
"""pydantic's finding that a field is unknown."""

NAME_SHOWN_MAX = 100
"""Characters of an unknown name that are shown."""

ABBREVIATION_MIN = 3
"""Letters from which on the beginning of one word alone stands for it."""

Place = Sequence[int | str]


def without(body: Mapping[str, object], places: Sequence[Place]) -> dict[str, object]:
    """Return an object without the members at these places; the object itself stays as it is."""
    return cast("dict[str, object]", _left_of(body, places))


def _left_of(value: object, places: Sequence[Place]) -> object:
    inside: defaultdict[int | str, list[Place]] = defaultdict(list)
    for place in places:
        inside[place[0]].append(place[1:])
    if isinstance(value, list):
        return [_left_of(each, inside[n]) if n in inside else each for n, each in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    gone = {name for name, rest in inside.items() if not all(rest)}
    return {
        name: _left_of(each, inside[name]) if name in inside else each
        for name, each in value.items()
        if name not in gone
    }


def known_at(model: type[BaseModel], place: Place) -> tuple[str, ...]:
    """Return the names of the fields of an object in a request, as they are sent."""
    holder: type[BaseModel] | None = model
    for part in place:
        if isinstance(part, str) and holder is not None:
            holder = _parts_of(holder).get(part)
    return () if holder is None else tuple(_parts_of(holder))


def _parts_of(model: type[BaseModel]) -> dict[str, type[BaseModel] | None]:
    return {
        field.alias or name: _model_in(field.annotation)
        for name, field in model.model_fields.items()
    }


def _model_in(kind: object) -> type[BaseModel] | None:
    """Return the model that a type holds, alone, optional or in a list."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    return next((found for each in get_args(kind) if (found := _model_in(each))), None)


def nearest(given: str, words: tuple[str, ...]) -> str | None:
    """The word somebody probably meant, if one is near or begins so, in any letter case."""
    by_lower = {word.lower(): word for word in words}
    asked = given.lower()[:100]
    found = difflib.get_close_matches(asked, by_lower, n=1)
    if not found and len(asked) >= ABBREVIATION_MIN:
        found = [word for word in by_lower if word.startswith(asked)]
    return by_lower[found[0]] if len(found) == 1 else None
