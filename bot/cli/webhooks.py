"""`webhook …`: the endpoints that an organization's notifications are sent to."""

from typing import Annotated

import typer

from bot.cli import destination, options, output
from bot.cli.client import Client
from bot.cli.exits import Exit
from bot.cli.options import Result
from bot.uploader.transport import Json

app = typer.Typer(help="Manage the endpoints that receive notifications.")

# As many endpoints as one request may return; an organization has fewer.
PAGE = 100

EndpointId = Annotated[str, typer.Argument(help="The endpoint's id, as `webhook list` shows it.")]


@options.client_command(app)
def add(
    client: Client,
    receiver: Annotated[str, typer.Argument(help="The https address that is called.")],
    event: Annotated[
        list[str] | None,
        typer.Option("--event", help="A name, a group as queue.*, or * (default); repeatable."),
    ] = None,
    repository: Annotated[
        list[str] | None, typer.Option("--repo", help="Only of HOST/OWNER/NAME; repeatable.")
    ] = None,
    description: Annotated[
        str, typer.Option("--description", help="Description of the endpoint.")
    ] = "",
) -> Result:
    """Create an endpoint; its signing secret is printed once, alone on stdout."""
    body: Json = {"url": receiver, "events": event or ["*"], "description": description}
    if repository:
        refs = [destination.find_repository(each, client) for each in repository]
        body["repositories"] = [destination.repository_members(ref) for ref in refs]
    endpoint = client.post("/webhooks/create-endpoint", body)

    def show() -> None:
        output.log(f"Created endpoint {endpoint['id']}. Its secret is shown only once.")
        output.line(str(endpoint["secret"]))

    return Result(endpoint, show)


@options.client_command(app, "list")
def list_all(client: Client) -> Result:
    """List the endpoints that the token sees, oldest first; never their secrets."""
    answer = client.post("/webhooks/list-endpoints", {"take": PAGE})
    endpoints = output.objects(answer["endpoints"])
    headings = ("Id", "Address", "Events", "Repositories", "State", "Last success")
    return Result(answer, lambda: output.print_table(headings, map(row_of, endpoints)))


@options.client_command(app)
def remove(client: Client, endpoint_id: EndpointId) -> Result:
    """Delete an endpoint and its waiting notifications."""
    answer = client.post("/webhooks/delete-endpoint", {"id": endpoint_id})
    return Result(answer, lambda: output.line(f"Removed {endpoint_id}"))


@options.client_command(app, "test")
def send_test(client: Client, endpoint_id: EndpointId) -> Result:
    """Send `webhook.test` now; exit code 1 if it does not arrive."""
    answer = client.post("/webhooks/test-endpoint", {"id": endpoint_id})
    if answer["error"] is None:
        text = f"Arrived: {answer['status_code']} after {answer['duration_ms']} ms"
        return Result(answer, lambda: output.line(text))
    text = f"Did not arrive: {answer['error']}"
    return Result(answer, lambda: output.line(text), typer.Exit(Exit.FALSE))


def row_of(endpoint: Json) -> tuple[str, ...]:
    """Return an endpoint as a row of the table."""
    repositories = endpoint["repositories"]
    state, reason = str(endpoint["state"]), endpoint["disabled_reason"]
    slugs = [f"{each['owner']}/{each['name']}" for each in output.objects(repositories)]
    return (
        str(endpoint["id"]),
        str(endpoint["url"]),
        output.joined(endpoint["events"]),
        ", ".join(slugs) if isinstance(repositories, list) else "all",
        f"{state}: {reason}" if reason else state,
        str(endpoint["last_success_at"] or "never"),
    )
