"""`config …` and `queue apply`: check a file of settings, compare and apply it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from bot.cli import destination, options, output
from bot.cli.client import Refusal
from bot.cli.destination import Queue
from bot.cli.exits import Exit, Failed
from bot.cli.options import AsJson, Result
from bot.uploader.transport import Json

app = typer.Typer(help="Check .github/headgate.yml, print its schema, compare it with the queue.")

DEFAULT_FILE = Path(".github/headgate.yml")
FROM_FILE = "FILE"

File = Annotated[Path, typer.Argument(help="The file of settings.")]


@dataclass(frozen=True, slots=True)
class Change:
    """A setting that the file and the queue have with different values, as the API names them.

    `source`: where the queue's value comes from. `written` null and source FILE: the file that is
    in force has the setting and this one does not.
    """

    setting: str
    queue: object
    file: object
    source: str | None


@app.command()
def validate(file: File = DEFAULT_FILE, as_json: AsJson = False) -> int:
    """Check a file; exit 1 if it has faults. No service is needed."""
    from bot.github import other_queues
    from service.mergequeue.engine.model import FileFault
    from service.mergequeue.operations import repository_file

    checked = repository_file.check(destination.read_bytes(file))
    tool = other_queues.tool_of(file.absolute().as_posix())
    if tool is not None:
        message = f"This is the settings file of {tool}. `headgate import` takes it over."
        checked = repository_file.Checked(faults=(FileFault(str(file), None, "", message),))
    faults = [{**asdict(each), "path": str(file)} for each in checked.faults]
    if as_json:
        sections = (
            {} if faults else {name: written(checked.sections[name]) for name in checked.sections}
        )
        output.print_json(
            {"path": str(file), "valid": not faults, "faults": faults, "queues": sections}
        )
    else:
        for each in faults:
            output.line(place_of(each))
        if not faults:
            named = ", ".join(checked.sections) or "no branch"
            output.line(f"{file} is valid: settings for {named}")
    return Exit.FALSE if faults else Exit.DONE


@app.command()
def schema(as_json: AsJson = False) -> None:
    """Print the JSON Schema of the file, as /schemas/headgate.json serves it."""
    from service.mergequeue.operations import repository_file

    del as_json  # the schema is JSON either way
    output.print_json(repository_file.schema())


@options.queue_command(app)
def diff(queue: Queue, file: File = DEFAULT_FILE) -> Result:
    """Compare a file with the settings of the queue; exit 1 if they differ."""
    settings = _settings_in(file, queue.branch)
    answer = queue.post("/getQueue", {})
    changes = differences(answer, settings, is_whole=True)
    end = typer.Exit(Exit.FALSE) if changes else None
    return Result(record(queue.branch, changes), lambda: show(queue, changes), end)


def apply(
    queue: Queue,
    file: File,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the changes only.")] = False,
) -> Result:
    """Set what a file has for the branch; creates the queue if there is none. Safe to repeat."""
    from bot.cli import queue_settings

    settings = _settings_in(file, queue.branch)
    answer = existing(queue)
    changes = differences(answer or {}, settings, is_whole=False)
    values = {each.setting: each.file for each in changes}
    if not dry_run and answer is None:
        queue.post("/createQueue", queue_settings.created_with() | values)
    elif not dry_run and changes:
        queue.post("/updateQueue", values)
    more = {"created": answer is None and not dry_run, "dryRun": dry_run}

    def print_outcome() -> None:
        if answer is None:
            word = "would be created" if dry_run else "created"
            output.line(f"The queue for {queue.branch} {word}")
        show(queue, changes)

    return Result(record(queue.branch, changes) | more, print_outcome)


def existing(queue: Queue) -> Json | None:
    """Return the queue's settings, None if the branch has no queue."""
    try:
        return queue.post("/getQueue", {})
    except Refusal as refusal:
        if refusal.problem_code != "queue_not_found":
            raise
        return None


def _settings_in(file: Path, branch: str) -> Mapping[str, object]:
    """Return the settings that a file has for a branch, as JSON by their names in the API.

    Raises Failed(REFUSED) for a file with faults, Failed(USAGE) if it has nothing for the branch.
    """
    from service.mergequeue.operations import repository_file

    checked = repository_file.check(destination.read_bytes(file))
    if checked.faults:
        first = place_of({**asdict(checked.faults[0]), "path": str(file)})
        more = f"; {len(checked.faults) - 1} more" if len(checked.faults) > 1 else ""
        raise Failed(
            Exit.REFUSED, first.rstrip(".") + more, f"See `headgate config validate {file}`"
        )
    if checked.section_for(branch) is None:
        named = ", ".join(checked.sections) or "none"
        raise Failed(
            Exit.USAGE,
            f"{file} has no settings for the branch {branch!r}; branches in it: {named}",
            f"Add `{branch}:` below `queues:`, or name another branch with --branch",
        )
    return written(checked.settings_for(branch))


def written(settings: Mapping[str, object]) -> dict[str, object]:
    """Return settings as JSON, by their names in the API."""
    from pydantic.alias_generators import to_camel

    from service.settings import as_json

    return {to_camel(name): as_json(value) for name, value in settings.items()}


def differences(
    answer: Mapping[str, object], settings: Mapping[str, object], *, is_whole: bool
) -> list[Change]:
    """Return the settings whose value in the file is not the queue's, by name.

    `is_whole`: also those that come from the file in force and are not in this one.
    """
    sources = answer.get("settingSources")
    source_of = sources if isinstance(sources, dict) else {}
    missing = [name for name, source in source_of.items() if is_from_file(source)]
    names = {*settings, *(missing if is_whole else ())}
    return [
        Change(name, answer.get(name), settings.get(name), source_of.get(name))
        for name in sorted(names)
        if name not in settings or not is_equal(answer.get(name), settings[name])
    ]


def is_from_file(source: object) -> bool:
    """Return whether a source is the repository's file; the service may answer in lower case."""
    return str(source).upper() == FROM_FILE


def is_equal(shown: object, given: object) -> bool:
    """Compare two values; the service may answer enums in lower case."""
    if isinstance(shown, str) and isinstance(given, str):
        return shown == given or shown.upper() == given
    return shown == given


def record(branch: str, changes: list[Change]) -> dict[str, object]:
    """Return the comparison as one JSON value."""
    return {"branch": branch, "changes": [asdict(each) for each in changes]}


def show(queue: Queue, changes: list[Change]) -> None:
    """Print the comparison."""
    from bot.cli.queue_settings import written as text_of

    if not changes:
        output.line(f"The queue for {queue.branch} has the settings of the file")
        return
    output.print_table(
        ("Setting", "Queue", "File", "Source"),
        [
            (
                each.setting,
                text_of(each.queue),
                "removed" if each.file is None else text_of(each.file),
                each.source or "",
            )
            for each in changes
        ],
    )


def place_of(fault: Mapping[str, object]) -> str:
    """Return `.github/headgate.yml:7: …`, as editors and CI read it."""
    line = fault.get("line")
    return f"{fault['path']}:{f'{line}:' if line else ''} {fault['message']}"
