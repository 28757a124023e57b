"""`queue …`: create, show, change, pause, hold and delete a branch's queue."""

from typing import Annotated

import typer

from bot.cli import options, output
from bot.cli.destination import Queue
from bot.cli.exits import Exit, Failed
from bot.uploader.transport import Json

app = typer.Typer(help="Create, show, change and delete queues.")

Reason = Annotated[str | None, typer.Option("--reason", help="Shown with the queue's state.")]
AllSettings = Annotated[
    bool, typer.Option("--all-settings", help="Also the settings that have their default.")
]


@options.queue_command(app)
def create(
    queue: Queue,
    settings: options.Set = None,
    all_settings: AllSettings = False,
    as_json: options.AsJson = False,
) -> None:
    """Create a branch's queue: 5 tests at a time, direct merge, unless --set says otherwise."""
    from bot.cli import queue_settings

    if queue.given_branch is None:
        raise Failed(Exit.USAGE, "no branch is named", "Name the queue's with --branch")
    members = queue_settings.created_with() | queue_settings.parse(settings)
    show_queue(queue, queue.post("/createQueue", members), as_json=as_json, are_all=all_settings)


@options.queue_command(app)
def show(queue: Queue, all_settings: AllSettings = False, as_json: options.AsJson = False) -> None:
    """Show a queue: state, settings, holds, and the pull requests in it."""
    show_queue(queue, queue.post("/getQueue", {}), as_json=as_json, are_all=all_settings)


@options.queue_command(app)
def update(
    queue: Queue,
    settings: options.Set = None,
    expected_version: Annotated[
        int | None, typer.Option("--expected-version", help="Refuse if the queue has changed.")
    ] = None,
    all_settings: AllSettings = False,
    as_json: options.AsJson = False,
) -> None:
    """Change settings, all or none."""
    from bot.cli import queue_settings

    changes = queue_settings.parse(settings)
    if not changes:
        raise Failed(Exit.USAGE, "nothing to change", "Give --set KEY=VALUE")
    if expected_version is not None:
        changes["expectedVersion"] = expected_version
    show_queue(queue, queue.post("/updateQueue", changes), as_json=as_json, are_all=all_settings)


@options.queue_command(app)
def pause(queue: Queue, reason: Reason = None, as_json: options.AsJson = False) -> None:
    """Start and land nothing until resumed; the order is kept."""
    change_state(queue, "PAUSED", reason, as_json=as_json)


@options.queue_command(app)
def resume(queue: Queue, as_json: options.AsJson = False) -> None:
    """Let the queue run again; releases no hold."""
    change_state(queue, "RUNNING", None, as_json=as_json)


@options.queue_command(app)
def drain(queue: Queue, reason: Reason = None, as_json: options.AsJson = False) -> None:
    """Land what is tested, start nothing new."""
    change_state(queue, "DRAINING", reason, as_json=as_json)


@options.queue_command(app)
def hold(
    queue: Queue,
    text: Annotated[str, typer.Argument(help="Why, for everybody to read.")],
    scope: Annotated[str, typer.Option(help="What it stops: START, LAND or BOTH.")] = "BOTH",
    until: Annotated[
        str | None, typer.Option(help="When it ends by itself, as 2026-03-02T08:00:00Z.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Add a hold, which stops a queue independently of its state."""
    answer = queue.post("/addQueueHold", {"text": text, "scope": scope, "until": until})
    if as_json:
        output.print_json(answer)
    else:
        added = answer.get("hold")
        output.line(f"Held: {added.get('id') if isinstance(added, dict) else added}")


@options.queue_command(app)
def release(
    queue: Queue,
    hold_id: Annotated[str, typer.Argument(help="The hold's id, from `queue show`.")],
    text: Annotated[str, typer.Option("--reason", help="Why, for the record.")],
    as_json: options.AsJson = False,
) -> None:
    """Release a hold, if people may release it."""
    answer = queue.post("/releaseQueueHold", {"holdId": hold_id, "text": text})
    if as_json:
        output.print_json(answer)
    else:
        output.line(f"Released: {answer.get('holdId')}")


@options.queue_command(app)
def delete(queue: Queue, as_json: options.AsJson = False) -> None:
    """Delete an empty queue; its history stays."""
    answer = queue.post("/deleteQueue", {})
    if as_json:
        output.print_json(answer)
    else:
        output.line(f"Deleted the queue for {answer.get('branch')}")


def change_state(queue: Queue, state: str, reason: str | None, *, as_json: bool) -> None:
    """Set the queue's state and print its summary."""
    changes: Json = {"state": state} if reason is None else {"state": state, "stateReason": reason}
    answer = queue.post("/updateQueue", changes)
    if as_json:
        output.print_json(answer)
        return
    from bot.cli import queue_text

    queue_text.print_summary(queue.repo.slug, answer)


def show_queue(queue: Queue, answer: Json, *, as_json: bool, are_all: bool) -> None:
    """Print a queue: its summary, the pull requests in it, its settings."""
    if as_json:
        output.print_json(answer)
        return
    from bot.cli import queue_text

    queue_text.print_summary(queue.repo.slug, answer)
    queue_text.print_entries(answer)
    queue_text.print_settings(answer, are_all=are_all)
