"""`queue …`: make, show, change and delete a branch's queue, and hold it."""

import asyncio
import difflib
import typing
from collections.abc import Sequence
from typing import Annotated

import orjson
import typer
from pydantic import JsonValue
from pydantic.alias_generators import to_camel

from bot.cli import options, output, place, queue_text
from bot.cli.client import Json
from bot.cli.exits import Exit, Failed
from bot.cli.place import Place
from service.mergequeue.engine.config import CLI_DEFAULTS, BatchingRule, QueueConfig

app = typer.Typer(help="Make, show, change and delete queues.")

RULES = tuple[BatchingRule, ...]

Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting, as concurrency=8; repeatable."),
]
Reason = Annotated[str | None, typer.Option("--reason", help="Shown with the queue's state.")]

AllSettings = Annotated[
    bool, typer.Option("--all-settings", help="Also the settings that have their default.")
]


@app.command()
def create(
    settings: Set = None,
    url: options.Url = None,
    token_file: options.TokenFile = None,
    repo: options.Repo = None,
    branch: options.Branch = None,
    all_settings: AllSettings = False,
    as_json: options.AsJson = False,
) -> None:
    """Make a queue for a branch: 5 tests at a time, direct merge, unless --set says otherwise."""
    where = place.find(url, token_file, repo, branch)
    if where.branch is None:
        raise Failed(Exit.USAGE, "no branch is named", "Name the queue's with --branch")
    chosen = {
        to_camel(name): queue_text.plain_value(value)
        for name, value in CLI_DEFAULTS.items()
        if name != "bisection_concurrency"
    } | parse_settings(settings)
    shown(where, ask(where, "/createQueue", chosen), as_json=as_json, all_settings=all_settings)


@app.command()
def show(
    url: options.Url = None,
    token_file: options.TokenFile = None,
    repo: options.Repo = None,
    branch: options.Branch = None,
    all_settings: AllSettings = False,
    as_json: options.AsJson = False,
) -> None:
    """Show a queue: state, settings, holds, and the pull requests in it."""
    where = place.find(url, token_file, repo, branch)
    shown(where, ask(where, "/getQueue", {}), as_json=as_json, all_settings=all_settings)


@app.command()
def update(
    settings: Set = None,
    expected_version: Annotated[
        int | None, typer.Option("--expected-version", help="Refuse if the queue has changed.")
    ] = None,
    url: options.Url = None,
    token_file: options.TokenFile = None,
    repo: options.Repo = None,
    branch: options.Branch = None,
    all_settings: AllSettings = False,
    as_json: options.AsJson = False,
) -> None:
    """Change settings, all or none."""
    where = place.find(url, token_file, repo, branch)
    changes = parse_settings(settings)
    if not changes:
        raise Failed(Exit.USAGE, "nothing to change", "Give --set KEY=VALUE")
    if expected_version is not None:
        changes["expectedVersion"] = expected_version
    shown(where, ask(where, "/updateQueue", changes), as_json=as_json, all_settings=all_settings)


@app.command()
def pause(
    reason: Reason = None,
    url: options.Url = None,
    token_file: options.TokenFile = None,
    repo: options.Repo = None,
    branch: options.Branch = None,
    as_json: options.AsJson = False,
) -> None:
    """Start and land nothing until resumed; the order is kept."""
    where = place.find(url, token_file, repo, branch)
    change_state(where, "PAUSED", reason, as_json=as_json)


@app.command()
def resume(
    url: options.Url = None,
    token_file: options.TokenFile = None,
    repo: options.Repo = None,
    branch: options.Branch = None,
    as_json: options.AsJson = False,
) -> None:
    """Let the queue run again; lifts no hold."""
    change_state(place.find(url, token_file, repo, branch), "RUNNING", None, as_json=as_json)


@app.command()
def drain(
    reason: Reason = None,
    url: options.Url = None,
    token_file: options.TokenFile = None,
    repo: options.Repo = None,
    branch: options.Branch = None,
    as_json: options.AsJson = False,
) -> None:
    """Land what is tested, start nothing new."""
    where = place.find(url, token_file, repo, branch)
    change_state(where, "DRAINING", reason, as_json=as_json)


@app.command()
def hold(
    text: Annotated[str, typer.Argument(help="Why, for everybody to read.")],
    scope: Annotated[str, typer.Option(help="What it stops: START, LAND or BOTH.")] = "BOTH",
    until: Annotated[
        str | None, typer.Option(help="When it ends by itself, as 2026-03-02T08:00:00Z.")
    ] = None,
    url: options.Url = None,
    token_file: options.TokenFile = None,
    repo: options.Repo = None,
    branch: options.Branch = None,
    as_json: options.AsJson = False,
) -> None:
    """Freeze a queue beside its state."""
    where = place.find(url, token_file, repo, branch)
    body: Json = {"text": text, "scope": scope, "until": until}
    answer = ask(where, "/addQueueHold", body)
    if as_json:
        output.json_value(answer)
    else:
        made = answer.get("hold")
        output.line(f"Held: {made.get('id') if isinstance(made, dict) else made}")


@app.command()
def release(
    hold_id: Annotated[str, typer.Argument(help="The hold's id, from `queue show`.")],
    text: Annotated[str, typer.Option("--reason", help="Why, for the record.")],
    url: options.Url = None,
    token_file: options.TokenFile = None,
    repo: options.Repo = None,
    branch: options.Branch = None,
    as_json: options.AsJson = False,
) -> None:
    """Lift a hold that a person may lift."""
    where = place.find(url, token_file, repo, branch)
    answer = ask(where, "/releaseQueueHold", {"holdId": hold_id, "text": text})
    if as_json:
        output.json_value(answer)
    else:
        output.line(f"Released: {answer.get('holdId')}")


@app.command()
def delete(
    url: options.Url = None,
    token_file: options.TokenFile = None,
    repo: options.Repo = None,
    branch: options.Branch = None,
    as_json: options.AsJson = False,
) -> None:
    """Delete an empty queue; its history stays."""
    where = place.find(url, token_file, repo, branch)
    answer = ask(where, "/deleteQueue", {})
    if as_json:
        output.json_value(answer)
    else:
        output.line(f"Deleted the queue for {answer.get('branch')}")


def ask(where: Place, path: str, members: Json) -> Json:
    """The answer to one request about the queue."""

    async def act() -> Json:
        async with where.opened() as opened:
            body = place.target(opened.repo, opened.branch) | members
            return await opened.client.post(path, body)

    return asyncio.run(act())


def change_state(where: Place, state: str, reason: str | None, *, as_json: bool) -> None:
    """Set the queue's state and print the queue's head."""
    changes: Json = {"state": state} if reason is None else {"state": state, "stateReason": reason}
    answer = ask(where, "/updateQueue", changes)
    if as_json:
        output.json_value(answer)
    else:
        queue_text.head(where.repo.slug, answer)


def parse_settings(texts: Sequence[str] | None) -> Json:
    """`KEY=VALUE` texts as members of a request; names in either spelling.

    Raises Failed(USAGE) for a text without `=`, an unknown name, or a name given twice.
    """
    kinds = typing.get_type_hints(QueueConfig) | {"state": str, "state_reason": str | None}
    names = {to_camel(name): name for name in kinds} | {name: name for name in kinds}
    found: Json = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        name = names.get(key.strip())
        if not equals:
            raise Failed(Exit.USAGE, f"--set {text!r} has no value", "Write KEY=VALUE")
        if name is None:
            near = difflib.get_close_matches(key, names, n=1)
            todo = (
                f"Did you mean {near[0]}?"
                if near
                else "`headgate queue show --all-settings` lists them"
            )
            raise Failed(Exit.USAGE, f"{key!r} is no setting of a queue", todo)
        if to_camel(name) in found:
            raise Failed(Exit.USAGE, f"{key!r} is set twice", "Keep one of them")
        found[to_camel(name)] = parse_value(kinds[name], value.strip())
    return found


def parse_value(kind: object, text: str) -> JsonValue:
    """A setting's value: JSON where it reads as such, a comma list for lists, else the text.

    A comma list of patterns stands for batching rules, `none` is null where a setting may be.
    What the value must be is the service's to say.
    """
    if text == "none" and "None" in str(kind):
        return None
    is_list = "tuple" in str(kind)
    if is_list and not text.startswith("[") and text != "null":
        parts: list[JsonValue] = [part.strip() for part in text.split(",") if part.strip()]
        return [{"targetPattern": part} for part in parts] if kind == RULES else parts
    if kind is str:
        return text
    try:
        value: JsonValue = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return value


def shown(where: Place, answer: Json, *, as_json: bool, all_settings: bool) -> None:
    """Print a queue: its head, what is in it, its settings."""
    if as_json:
        output.json_value(answer)
        return
    queue_text.head(where.repo.slug, answer)
    queue_text.entries(answer)
    queue_text.settings(answer, are_all=all_settings)
