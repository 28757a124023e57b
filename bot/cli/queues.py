"""`queue …`: create, show, change, pause, hold and delete a branch's queue."""

from typing import Annotated

import typer

from bot.cli import config_file, destination, options, output
from bot.cli.client import Client, Refusal
from bot.cli.destination import Queue
from bot.cli.exits import Exit, Failed
from bot.cli.options import Result
from bot.uploader.transport import Json

app = typer.Typer(help="Create, show, change and delete queues.")

# As many queues as one request may return.
PAGE = 100

Reason = Annotated[
    str, typer.Option("--reason", help="Why, for everybody who waits for the queue.")
]
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


@options.client_command(app, "list")
def list_all(
    client: Client,
    repo: Annotated[
        str | None,
        typer.Option("--repo", help="[HOST/]OWNER/NAME. Default: all that the token sees."),
    ] = None,
) -> Result:
    """List the queues of a repository, or all that the token sees."""
    body: Json = {"take": PAGE}
    if repo is not None:
        ref = destination.find_repository(repo, client)
        body["repo"] = destination.repository_members(ref)
    queues: list[Json] = []
    while True:
        answer = client.post("/listQueues", body)
        queues += output.objects(answer["queues"])
        if not answer.get("nextCursor"):
            break
        body["cursor"] = answer["nextCursor"]

    def show() -> None:
        if not queues:
            output.line("No queue. Make one: headgate queue create --branch BRANCH")
            return
        headings = ("Repository", "Branch", "State", "Mode", "Queued", "Testing", "Not ready")
        output.print_table(headings, map(row_of, queues))

    return Result({"queues": queues}, show)


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
def pause(queue: Queue, reason: Reason) -> Result:
    """Start and land nothing until resumed; the order is kept."""
    return change_state(queue, "PAUSED", reason)


@options.queue_command(app)
def resume(queue: Queue) -> Result:
    """Resume the queue. Holds stay in place."""
    return change_state(queue, "RUNNING", None)


@options.queue_command(app)
def drain(queue: Queue, reason: Reason) -> Result:
    """Land what is tested, start nothing new."""
    return change_state(queue, "DRAINING", reason)


@options.queue_command(app)
def hold(
    queue: Queue,
    reason: Reason,
    scope: Annotated[str, typer.Option(help="What it stops: START, LAND or BOTH.")] = "BOTH",
    until: Annotated[
        str | None, typer.Option(help="When it ends by itself, as 2026-03-02T08:00:00Z.")
    ] = None,
) -> Result:
    """Add a hold, which stops a queue independently of its state."""
    members: Json = {"text": given(reason), "scope": scope, "until": until}
    answer = queue.post("/addQueueHold", members)
    added = answer.get("hold")
    hold_id = added.get("id") if isinstance(added, dict) else added
    return Result(answer, lambda: output.line(f"Held: {hold_id}"))


@options.queue_command(app)
def release(
    queue: Queue,
    hold_id: Annotated[str, typer.Argument(help="The hold's id, from `queue show`.")],
    reason: Annotated[str, typer.Option("--reason", help="Why, for the record.")],
) -> Result:
    """Release a hold, if people may release it."""
    answer = queue.post("/releaseQueueHold", {"holdId": hold_id, "text": given(reason)})
    return Result(answer, lambda: output.line(f"Released: {answer.get('holdId')}"))


@options.queue_command(app)
def delete(queue: Queue) -> Result:
    """Delete an empty queue; its history stays."""
    try:
        answer = queue.post("/deleteQueue", {})
    except Refusal as refused:
        if refused.problem_code != "queue_not_found":
            raise
        # The usual advice, to make the queue, would not help here.
        raise Failed(refused.code, refused.what) from None
    return Result(answer, lambda: output.line(f"Deleted the queue for {answer.get('branch')}"))


@options.queue_command(app)
def shadow_report(queue: Queue) -> Result:
    """Show what a queue in shadow decided, beside what the other queue did."""
    answer = queue.post("/getShadowReport", {})

    def show() -> None:
        from bot.cli import shadow_text

        shadow_text.print_report(queue.repo.slug, queue.branch, answer)

    return Result(answer, show)


options.queue_command(app)(config_file.apply)


def change_state(queue: Queue, state: str, reason: str | None) -> Result:
    """Set the queue's state; the result shows its summary alone."""
    changes: Json = {"state": state}
    if reason is not None:
        changes["stateReason"] = given(reason)
    return shown(queue, queue.post("/updateQueue", changes), is_whole=False)


def given(reason: str) -> str:
    """Return the reason, as chat demands it too. Raises Failed(USAGE) for an empty one."""
    if not reason.strip():
        raise Failed(Exit.USAGE, "--reason is empty", "Say why, for everybody who waits")
    return reason


def row_of(queue: Json) -> tuple[object, ...]:
    """Return a queue among others as a row of the table."""
    repo = queue["repo"]
    slug = f"{repo['owner']}/{repo['name']}" if isinstance(repo, dict) else ""
    counts = (queue["depth"], queue["testing"], queue["notReady"])
    return (slug, queue["branch"], output.state_word(queue), queue["mode"], *counts)


def shown(queue: Queue, answer: Json, *, are_all: bool = False, is_whole: bool = True) -> Result:
    """Return a queue as a command's result; `is_whole`: also its pull requests and settings."""

    def show() -> None:
        from bot.cli import queue_text

        queue_text.print_summary(queue.repo.slug, answer)
        if is_whole:
            queue_text.print_entries(answer)
            queue_text.print_settings(answer, are_all=are_all)

    return Result(answer, show)
