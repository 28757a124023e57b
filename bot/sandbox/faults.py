"""Faults of the control plane: a `match` that selects calls or deliveries, and a `fault`.

rest/fault_effects.py applies them to calls, deliver.py to deliveries.
"""

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from bot.sandbox.records import Json
from bot.sandbox.refusal import Refusal

CALL_KINDS = frozenset(
    {
        "before",
        "fail_before",
        "fail_after",
        "hang",
        "reset_before",
        "reset_after",
        "truncate",
        "html",
        "primary_limit",
        "secondary_limit",
        "permission_409",
        "refuse",
        "mergeable_null",
        "other_tree",
        "graphql_partial",
        "token_expired",
        "suspended",
    }
)
DELIVERY_KINDS = frozenset({"drop", "duplicate", "delay", "reorder", "forge"})
FORGERIES = frozenset({"bad_signature", "sha1_only", "unsigned", "old_replay"})
MATCH_KEYS = frozenset(
    {"method", "path", "graphql", "event", "action", "nth", "times", "probability"}
)


# True while a call is served that must land another tree than the merged one.
lands_other_tree: ContextVar[bool] = ContextVar("lands_other_tree", default=False)


@dataclass(slots=True)
class Fault:
    """One fault and how often it has matched and struck.

    `nth` counts matching calls from 1; `times` is how often it strikes from then on, for ever
    when None, once when only `nth` is given.
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

    def strikes(self, chance: Callable[[], float]) -> bool:
        """Count a match; return whether the fault strikes."""
        self.matched += 1
        nth = self.match.get("nth")
        times = self.match.get("times", 1 if nth is not None else None)
        if nth is not None and self.matched < nth:
            return False
        if times is not None and self.struck >= times:
            return False
        if chance() >= self.match.get("probability", 1.0):
            return False
        self.struck += 1
        return True


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
        if fault.get("kind") not in CALL_KINDS | DELIVERY_KINDS:
            raise Refusal(400, f"no fault is called {fault.get('kind')!r}")
        if fault["kind"] == "forge" and fault.get("how") not in FORGERIES:
            raise Refusal(400, f"forge needs how: {', '.join(sorted(FORGERIES))}")
        made = Fault(number, match, fault)
        self.listed.append(made)
        return made

    def clear(self, number: int | None = None) -> None:
        """Remove one fault, or all."""
        self.listed = [one for one in self.listed if number is not None and one.id != number]

    def of_call(
        self, chance: Callable[[], float], method: str, path: str, document: str | None
    ) -> list[Fault]:
        """Return the faults that strike a call; `path` is below `/api/v3`.

        `match.path` is a glob (`*` also crosses slashes), `match.graphql` a part of the document.
        """
        return [
            fault
            for fault in self.listed
            if fault.kind in CALL_KINDS
            and _matches_call(fault.match, method, path, document)
            and fault.strikes(chance)
        ]

    def of_delivery(
        self, chance: Callable[[], float], event: str, action: str | None
    ) -> Iterator[Fault]:
        """Yield the faults that strike a delivery."""
        for fault in self.listed:
            match = fault.match
            is_hit = (
                fault.kind in DELIVERY_KINDS
                and not {"method", "path", "graphql"} & set(match)
                and match.get("event", event) == event
                and match.get("action", action) == action
            )
            if is_hit and fault.strikes(chance):
                yield fault


def _matches_call(match: Json, method: str, path: str, document: str | None) -> bool:
    if "event" in match or "action" in match:
        return False
    if "method" in match and match["method"].upper() != method:
        return False
    if "graphql" in match:
        return document is not None and match["graphql"] in document
    return "path" not in match or fnmatchcase(path, match["path"])
