"""Faults as values: which call or delivery is hit, and what becomes of it.

A fault is a `match` and a `fault` of the control plane (design/GITHUB.md 8). What they hit
is decided in strikes.py.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

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
        """Its name."""
        return str(self.fault["kind"])

    def strikes(self, chance: Callable[[], float]) -> bool:
        """Count a match; whether the fault acts on it."""
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
