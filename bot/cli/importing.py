"""`import`: take over the settings of another merge queue; `doctor --fix-workflows`."""

import difflib
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from bot.cli import destination, output
from bot.cli.exits import Exit, Failed
from bot.cli.options import AsJson, Result
from bot.uploader import ci

if TYPE_CHECKING:
    from bot.cli.moving.mapping import Carried, Left
    from bot.cli.moving.plan import Change
    from bot.github.importable import Importable

app = typer.Typer()

T = TypeVar("T")

BYTES_MAX = 1024 * 1024
"""A larger file is neither a workflow nor settings."""
NOTHING = "Nothing"
KINDS = {"PUSH": "pushes to `headgate/merge/**`", "DRAFT_PR": "draft pull requests"}
NEW_BRANCH = "move-to-headgate"

Write = Annotated[
    bool, typer.Option("--write/--dry-run", help="Write the files, or only print the changes.")
]


@app.command("import")
def import_(
    path: Annotated[Path, typer.Argument(help="The checkout.")] = Path(),
    branch: Annotated[
        str | None, typer.Option("--branch", help="Target branch. Default: the default branch.")
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(
            "--rules",
            help="The branch's rules as JSON, of `gh api repos/OWNER/NAME/rules/branches/BRANCH`.",
        ),
    ] = None,
    repo: Annotated[
        str | None,
        typer.Option(
            "--repo",
            help="[HOST/]OWNER/NAME: read files and rules from GitHub by the App's settings "
            "(HEADGATE_GITHUB_*), beside the service.",
        ),
    ] = None,
    write: Write = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a .github/headgate.yml that is there.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Take over the settings of another merge queue: write .github/headgate.yml, mend workflows.

    Reads the files of Mergify, bors, rust-bors, Kodiak and Trunk, GitHub's rule `merge_queue`, and
    all workflows. Lists what has no equal. Writes nothing without --write.
    """
    from bot.cli.moving import plan

    if repo is not None:
        read = from_github(repo, branch, plan.paths())
        files, named = read.files, read.branch
        given: tuple[str, bytes] | None = (f"rules of {named}", read.rules)
    else:
        files, named = files_in(path, plan.paths()), branch or default_branch(path)
        given = None if rules is None else (str(rules), _bytes_of(rules))
    try:
        made = plan.make(files, named, given)
    except plan.NotReadable as failed:
        raise Failed(Exit.REFUSED, str(failed), "Mend the file, and import again") from None
    existing = [one for one in made.changes if one.path == plan.OWN_FILE and one.before is not None]
    if write and existing and not overwrite:
        raise Failed(
            Exit.REFUSED,
            f"{plan.OWN_FILE} is there already",
            "Nothing was written. Replace it with --overwrite, or delete it",
        )
    if write:
        _write(path, made.changes)
    commands = _commands(made.changes)
    if as_json:
        output.print_json(
            {
                "branch": made.branch,
                "sources": made.sources,
                "testBranchKind": made.vehicle.name,
                "written": write,
                "files": [_shown(one) for one in made.changes],
                "carried": [_carried(one) for one in made.carried],
                "left": [_left(one) for one in made.left],
                "commands": commands,
            }
        )
        return
    output.line(f"{' and '.join(made.sources) or 'No settings of another queue'}, for {named}")
    _print_changes(made.changes, is_written=write)
    _print_group("Carried over", made.carried, _print_carried)
    _print_all_left(made.left)
    if made.changes:
        output.line("")
        output.line("Next" if write else "Next, after --write")
        for each in commands:
            output.print_text(f"  {each}")


def fix_workflows(branch: str, required: Iterable[str], *, write: bool) -> Result:
    """Change the workflows of the checkout in the current folder."""
    from bot.cli.moving import plan

    folder = Path()
    files = files_in(folder, plan.paths())
    fix = plan.fix_workflows(files, branch, set(required), plan.sources_in(files))
    if write:
        _write(folder, fix.changes)
    answer = {
        "branch": branch,
        "testBranchKind": fix.vehicle.name,
        "written": write,
        "files": [_shown(one) for one in fix.changes],
        "left": [_left(one) for one in fix.left],
    }

    def show() -> None:
        output.line(f"Workflows, for {branch}: test branches are {KINDS[fix.vehicle.name]}")
        _print_changes(fix.changes, is_written=write)
        _print_all_left(fix.left)

    return Result(answer, show)


def files_in(folder: Path, paths: Iterable[str]) -> dict[str, bytes]:
    """Return those of the paths that exist below a folder, and its workflows. Raises Failed."""
    if not folder.is_dir():
        raise Failed(Exit.USAGE, f"{folder} is not a folder", "Name the checkout")
    below = folder / ".github" / "workflows"
    found = [*below.glob("*.yml"), *below.glob("*.yaml")] if below.is_dir() else []
    chosen = [*(folder / each for each in paths), *found]
    return {
        each.relative_to(folder).as_posix(): _bytes_of(each)
        for each in chosen
        if each.is_file() and not each.is_symlink()
    }


def _bytes_of(path: Path) -> bytes:
    try:
        if path.stat().st_size > BYTES_MAX:
            raise Failed(Exit.USAGE, f"{path} is larger than {BYTES_MAX >> 20} MiB")
        return path.read_bytes()
    except OSError as failed:
        raise Failed(Exit.USAGE, f"{path} cannot be read ({failed.strerror})") from failed


def default_branch(folder: Path) -> str:
    """Return the default branch of the remote of a checkout, else its own branch, else `main`."""
    remote = ci.git("-C", str(folder), "symbolic-ref", "--short", "refs/remotes/origin/HEAD")
    own = ci.git("-C", str(folder), "symbolic-ref", "--short", "HEAD")
    return remote.removeprefix("origin/") or own or "main"


def from_github(repo: str, branch: str | None, paths: Iterable[str]) -> "Importable":
    """Return what GitHub has of a repository. Raises Failed."""
    import asyncio

    from bot import settings, wiring
    from bot.github import importable
    from service.clock import SystemClock
    from service.provider.errors import ProviderError

    ref = destination.required_repository(repo)

    async def read() -> "Importable":
        client = wiring.live_client(settings.read(), ref, SystemClock())
        try:
            return await importable.read(client, branch, paths)
        finally:
            await client.github.close()

    try:
        return asyncio.run(read())
    except ProviderError as failed:
        raise Failed(Exit.REFUSED, f"{ref.slug} cannot be read: {failed.message}") from failed


def _write(folder: Path, changes: "Iterable[Change]") -> None:
    for each in changes:
        path = folder / each.path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(each.after.encode())
        except OSError as failed:
            raise Failed(Exit.USAGE, f"{path} cannot be written ({failed.strerror})") from failed


def _commands(changes: "Iterable[Change]") -> list[str]:
    """Return the commands that make a pull request of what was written."""
    paths = shlex.join(each.path for each in changes)
    if not paths:
        return []
    return [
        f"git switch -c {NEW_BRANCH}",
        f"git add {paths}",
        'git commit -m "Move the merge queue to Headgate"',
        f"git push -u origin {NEW_BRANCH}",
        "gh pr create --fill",
        "headgate doctor    # once it is merged",
    ]


def _diff(change: "Change") -> str:
    before = [] if change.before is None else change.before.splitlines()
    lines = difflib.unified_diff(
        before, change.after.splitlines(), change.path, change.path, n=2, lineterm=""
    )
    return "\n".join(lines)


def _action(change: "Change") -> str:
    if change.before is None:
        return "create"
    return "edit" if change.lines else "replace"


def _shown(change: "Change") -> dict[str, object]:
    return {"path": change.path, "action": _action(change), "diff": _diff(change)}


def _carried(one: "Carried") -> dict[str, object]:
    setting, _, _ = one.written.partition(":")
    return {**asdict(one.place), "setting": setting, "to": one.to, "remark": one.remark}


def _left(one: "Left") -> dict[str, object]:
    return {**asdict(one.place), "why": one.why, "todo": one.todo}


def _print_changes(changes: "Iterable[Change]", *, is_written: bool) -> None:
    """Print each file with its changes."""
    chosen = list(changes)
    word = "written" if is_written else "not written yet"
    output.line("")
    output.line(f"Files ({len(chosen)}, {word})" if chosen else "Files: nothing to change")
    for each in chosen:
        output.line(f"  {_action(each)} {each.path}")
        for line in _diff(each).splitlines()[2:]:
            output.print_text(f"    {output.plain(line)}")


def _print_all_left(left: "Iterable[Left]") -> None:
    """Print what was not carried over: first what somebody has to do."""
    chosen = list(left)
    _print_group("To do", [one for one in chosen if not _needs_nothing(one)], _print_left)
    _print_group("Not carried over", [one for one in chosen if _needs_nothing(one)], _print_left)


def _needs_nothing(one: "Left") -> bool:
    return one.todo.startswith(NOTHING)


def _print_group(heading: str, items: Iterable[T], show: Callable[[T], None]) -> None:
    """Print items under a heading with their number."""
    chosen = list(items)
    if chosen:
        output.line("")
        output.line(f"{heading} ({len(chosen)})")
    for each in chosen:
        show(each)


def _at(place: Mapping[str, object]) -> str:
    line = "" if place["line"] is None else f":{place['line']}"
    said = "".join(f" {place[name]}" for name in ("key", "value") if place[name])
    return f"{place['file']}{line}{said}"


def _print_carried(one: "Carried") -> None:
    remark = f" ({one.remark})" if one.remark else ""
    output.line(f"  {_at(asdict(one.place))} → {one.written}{remark}")


def _print_left(one: "Left") -> None:
    output.line(f"  {_at(asdict(one.place))}")
    output.line(f"    {one.why}")
    if not _needs_nothing(one) or one.todo != f"{NOTHING}.":
        output.line(f"    → {one.todo}")
