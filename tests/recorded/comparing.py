"""Where the stand-in differs from what GitHub was recorded to do: one line for each difference.

Kinds of calls and deliveries, fields with the types and words of their values, and facts about
order and effect, each read from both sides by the same function.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from tests.recorded import ordering
from tests.recorded.make import is_address
from tests.recorded.recordings import Recording, Sent

NAMED = {
    "account": {"login", "node_id"},
    "repository": {"full_name", "fork"},
    "App": {"slug", "events"},
    "label": {"color", "default"},
    "commit": {"commit", "parents"},
    "pull request": {"draft", "head", "base"},
}
"""Objects that are the same wherever they occur, and fields by which they are recognized."""

WORDS = {"action", "state", "status", "conclusion", "type", "mergeable_state", "reason"}
"""Fields with a word of GitHub. A word that the stand-in alone sends is a difference; that it did
not send one of GitHub's may only mean that no act led to it."""
KEYED = frozenset({"permissions"})
"""Objects whose fields are settings of an installation, not of a message."""

Shape = dict[str, set[str]]


def differences(github: Recording, imitated: Iterable[Recording]) -> set[str]:
    """Return a line for each difference."""
    own = [entry for one in imitated for entry in one.entries]
    joined = Recording("", "", tuple(own))
    return {
        *_of_calls(github, joined),
        *_of_deliveries(github, joined),
        *_of_shapes(_shapes(github), _shapes(joined)),
        *_of_facts(github, list(imitated)),
    }


def _of_calls(github: Recording, own: Recording) -> Iterator[str]:
    recorded = {one.kind for one in github.calls if one.status is not None}
    given = {one.kind for one in own.calls if one.status is not None}
    done = {kind.rpartition(" ")[0] for kind in given}
    for kind in recorded - given:
        call, _, _ = kind.rpartition(" ")
        statuses = sorted(
            other.rpartition(" ")[2] for other in given if other.startswith(f"{call} ")
        )
        said = f"the stand-in answers {', '.join(statuses)}" if call in done else "is not compared"
        yield f"call {kind}: {said}"
    for kind in given - recorded:
        yield f"call {kind}: GitHub was not recorded to answer so"


def _of_deliveries(github: Recording, own: Recording) -> Iterator[str]:
    recorded = {one.kind for one in github.deliveries}
    sent = {one.kind for one in own.deliveries}
    yield from (f"delivery {kind}: is not compared" for kind in recorded - sent)
    yield from (f"delivery {kind}: GitHub was not recorded to send it" for kind in sent - recorded)


def _shapes(recording: Recording) -> dict[str, Shape]:
    """Fields of each kind of message and of each named object, with the types of their values."""
    found: dict[str, Shape] = defaultdict(lambda: defaultdict(set))
    for one in recording.entries:
        if isinstance(one, Sent):
            _walk(found, f"delivery {one.kind}", "", one.payload)
        elif one.status is not None and one.status < 400:
            _walk(found, f"answer {one.kind}", "", one.answer)
    return found


def _walk(found: dict[str, Shape], where: str, path: str, value: Any) -> None:
    if isinstance(value, dict):
        name = _name_of(value) if path else None
        if name is not None:
            found[where][path].add(name)
            where, path = (f"{name} of a push", "") if _is_of_push(where, name) else (name, "")
        for key, each in value.items():
            if is_address(key):
                continue
            inner = f"{path}.{key}" if path else key
            found[where][inner].add(_type_of(key, each))
            if key not in KEYED:
                _walk(found, where, inner, each)
    elif isinstance(value, list):
        for each in value:
            found[where][f"{path}[]"].add(_type_of("", each))
            _walk(found, where, f"{path}[]", each)


def _is_of_push(where: str, name: str) -> bool:
    return where in ("delivery push", "repository of a push") and name in ("repository", "account")


def _name_of(value: dict[str, Any]) -> str | None:
    return next((name for name, fields in NAMED.items() if fields <= value.keys()), None)


def _type_of(key: str, value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"' if key in WORDS else "text"
    kinds = {dict: "object", list: "list", bool: "flag", int: "number", type(None): "null"}
    return kinds[type(value)]


def _of_shapes(github: dict[str, Shape], own: dict[str, Shape]) -> Iterator[str]:
    for where in github.keys() & own.keys():
        theirs, ours = github[where], own[where]
        for path in _fields(theirs, ours):
            yield f"{where}: {path} is sent by GitHub only"
        for path in _fields(ours, theirs):
            yield f"{where}: {path} is sent by the stand-in only"
        for path in theirs.keys() & ours.keys():
            yield from _of_types(f"{where}: {path}", theirs[path], ours[path])


def _fields(these: Shape, those: Shape) -> Iterator[str]:
    """Fields that only one side sends, of objects and members of lists that both send."""
    for path in these.keys() - those.keys():
        parent = path.rpartition(".")[0]
        if not path.endswith("[]") and (not parent or parent in those):
            yield path


def _of_types(what: str, theirs: set[str], ours: set[str]) -> Iterator[str]:
    for kind in theirs - ours:
        if not kind.startswith('"'):
            yield f"{what} is {kind} from GitHub only"
    for kind in ours - theirs:
        yield f"{what} is {kind} from the stand-in only"


def _of_facts(github: Recording, imitated: list[Recording]) -> Iterator[str]:
    for name, fact in ordering.FACTS.items():
        theirs = fact(github)
        ours = {word for one in imitated for word in fact(one)}
        yield from (f"fact {name}: {word} at GitHub only" for word in theirs - ours)
        yield from (f"fact {name}: {word} in the stand-in only" for word in ours - theirs)
