"""One GraphQL call: its roots, its rights, its errors in the provider's form."""

import inspect
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import graphql
from graphql import DocumentNode, GraphQLError, GraphQLResolveInfo, GraphQLSchema

from bot.sandbox.acts import refs
from bot.sandbox.acts.refs import How, Move
from bot.sandbox.graph import values
from bot.sandbox.records import App, Json
from bot.sandbox.refusal import Refusal, refused
from bot.sandbox.rest import call as calls
from bot.sandbox.rest.call import Answer, Call, Reply, Route
from bot.sandbox.shapes.people import number_of

ERROR_TYPES = {401: "FORBIDDEN", 403: "FORBIDDEN", 404: "NOT_FOUND"}
DOCUMENTS_MAX = 256


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
    try:
        read, errors = _read(document)
    except GraphQLError as error:
        return Reply({"errors": [_error(error)]})
    if errors:
        return Reply({"errors": [_error(one) for one in errors]})
    done = graphql.execute(
        schema(),
        read,
        root_value=_roots(call),
        variable_values=call.body.get("variables") or {},
        operation_name=call.body.get("operationName"),
    )
    result = await done if inspect.isawaitable(done) else done
    answer: Json = {}
    if result.data is not None or not result.errors:
        answer["data"] = result.data
    if result.errors:
        answer["errors"] = [_error(one) for one in result.errors]
    return Reply(answer)


@lru_cache(DOCUMENTS_MAX)
def _read(document: str) -> tuple[DocumentNode, Sequence[GraphQLError]]:
    """Parse a document and validate it: clients send the same few again and again.

    Raises GraphQLError where it is no GraphQL.
    """
    read = graphql.parse(document)
    return read, graphql.validate(schema(), read)


def _error(error: GraphQLError) -> Json:
    cause = error.original_error
    if cause is not None and not isinstance(cause, GraphQLError | Refusal):
        raise cause
    shape = error.formatted
    kind = shape.pop("extensions", {}).get("type")
    if isinstance(cause, Refusal):
        kind = ERROR_TYPES.get(cause.status, "UNPROCESSABLE")
    return {**shape, "type": kind} if kind is not None else {**shape}


def _roots(call: Call) -> Json:
    async def update_refs(_: GraphQLResolveInfo[Any], **given: Any) -> Json:
        return await _update_refs(call, given["input"])

    return {
        "repository": lambda _, **given: _repository(call, given["owner"], given["name"]),
        "updateRefs": update_refs,
    }


def _repository(call: Call, owner: str, name: str) -> Json:
    try:
        call.target = calls.repository_of(call.world, call.caller, f"{owner}/{name}")
        calls.check_rights(call, ("pull_requests:read", "contents:read"))
    except Refusal as refusal:
        if refusal.status != 404:
            raise
        message = f"Could not resolve to a Repository with the name '{owner}/{name}'."
        raise values.not_found(message) from None
    return values.repository(call.target)


async def _update_refs(call: Call, given: Json) -> Json:
    number = number_of("Repository", given["repositoryId"])
    repository = call.world.repositories.get(number or 0)
    if repository is None:
        node = given["repositoryId"]
        raise values.not_found(f"Could not resolve to a node with the global id of '{node}'.")
    call.target = calls.repository_of(call.world, call.caller, repository.full_name)
    calls.check_rights(call, ("contents:write",))
    moves = [
        Move(one["name"], one["afterOid"], one.get("beforeOid"), bool(one.get("force", False)))
        for one in given["refUpdates"]
    ]
    for move in moves:
        if not move.ref.startswith("refs/"):
            raise refused("ref.short", move.ref)
    async with repository.lock:
        for move in moves:
            now = repository.git.refs.get(move.ref)
            if now is not None and repository.git.objects.commit(move.after) is not None:
                await refs.refuse_workflow_files(repository, call.actor, now, move.after)
        await refs.move(repository, call.actor, moves, How("updateRefs"))
    return {"clientMutationId": given.get("clientMutationId")}


ROUTE = Route("POST", "/graphql", execute, ("app",))
