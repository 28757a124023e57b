"""One GraphQL call: its roots, its rights, its errors in the provider's form."""

from functools import cache
from pathlib import Path
from typing import Any

import graphql
from graphql import GraphQLError, GraphQLResolveInfo, GraphQLSchema

from bot.sandbox.acts import refs
from bot.sandbox.acts.refs import How, Move
from bot.sandbox.graph import values
from bot.sandbox.records import App, Json
from bot.sandbox.refusal import Refusal, refused
from bot.sandbox.rest import call as calls
from bot.sandbox.rest.call import Answer, Call, Reply, Route
from bot.sandbox.shapes.people import number_of
from bot.sandbox.world import Repository

ERROR_TYPES = {401: "FORBIDDEN", 403: "FORBIDDEN", 404: "NOT_FOUND"}


@cache
def schema() -> GraphQLSchema:
    """The schema, read once."""
    return graphql.build_schema(Path(__file__).with_name("schema.graphql").read_text())


async def execute(call: Call) -> Answer:
    """Answer one document; errors come with status 200, as at the provider."""
    if isinstance(call.caller, App | None):
        raise refused("auth.graphql")
    document = call.body.get("query")
    if not isinstance(document, str):
        raise refused("graphql.query")
    done = await graphql.graphql(
        schema(),
        document,
        root_value=_roots(call),
        variable_values=call.body.get("variables") or {},
        operation_name=call.body.get("operationName"),
    )
    answer: Json = {}
    if done.data is not None or not done.errors:
        answer["data"] = done.data
    if done.errors:
        answer["errors"] = [_error(one) for one in done.errors]
    return Reply(answer)


def _error(found: GraphQLError) -> Json:
    cause = found.original_error
    if cause is not None and not isinstance(cause, GraphQLError | Refusal):
        raise cause
    shown: Json = {"message": found.message}
    if found.path is not None:
        shown["path"] = list(found.path)
    if found.locations:
        shown["locations"] = [
            {"line": place.line, "column": place.column} for place in found.locations
        ]
    kind = (found.extensions or {}).get("type")
    if isinstance(cause, Refusal):
        kind = ERROR_TYPES.get(cause.status, "UNPROCESSABLE")
    if kind is not None:
        shown["type"] = kind
    return shown


def _roots(call: Call) -> Json:
    async def update_refs(_: GraphQLResolveInfo[Any], **asked: Any) -> Json:
        return await _update_refs(call, asked["input"])

    return {
        "repository": lambda _, **asked: _repository(call, asked["owner"], asked["name"]),
        "updateRefs": update_refs,
    }


def _repository(call: Call, owner: str, name: str) -> Json:
    said = f"Could not resolve to a Repository with the name '{owner}/{name}'."
    try:
        found = calls.repository_of(call.world, call.caller, f"{owner}/{name}")
        call.found = found
        calls.check_rights(call, ("pull_requests:read", "contents:read"))
    except Refusal as refused:
        if refused.status == 404:
            raise values.not_found(said) from None
        raise
    return values.repository(found)


async def _update_refs(call: Call, asked: Json) -> Json:
    number = number_of("Repository", asked["repositoryId"])
    found: Repository | None = call.world.repositories.get(number or 0)
    if found is None:
        said = f"Could not resolve to a node with the global id of '{asked['repositoryId']}'."
        raise values.not_found(said)
    call.found = calls.repository_of(call.world, call.caller, found.full_name)
    calls.check_rights(call, ("contents:write",))
    moves = [
        Move(one["name"], one["afterOid"], one.get("beforeOid"), bool(one.get("force", False)))
        for one in asked["refUpdates"]
    ]
    for move in moves:
        if not move.ref.startswith("refs/"):
            raise refused("ref.short", move.ref)
    async with found.lock:
        for move in moves:
            now = found.git.refs.get(move.ref)
            is_known = found.git.objects.commit(move.after) is not None
            if now is not None and is_known:
                await refs.refuse_workflow_files(found, call.actor, now, move.after)
        await refs.move(found, call.actor, moves, How("updateRefs"))
    return {"clientMutationId": asked.get("clientMutationId")}


ROUTE = Route("POST", "/graphql", execute, ("app",))
