"""`webhook …`: the endpoints that an organization's notifications are sent to."""

from typing import Annotated

import typer

from bot.cli import destination, options, output
from bot.cli.client import Client
from bot.cli.exits import Exit, Failed
from bot.cli.options import Result
from bot.uploader.transport import Json

app = typer.Typer(help="Manage the endpoints that receive notifications.")

# As many endpoints as one request may return; an organization has fewer.
PAGE = 100

# The events that a Slack endpoint receives by default.
FOR_PEOPLE = (
    "pull_request.failed",
    "pull_request.merged",
    "queue.held",
    "queue.released",
    "queue.state_changed",
    "queue.landing_mismatch",
)

EndpointId = Annotated[str, typer.Argument(help="The endpoint's id, as `webhook list` shows it.")]


@options.client_command(app)
def add(
    client: Client,
    receiver: Annotated[str, typer.Argument(help="The https address that is called.")],
    event: Annotated[
        list[str] | None,
        typer.Option(
            "--event",
            help="A name, a group as queue.*, or *; repeatable. "
            "Default: *; for Slack what people act on.",
        ),
    ] = None,
    repository: Annotated[
        list[str] | None, typer.Option("--repo", help="Only of HOST/OWNER/NAME; repeatable.")
    ] = None,
    description: Annotated[
        str, typer.Option("--description", help="Description of the endpoint.")
    ] = "",
    form: Annotated[
        str | None,
        typer.Option("--format", help="json (default), or slack: an incoming webhook of its kind."),
    ] = None,
) -> Result:
    """Create an endpoint; its signing secret is printed once, alone on stdout."""
    events = list(FOR_PEOPLE) if (form or "").lower() == "slack" else ["*"]
    body: Json = {"url": receiver, "events": event or events, "description": description}
    if form is not None:
        body["format"] = form
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
    headings = ("Id", "Address", "Events", "Repositories", "Format", "State", "Last success")
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


@options.client_command(app)
def rotate(
    client: Client,
    endpoint_id: EndpointId,
    overlap_hours: Annotated[
        int | None,
        typer.Option("--overlap-hours", help="Hours for which the old secret also signs, 0 to 72."),
    ] = None,
) -> Result:
    """Create a new signing secret; it is printed once, alone on stdout."""
    body: Json = {"id": endpoint_id}
    if overlap_hours is not None:
        body["overlap_hours"] = overlap_hours
    answer = client.post("/webhooks/rotate-secret", body)
    return Result(answer, lambda: output.line(str(answer["secret"])))


@options.client_command(app)
def log(
    client: Client,
    endpoint_id: EndpointId,
    state: Annotated[
        str | None, typer.Option("--state", help="Only pending, delivered or failed ones.")
    ] = None,
    event: Annotated[str | None, typer.Option("--event", help="Only of this event.")] = None,
) -> Result:
    """List the newest deliveries, at most 100."""
    body: Json = {"endpoint_id": endpoint_id, "take": PAGE}
    if state is not None:
        body["state"] = state
    if event is not None:
        body["event"] = event
    answer = client.post("/webhooks/list-deliveries", body)
    deliveries = output.objects(answer["deliveries"])
    headings = ("Message", "Event", "State", "Attempts", "Last attempt", "Answer")
    return Result(answer, lambda: output.print_table(headings, map(_delivery_row, deliveries)))


@options.client_command(app)
def replay(
    client: Client,
    endpoint_id: EndpointId,
    message: Annotated[
        str | None, typer.Option("--message", help="One message, as `webhook log` shows it.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="All from then on, as 2026-03-02T08:00:00Z.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="All before then.")] = None,
    delivered: Annotated[
        bool, typer.Option("--delivered", help="Also those that arrived.")
    ] = False,
) -> Result:
    """Send one message again, or all of a time that did not arrive."""
    if (message is None) is (since is None):
        raise Failed(Exit.USAGE, "it is not clear what to send", "Give --message or --since")
    body: Json = {"endpoint_id": endpoint_id}
    given = {"message_id": message, "since": since, "until": until}
    body |= {name: value for name, value in given.items() if value is not None}
    if delivered:
        body["include_delivered"] = True
    answer = client.post("/webhooks/replay", body)
    return Result(answer, lambda: output.line(f"Sending again: {answer['queued']}"))


def _delivery_row(delivery: Json) -> tuple[object, ...]:
    """Return a delivery as a row of the table."""
    attempts = output.objects(delivery["attempts"])
    last = attempts[-1] if attempts else {}
    answered = last.get("error") or last.get("status_code") or ""
    return (
        delivery["message_id"],
        delivery["event"],
        delivery["state"],
        len(attempts),
        output.moment(last["at"]) if last else "never",
        answered,
    )


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
        str(endpoint.get("format", "json")),
        f"{state}: {reason}" if reason else state,
        output.moment_or(endpoint["last_success_at"], "never"),
    )
