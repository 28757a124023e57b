"""`webhook …`: receivers of an organization, and whether they can be reached."""

import asyncio
from typing import Annotated

import typer
from pydantic import JsonValue

from bot.cli import client, options, output, place
from bot.cli.client import Json
from bot.cli.exits import Exit, Failed
from service.clock import SystemClock

app = typer.Typer(help="Tell receivers what happens.")

PAGE = 100
"""Endpoints asked for at once; an organization has fewer."""

EndpointId = Annotated[str, typer.Argument(help="The endpoint's id, as `webhook list` shows it.")]


@app.command()
def add(
    receiver: Annotated[str, typer.Argument(help="The https address that is called.")],
    event: Annotated[
        list[str] | None,
        typer.Option("--event", help="A name, a group as queue.*, or * (default); repeatable."),
    ] = None,
    repository: Annotated[
        list[str] | None, typer.Option("--repo", help="HOST/OWNER/NAME alone; repeatable.")
    ] = None,
    description: Annotated[str, typer.Option("--description", help="For people.")] = "",
    url: options.Url = None,
    token_file: options.TokenFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Make an endpoint; its signing secret is printed once, alone on stdout."""
    events: list[JsonValue] = [*(event or ["*"])]
    body: Json = {"url": receiver, "events": events, "description": description}
    if repository:
        body["repositories"] = [named(text) for text in repository]
    made = asked(url, token_file, "/webhooks/create-endpoint", body)
    if as_json:
        output.json_value(made)
        return
    output.told(f"Endpoint {made['id']} is told of it. Its secret is shown this once.")
    output.line(str(made["secret"]))


@app.command(name="list")
def list_all(
    url: options.Url = None,
    token_file: options.TokenFile = None,
    as_json: options.AsJson = False,
) -> None:
    """List the endpoints that the token sees, oldest first; never their secrets."""
    answer = asked(url, token_file, "/webhooks/list-endpoints", {"take": PAGE})
    if as_json:
        output.json_value(answer)
        return
    found = answer["endpoints"]
    rows = (
        [row_of(each) for each in found if isinstance(each, dict)]
        if isinstance(found, list)
        else []
    )
    output.table(("Id", "Address", "Events", "Repositories", "State", "Last success"), rows)


@app.command()
def remove(
    endpoint_id: EndpointId,
    url: options.Url = None,
    token_file: options.TokenFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Forget an endpoint; what waits to be sent to it is dropped."""
    answer = asked(url, token_file, "/webhooks/delete-endpoint", {"id": endpoint_id})
    if as_json:
        output.json_value(answer)
        return
    output.line(f"Removed {endpoint_id}")


@app.command(name="test")
def send_test(
    endpoint_id: EndpointId,
    url: options.Url = None,
    token_file: options.TokenFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Send `webhook.test` now; exit code 1 when it did not arrive."""
    body: Json = {"id": endpoint_id}
    answer = asked(url, token_file, "/webhooks/test-endpoint", body)
    if as_json:
        output.json_value(answer)
    elif answer["error"] is None:
        output.line(f"Arrived: {answer['status_code']} after {answer['duration_ms']} ms")
    else:
        output.line(f"Did not arrive: {answer['error']}")
    if answer["error"] is not None:
        raise typer.Exit(Exit.FALSE)


def asked(url: str | None, token_file: options.TokenFile, path: str, body: Json) -> Json:
    """What the service answers. Raises Refusal, Failed(USAGE, UNREACHABLE)."""
    where, token = place.find_url(url), place.find_token(token_file)

    async def act() -> Json:
        connecting = client.connected(where, token, SystemClock(), output.told)
        async with connecting as connection:
            return await connection.post(path, body)

    return asyncio.run(act())


def named(text: str) -> Json:
    """A repository as the API names it. Raises Failed(USAGE)."""
    found = place.parse_repository(text)
    if found is None:
        raise Failed(Exit.USAGE, f"{text!r} names no repository", "Give --repo [HOST/]OWNER/NAME")
    return {"host": found.host, "owner": found.owner, "name": found.name}


def row_of(endpoint: Json) -> tuple[str, ...]:
    """An endpoint as a row of the table."""
    events, only = endpoint["events"], endpoint["repositories"]
    state = str(endpoint["state"])
    reason = endpoint["disabled_reason"]
    return (
        str(endpoint["id"]),
        str(endpoint["url"]),
        ", ".join(map(str, events)) if isinstance(events, list) else "",
        "all" if not isinstance(only, list) else ", ".join(map(slug_of, only)),
        f"{state}: {reason}" if reason else state,
        str(endpoint["last_success_at"] or "never"),
    )


def slug_of(repository: JsonValue) -> str:
    """`owner/name` of a repository as the API names it."""
    if not isinstance(repository, dict):
        return ""
    return f"{repository['owner']}/{repository['name']}"
