"""Faults that a test plants: a `match` that selects calls or deliveries, and a `fault`.

rest/door.py applies them to calls, deliver.py to deliveries.
"""

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from bot.sandbox.records import Json
from bot.sandbox.refusal import Refusal

CALL_KINDS = {
    "before": "An action of a person (`act`) happens before the call.",
    "fail_after": "The call is served, and answered with `status`.",
    "fail_before": "The call is answered with `status` instead.",
    "graphql_partial": "The last field of the answer is null, with an error.",
    "hang": "The call waits for `s` seconds.",
    "html": "The call is answered with an HTML page instead.",
    "late": "The connection is cut, and the call is served `s` seconds later.",
    "mergeable_null": "Every mergeability is unknown for `s` seconds.",
    "other_tree": "A merge lands another tree than the merged one.",
    "permission_409": "The call is answered with 409 and `message` instead.",
    "primary_limit": "The hourly limit is used up for `s` seconds.",
    "refuse": "The call is answered with `status` and `message` instead.",
    "reset_after": "The call is served, and the connection is cut.",
    "reset_before": "The connection is cut instead.",
    "secondary_limit": "The secondary limit is reached, with `retry_after`.",
    "token_expired": "The token of the call is worthless from now on.",
    "truncate": "Half of the answer is sent.",
}
DELIVERY_KINDS = {
    "delay": "The delivery is sent `s` seconds later.",
    "drop": "The delivery is not sent.",
    "duplicate": "The delivery is sent `n` more times.",
    "reorder": "The delivery is sent at a random moment of the next `window` seconds.",
}
CALL_KEYS = frozenset({"method", "path", "graphql"})
DELIVERY_KEYS = frozenset({"event", "action"})
MATCH_KEYS = CALL_KEYS | DELIVERY_KEYS | {"nth", "times"}

# True while a call is served that must land another tree than the merged one.
lands_other_tree: ContextVar[bool] = ContextVar("lands_other_tree", default=False)


@dataclass(slots=True)
class Fault:
    """One fault and how often it has matched and struck.

    `nth` counts matches from 1; `times` is how often it strikes from then on: once if only `nth`
    is given, always if neither is.
    """

    id: int
    match: Json
    fault: Json
    matched: int = 0
    struck: int = 0

    @property
    def kind(self) -> str:
        """The name of its effect."""
        return str(self.fault["kind"])

    def strikes(self) -> bool:
        """Count a match; return whether the fault strikes."""
        self.matched += 1
        nth = self.match.get("nth")
        times = self.match.get("times", 1 if nth is not None else None)
        is_struck = self.matched >= (nth or 1) and (times is None or self.struck < times)
        self.struck += is_struck
        return is_struck


@dataclass(slots=True)
class Faults:
    """The faults of a world, in the order they were added."""

    listed: list[Fault] = field(default_factory=list)

    def add(self, number: int, value: Json) -> Fault:
        """Add one from `{"match": …, "fault": {"kind": …}}`. Raises Refusal(400)."""
        match, fault = value.get("match", {}), value.get("fault")
        if not isinstance(match, dict) or not isinstance(fault, dict):
            raise Refusal(400, "a fault is {match: {…}, fault: {kind: …}}")
        unknown = set(match) - MATCH_KEYS
        if unknown:
            raise Refusal(400, f"match knows no {', '.join(sorted(unknown))}")
        if fault.get("kind") not in {**CALL_KINDS, **DELIVERY_KINDS}:
            raise Refusal(400, f"no fault is called {fault.get('kind')!r}")
        made = Fault(number, match, fault)
        self.listed.append(made)
        return made

    def clear(self, number: int | None = None) -> None:
        """Remove one fault, or all."""
        self.listed = [one for one in self.listed if number is not None and one.id != number]

    def of_call(self, method: str, path: str, document: str | None) -> list[Fault]:
        """Return the faults that strike a call; `path` is below `/api/v3`.

        `match.path` is a glob (`*` also crosses slashes), `match.graphql` a part of the document.
        """
        return [
            fault
            for fault in self.listed
            if fault.kind in CALL_KINDS
            and _matches_call(fault.match, method, path, document)
            and fault.strikes()
        ]

    def of_delivery(self, event: str, action: str | None) -> Iterator[Fault]:
        """Yield the faults that strike a delivery."""
        for fault in self.listed:
            match = fault.match
            is_match = (
                fault.kind in DELIVERY_KINDS
                and not CALL_KEYS & set(match)
                and match.get("event", event) == event
                and match.get("action", action) == action
            )
            if is_match and fault.strikes():
                yield fault


def _matches_call(match: Json, method: str, path: str, document: str | None) -> bool:
    if DELIVERY_KEYS & set(match):
        return False
    if "method" in match and match["method"].upper() != method:
        return False
    if "graphql" in match:
        return document is not None and match["graphql"] in document
    return "path" not in match or fnmatchcase(path, match["path"])
