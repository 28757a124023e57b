"""What no schema can say of a request, so that every wish has a chance to be granted.

Loaded by schemathesis, in a process of its own. Wishes that are meant to be refused are left
as they are.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

import schemathesis

from service.api import openapi, routes
from service.api.strict_json import INTEGER_MAX, INTEGER_MIN

# What is really there: `{"repo": …, "branches": […], "numbers": […]}`.
WORLD: Mapping[str, Any] = json.loads(os.environ["WISHES_WORLD"])

LATER = "2199-01-01T00:00:00Z"

DOCUMENT: Any = openapi.document(routes.ROUTES)
KNOWN = {
    name
    for schema in DOCUMENT["components"]["schemas"].values()
    for name in schema.get("properties", ())
}
"""Every name of a field; others are ignored, if they are JSON within its bounds (API.md 1.2)."""


@schemathesis.hook
def before_call(_context: Any, case: Any, _arguments: Any) -> None:
    """Bring a request within the rules that stand in words alone."""
    meta = case.meta
    if meta is None or not meta.generation.mode.is_positive or not isinstance(case.body, dict):
        return
    body = case.body = without_refused_json(case.body)
    chance = hashlib.sha256(repr(body).encode()).digest()
    # Three of four ask about what is there: otherwise all answers would be 404.
    if chance[0] % 4 and "repo" in body:
        body["repo"] = dict(WORLD["repo"])
        if "targetBranch" in body:
            body["targetBranch"] = WORLD["branches"][chance[1] % len(WORLD["branches"])]
        if isinstance(body.get("pr"), dict):
            body["pr"]["number"] = WORLD["numbers"][chance[2] % len(WORLD["numbers"])]
    if "branch" in body:
        body["branch"] = body.get("targetBranch")
    # A hold ends in the future (API.md 5.2).
    if body.get("until") is not None and case.operation.path.endswith("/addQueueHold"):
        body["until"] = LATER


def without_refused_json(value: Any) -> Any:
    """The same without fields that nobody knows and that no body may hold.

    A number has at most 20 digits, leading zeros included, which no schema can say.
    """
    if isinstance(value, float):
        return round(value, 12) if abs(value) < 1 else value
    if isinstance(value, list):
        return [without_refused_json(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: without_refused_json(each)
        for name, each in value.items()
        if name in KNOWN or not is_refused([name, each])
    }


def is_refused(value: Any) -> bool:
    """Whether JSON's own bounds forbid it, at any depth: NUL, or an integer too large."""
    if isinstance(value, dict):
        return is_refused([*value, *value.values()])
    if isinstance(value, list):
        return any(is_refused(each) for each in value)
    if isinstance(value, str):
        return "\0" in value
    return isinstance(value, int) and not INTEGER_MIN <= value <= INTEGER_MAX
