"""Every real answer is one that the document describes.

Asked by the client of these tests for each answer it gets, so that each test of an endpoint
holds its model and its list of codes, too.
"""

import functools
from collections.abc import Mapping

import jsonschema_rs
import orjson
from pydantic import ValidationError

from service.http import codes, errors, openapi
from service.http.models.answers.problems import Problem
from service.http.route import Open, Route
from service.process.api import routes

BY_PATH: Mapping[str, Route] = {route.path: route for route in routes.ROUTES}
COMPONENTS = orjson.loads(openapi.encoded(routes.CONTRACT))["components"]


def check(method: str, path: str, status: int, content_type: str, body: bytes) -> None:
    """Fail unless the endpoint may answer so. Addresses of no endpoint are not looked at."""
    route = BY_PATH.get(path.partition("?")[0])
    if route is None or method == "HEAD" or status == 401:
        return
    if status in successes(route):
        success(route, content_type, body)
    elif content_type.startswith("application/problem+json"):
        problem = Problem.model_validate_json(body)
        assert problem.status == status
        assert problem.code in codes.codes_of(route), f"{path} does not name {problem.code}"
        assert errors.STATUS_OF[problem.code] == status
        example = COMPONENTS["examples"][problem.code]["value"]
        shown = problem.model_dump(include={"code", "status", "title"})
        assert shown == {name: example[name] for name in shown}
        assert problem.type.endswith(example["type"].removeprefix("https://queue.example.org"))


def successes(route: Route) -> tuple[int, ...]:
    """Statuses of the endpoint that refuse nothing."""
    return route.statuses if isinstance(route, Open) else (200,)


def success(route: Route, content_type: str, body: bytes) -> None:
    """Fail unless it is what the endpoint says of its success."""
    if isinstance(route.answers, str):
        assert content_type == route.answers
        return
    assert route.answers is not None, f"{route.path} does not say what it answers"
    assert content_type == "application/json; charset=utf-8"
    try:
        route.answers.model_validate_json(body, strict=True)
        schema_of(route.answers.__name__).validate(orjson.loads(body))
    except (ValidationError, jsonschema_rs.ValidationError) as unlike:
        raise AssertionError(
            f"{route.path} answered what its model does not say: {unlike}"
        ) from unlike


@functools.cache
def schema_of(name: str) -> jsonschema_rs.Draft202012Validator:
    """The document's schema of this name."""
    schema = {"$ref": f"#/components/schemas/{name}", "components": COMPONENTS}
    return jsonschema_rs.Draft202012Validator(schema)
