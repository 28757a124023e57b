"""What no schema can say of a request, so that every wish has a chance to be granted.

Loaded by schemathesis, in a process of its own. ReadOptions that are meant to be refused are left
as they are.
"""

import copy
import hashlib
import itertools
import json
import os
import re
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import schemathesis

from service.http import repeats
from service.http.strict_json import INTEGER_MAX, INTEGER_MIN

# What is really there: `{"repo": …, "branches": […], "numbers": […], "tests": […]}`.
WORLD: Mapping[str, Any] = json.loads(os.environ["WISHES_WORLD"])

OWN_TOKEN = os.environ["WISHES_TOKEN"][len("hgt_") :][:10]
OTHER_TOKEN = "0" * 10

LATER = "2199-01-01T00:00:00Z"

with urllib.request.urlopen(f"{os.environ['WISHES_URL']}/openapi.json") as served:
    DOCUMENT: Any = json.load(served)

KEY = str(repeats.KEY)
NEW_KEYS = (f"wish-{number}" for number in itertools.count(1))
REPEATED_EACH = 8
"""Of so many requests with a key that was sent before, one repeats the first request."""


@dataclass(slots=True)
class First:
    """The first request to a path with a key: its body, and its answer once there is one."""

    is_repeatable: bool
    body: Any
    uses: int = 1
    answer: tuple[int, bytes] | None = None


FIRSTS: dict[tuple[str, str], First] = {}

IS_LONG = int(os.environ["WISHES_EXAMPLES"]) > 1
ASKED: dict[tuple[str, str, str], str] = {}
"""By what coverage does to a field, or which method it tries: the operation that met it first."""


@schemathesis.hook
def filter_case(_context: Any, case: Any) -> bool:
    """Leave out in `make test` what another operation has met: most share their fields' models.

    What coverage does to a body as a whole, every operation meets.
    """
    done = case.meta and case.meta.phase.data
    told = getattr(done, "description", None) or ""
    place = re.sub(r"/anyOf/\d+", "", getattr(done, "location", None) or "")
    is_shared = place.startswith("/properties/") or "' value: " in told or "HTTP method" in told
    if IS_LONG or not is_shared:
        return True
    label = case.operation.label
    return ASKED.setdefault((case.meta.generation.mode.value, place, told), label) == label


@schemathesis.hook
def before_call(_context: Any, case: Any, _arguments: Any) -> None:
    """Bring a request within the rules that stand in words alone, and give it a key of its own."""
    if case.meta is None:
        return
    if case.meta.generation.mode.is_positive:
        make_acceptable(case)
    make_unique(case)


def make_unique(case: Any) -> None:
    """Give a request whose key was sent before a new key, or the body of the first request.

    Keys come from the schema's example or its bounds, so all requests would have the same few.
    """
    key = (case.headers or {}).get(KEY)
    if not isinstance(key, str) or re.fullmatch(repeats.KEY_PATTERN, key) is None:
        return
    first = FIRSTS.get((case.operation.path, key))
    # The parts of a form have new boundaries each time, so its bytes are never the same.
    is_json = case.media_type == "application/json"
    is_repeatable = case.meta.generation.mode.is_positive and is_json
    if first is None:
        FIRSTS[case.operation.path, key] = First(is_repeatable, copy.deepcopy(case.body))
        return
    first.uses += 1
    if is_repeatable and first.is_repeatable and first.uses % REPEATED_EACH == 0:
        case.body = copy.deepcopy(first.body)
    else:
        case.headers[KEY] = next(NEW_KEYS)


@schemathesis.check
def a_repeated_request_gets_the_first_answer(_context: Any, response: Any, case: Any) -> None:
    """Compare the answers to a request that was granted, and to the same one with its key."""
    first = FIRSTS.get((case.operation.path, (case.headers or {}).get(KEY, "")))
    if first is None:
        return
    answer = response.status_code, response.content
    if first.answer is None:
        first.answer = answer
    elif first.answer[0] == 200:
        assert (answer, response.headers.get("idempotency-replayed")) == (first.answer, ["true"])


def make_acceptable(case: Any) -> None:
    """Bring a request that the schema allows within the rules that stand in words alone."""
    if case.query and "repo" in case.query:
        # A repository is named with its host (docs/reference/metrics.md).
        case.query.setdefault("repoHost", WORLD["repo"]["host"])
    if not isinstance(case.body, dict):
        return
    path = case.operation.path
    asked = DOCUMENT["paths"][path]["post"]["requestBody"]["content"]
    if "application/json" in asked:
        case.body = grantable(path, acceptable(case.body, asked["application/json"]["schema"]))
    else:
        case.body = a_form(case.body, asked["multipart/form-data"]["schema"])


def grantable(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """A request about what is there, mostly, and of times that may be."""
    chance = hashlib.sha256(repr(body).encode()).digest()
    # Three of four ask about what is there: otherwise all answers would be 404.
    if chance[0] % 4 and "repo" in body:
        body["repo"] = dict(WORLD["repo"])
        if "targetBranch" in body:
            body["targetBranch"] = branch_of(path, chance[1])
        if isinstance(body.get("pr"), dict):
            body["pr"]["number"] = WORLD["numbers"][chance[2] % len(WORLD["numbers"])]
            # No invented head is the pull request's own.
            body["pr"].pop("sha", None)
        about_tests(body, chance[3])
    # Without its own token all later answers would be 401.
    if body.get("id") == OWN_TOKEN:
        body["id"] = OTHER_TOKEN
    # A page token cannot be made up: 400 (docs/design/http.md 8).
    body.pop("cursor", None)
    if isinstance(body.get("page_query"), dict):
        body["page_query"].pop("page_token", None)
    # An override ends in the future, but not after a year (docs/design/quarantine.md 3).
    body.pop("expires_at", None)
    if "branch" in body:
        body["branch"] = body.get("targetBranch")
    # What expressions, zones, recurrences and names may be, no schema says (docs/how-to/rules.md).
    if body.get("rules"):
        sound = {"name": "a", "when": "draft", "during": None, "waitFor": "it"}
        body["rules"] = [{**body["rules"][0], **sound}]
    # They need a merge method that the queue may not have (docs/how-to/conflicts.md).
    body.pop("conflictRules", None)
    # A hold ends in the future.
    if body.get("until") is not None and path.endswith("/addQueueHold"):
        body["until"] = LATER
    return body


def a_form(body: dict[str, Any], schema: Any) -> dict[str, Any]:
    """An upload of the repository that is there, of a time that is not long past."""
    metadata = acceptable(body["metadata"], schema["properties"]["metadata"])
    metadata |= {"repo": dict(WORLD["repo"]), "org_url_slug": WORLD["repo"]["owner"]}
    metadata.pop("ran_at", None)
    return {**body, "metadata": metadata}


def about_tests(body: dict[str, Any], chance: int) -> None:
    """Let a request about tests name the organization and a test that are there."""
    if "org_url_slug" in body:
        body["org_url_slug"] = WORLD["repo"]["owner"]
    for name in ("test_id", "test_case_id"):
        if name in body:
            body[name] = WORLD["tests"][chance % len(WORLD["tests"])]


def branch_of(path: str, chance: int) -> str:
    """Any branch; queues are made and deleted on the last alone, so that the others keep theirs."""
    *kept, last = WORLD["branches"]
    found: str = last if path.endswith("/deleteQueue") else [*kept, last][chance % (len(kept) + 1)]
    return found


def acceptable(value: Any, schema: Any) -> Any:
    """The same without fields that the schema does not know and that no JSON of ours may hold."""
    schema = DOCUMENT["components"]["schemas"].get(
        schema.get("$ref", "").rpartition("/")[2], schema
    )
    if not isinstance(value, dict | list):
        return value
    kind = "items" if isinstance(value, list) else "properties"
    if kind not in schema:
        options = schema.get("anyOf", ())
        named = next((each for each in options if kind in each or "$ref" in each), None)
        return value if named is None else acceptable(value, named)
    if isinstance(value, list):
        return [acceptable(each, schema["items"]) for each in value]
    known = schema["properties"]
    return {
        name: acceptable(each, known[name]) if name in known else each
        for name, each in value.items()
        if name in known or not is_refused([name, each])
    }


def is_refused(value: Any) -> bool:
    """Whether JSON's own bounds forbid it, at any depth: NUL, or a number too long."""
    if isinstance(value, dict):
        return is_refused([*value, *value.values()])
    if isinstance(value, list):
        return any(is_refused(each) for each in value)
    if isinstance(value, str):
        return "\0" in value
    return isinstance(value, int) and not INTEGER_MIN <= value <= INTEGER_MAX
