"""Which calls and deliveries the faults of a world hit, and what becomes of a delivery.

What becomes of a call is done by rest/meddling.py. Chance is the world's own, from its seed.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from fnmatch import fnmatchcase

from bot.sandbox.faults import CALL_KINDS, DELIVERY_KINDS, Fault
from bot.sandbox.records import Json
from bot.sandbox.world import Attempt, World

# Set for the call being served; merging.py lands a wrong tree while it is True.
lands_other_tree: ContextVar[bool] = ContextVar("lands_other_tree", default=False)


def of_call(world: World, method: str, path: str, graphql: str | None) -> list[Fault]:
    """The faults that strike a call; `path` is below `/api/v3`, `graphql` the document.

    `match.path` is a glob (`*` also crosses slashes); `match.graphql` a word of the document.
    """
    return [
        fault
        for fault in world.faults.listed
        if fault.kind in CALL_KINDS
        and _hits_call(fault.match, method, path, graphql)
        and fault.strikes(world.chance.random)
    ]


def _hits_call(match: Json, method: str, path: str, graphql: str | None) -> bool:
    if "event" in match or "action" in match:
        return False
    if "method" in match and match["method"].upper() != method:
        return False
    if "graphql" in match:
        return graphql is not None and match["graphql"] in graphql
    return "path" not in match or fnmatchcase(path, match["path"])


def of_delivery(
    world: World, attempt: Attempt, new_guid: Callable[[World], str]
) -> list[tuple[float, Attempt]]:
    """What becomes of a delivery: (delay in seconds, attempt) for everything to be sent."""
    copies = [(0.0, attempt)]
    for fault in world.faults.listed:
        if fault.kind not in DELIVERY_KINDS or not _hits_delivery(fault.match, attempt):
            continue
        if not fault.strikes(world.chance.random):
            continue
        copies = _strike(world, fault, copies, new_guid)
    return copies


def _strike(
    world: World,
    fault: Fault,
    copies: list[tuple[float, Attempt]],
    new_guid: Callable[[World], str],
) -> list[tuple[float, Attempt]]:
    match fault.kind:
        case "drop":
            return []
        case "duplicate":
            twins = [
                (delay, replace(one, id=world.new_id()))
                for delay, one in copies
                for _ in range(int(fault.fault.get("n", 1)))
            ]
            return copies + twins
        case "delay":
            return [(delay + float(fault.fault.get("s", 60)), one) for delay, one in copies]
        case "reorder":
            window = float(fault.fault.get("window", 10))
            return [(delay + world.chance.random() * window, one) for delay, one in copies]
        case _:
            forged = [_forged(world, fault, one, new_guid) for _, one in copies[:1]]
            return copies + [(0.0, one) for one in forged]


def _hits_delivery(match: Json, attempt: Attempt) -> bool:
    if {"method", "path", "graphql"} & set(match):
        return False
    return (
        match.get("event", attempt.event) == attempt.event
        and match.get("action", attempt.action) == attempt.action
    )


def _forged(world: World, fault: Fault, real: Attempt, new_guid: Callable[[World], str]) -> Attempt:
    how = fault.fault["how"]
    if how == "old_replay":
        return replace(world.attempts[0] if world.attempts else real, id=world.new_id(), headers={})
    # An empty value takes the header away.
    headers = {
        "bad_signature": {"X-Hub-Signature-256": "sha256=" + "0" * 64},
        "sha1_only": {"X-Hub-Signature-256": ""},
        "unsigned": {"X-Hub-Signature-256": "", "X-Hub-Signature": ""},
    }[how]
    return replace(real, id=world.new_id(), guid=new_guid(world), headers=headers)
