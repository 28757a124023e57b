"""`queue …`: create, show, change, pause, hold and delete a branch's queue."""

from typing import Annotated

import typer

from bot.cli import config_file, options, output
from bot.cli.destination import Queue
from bot.cli.exits import Exit, Failed
from bot.cli.options import Result
from bot.uploader.transport import Json

app = typer.Typer(help="Create, show, change and delete queues.")

Reason = Annotated[str | None, typer.Option("--reason", help="Shown with the queue's state.")]
AllSettings = Annotated[
    bool, typer.Option("--all-settings", help="Show all settings, including defaults.")
]


@options.queue_command(app)
def create(
    queue: Queue,
    settings: options.Set = None,
    all_settings: AllSettings = False,
) -> Result:
    """Create a queue. Defaults: concurrency 5, directMergeMode ALWAYS; change them with --set."""
    from bot.cli import queue_settings

    if queue.given_branch is None:
        raise Failed(Exit.USAGE, "no branch is named", "Name the queue's with --branch")
    members = queue_settings.created_with() | queue_settings.parse(settings)
    return shown(queue, queue.post("/createQueue", members), are_all=all_settings)


@options.queue_command(app)
def show(queue: Queue, all_settings: AllSettings = False) -> Result:
    """Show a queue: state, settings, holds, and the pull requests in it."""
    return shown(queue, queue.post("/getQueue", {}), are_all=all_settings)


@options.queue_command(app)
def update(
    queue: Queue,
    settings: options.Set = None,
    expected_version: Annotated[
        int | None, typer.Option("--expected-version", help="Refuse if the queue has changed.")
    ] = None,
    all_settings: AllSettings = False,
) -> Result:
    """Change settings, all or none."""
    from bot.cli import queue_settings

    changes = queue_settings.parse(settings)
    if not changes:
        raise Failed(Exit.USAGE, "nothing to change", "Give --set KEY=VALUE")
    if expected_version is not None:
        changes["expectedVersion"] = expected_version
    return shown(queue, queue.post("/updateQueue", changes), are_all=all_settings)


@options.queue_command(app)
def pause(queue: Queue, reason: Reason = None) -> Result:
    """Start and land nothing until resumed; the order is kept."""
    return change_state(queue, "PAUSED", reason)


@options.queue_command(app)
def resume(queue: Queue) -> Result:
    """Resume the queue. Holds stay in place."""
    return change_state(queue, "RUNNING", None)


@options.queue_command(app)
def drain(queue: Queue, reason: Reason = None) -> Result:
    """Land what is tested, start nothing new."""
    return change_state(queue, "DRAINING", reason)


@options.queue_command(app)
def hold(
    queue: Queue,
    text: Annotated[str, typer.Argument(help="Reason, shown to all users.")],
    scope: Annotated[str, typer.Option(help="What it stops: START, LAND or BOTH.")] = "BOTH",
    until: Annotated[
        str | None, typer.Option(help="When it ends by itself, as 2026-03-02T08:00:00Z.")
    ] = None,
) -> Result:
    """Add a hold, which stops a queue independently of its state."""
    answer = queue.post("/addQueueHold", {"text": text, "scope": scope, "until": until})
    added = answer.get("hold")
    hold_id = added.get("id") if isinstance(added, dict) else added
    return Result(answer, lambda: output.line(f"Held: {hold_id}"))


@options.queue_command(app)
def release(
    queue: Queue,
    hold_id: Annotated[str, typer.Argument(help="The hold's id, from `queue show`.")],
    text: Annotated[str, typer.Option("--reason", help="Why, for the record.")],
) -> Result:
    """Release a hold, if people may release it."""
    answer = queue.post("/releaseQueueHold", {"holdId": hold_id, "text": text})
    return Result(answer, lambda: output.line(f"Released: {answer.get('holdId')}"))


@options.queue_command(app)
def delete(queue: Queue) -> Result:
    """Delete an empty queue; its history stays."""
    answer = queue.post("/deleteQueue", {})
    return Result(answer, lambda: output.line(f"Deleted the queue for {answer.get('branch')}"))


options.queue_command(app)(config_file.apply)


def change_state(queue: Queue, state: str, reason: str | None) -> Result:
    """Set the queue's state; the result shows its summary alone."""
    changes: Json = {"state": state} if reason is None else {"state": state, "stateReason": reason}
    return shown(queue, queue.post("/updateQueue", changes), is_whole=False)


def shown(queue: Queue, answer: Json, *, are_all: bool = False, is_whole: bool = True) -> Result:
    """Return a queue as a command's result; `is_whole`: also its pull requests and settings."""

    def show() -> None:
        from bot.cli import queue_text

        queue_text.print_summary(queue.repo.slug, answer)
        if is_whole:
            queue_text.print_entries(answer)
            queue_text.print_settings(answer, are_all=are_all)

    return Result(answer, show)
