"""`import`: take over the settings of another merge queue; `doctor --fix-workflows`."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from bot.cli import destination, output
from bot.cli.exits import Exit, Failed
from bot.cli.options import AsJson, Result
from bot.uploader import ci
from bot.uploader.transport import Json

app = typer.Typer()

BYTES_MAX = 1024 * 1024
"""A larger file is neither a workflow nor settings."""

Checkout = Annotated[Path, typer.Argument(help="The checkout.")]
Branch = Annotated[
    str | None, typer.Option("--branch", help="Target branch. Default: the default branch.")
]
Rules = Annotated[
    Path | None,
    typer.Option(
        "--rules",
        help="The branch's rules as JSON, of `gh api repos/OWNER/NAME/rules/branches/BRANCH`.",
    ),
]
Repo = Annotated[
    str | None,
    typer.Option(
        "--repo",
        help="[HOST/]OWNER/NAME: read files and rules from GitHub by the App's settings "
        "(HEADGATE_GITHUB_*), beside the service.",
    ),
]
Write = Annotated[
    bool, typer.Option("--write/--dry-run", help="Write the files, or only print the changes.")
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace a .github/headgate.yml that is there.")
]
Open = Annotated[
    bool,
    typer.Option(
        "--open", help="Write the files and open a pull request of them, by your own git and gh."
    ),
]


class Found(NamedTuple):
    """The files of a repository by path, and the name and content of the branch's rules."""

    branch: str
    files: Mapping[str, bytes]
    rules: tuple[str, bytes] | None


@app.command("import")
def import_(
    path: Checkout = Path(),
    branch: Branch = None,
    rules: Rules = None,
    repo: Repo = None,
    write: Write = False,
    overwrite: Overwrite = False,
    open_: Open = False,
    as_json: AsJson = False,
) -> None:
    """Take over the settings of another merge queue: write .github/headgate.yml, mend workflows.

    Reads the files of Mergify, bors, rust-bors, Kodiak and Trunk, GitHub's rule `merge_queue`, and
    all workflows. Lists what has no equal. Writes nothing without --write or --open.
    """
    from bot.cli.moving import opening, plan, report

    if open_ and repo is not None:
        raise Failed(Exit.USAGE, "--open works on a checkout", "Leave out --repo")
    if repo is not None:
        found = from_github(repo, branch, plan.paths())
    else:
        given = None if rules is None else (str(rules), destination.read_bytes(rules, BYTES_MAX))
        files = files_in(path, plan.paths())
        found = Found(branch or default_branch(path), files, given)
    try:
        made = plan.make(found.files, found.branch, found.rules)
    except plan.NotReadable as failed:
        raise Failed(Exit.REFUSED, str(failed), "Mend the file, and import again") from None
    changes_own = any(one.path == plan.OWN_FILE for one in made.changes)
    is_there = changes_own and (plan.OWN_FILE in found.files or (path / plan.OWN_FILE).exists())
    write = write or open_
    if write and is_there and not overwrite:
        raise Failed(
            Exit.REFUSED,
            f"{plan.OWN_FILE} is there already",
            "Nothing was written. Replace it with --overwrite, or delete it",
        )
    opens = open_ and bool(made.changes)
    if opens:
        opening.check(path, made.branch)
    if write:
        _write(path, {one.path: one.after for one in made.changes})
    if not as_json:
        report.show(made, is_written=write)
    opened = opening.run(path, made) if opens else None
    if as_json:
        output.print_json(report.record(made, is_written=write) | {"opened": opened})
    elif opened is not None:
        output.line(f"Opened {opened}")


def fix_workflows(branch: str, queue: Json, *, write: bool) -> Result:
    """Change the workflows of the checkout in the current folder for a queue, as the API has it."""
    from bot.cli.moving import plan, report

    files = files_in(Path(), plan.paths())
    names = queue.get("effectiveRequiredStatuses")
    required = {str(each) for each in names} if isinstance(names, list) else set()
    fix = plan.fix_workflows(files, branch, required, plan.sources_in(files))
    if write:
        _write(Path(), {one.path: one.after for one in fix.changes})
    kind = queue.get("testBranchKind")
    return Result(
        report.record_of_fix(fix, branch, is_written=write),
        lambda: report.show_fix(fix, branch, kind, is_written=write),
    )


def files_in(folder: Path, paths: Iterable[str]) -> dict[str, bytes]:
    """Return those of the paths that exist below a folder, and its workflows. Raises Failed."""
    if not folder.is_dir():
        raise Failed(Exit.USAGE, f"{folder} is not a folder", "Name the checkout")
    below = folder / ".github" / "workflows"
    found = [*below.glob("*.yml"), *below.glob("*.yaml")] if below.is_dir() else []
    chosen = [*(folder / each for each in paths), *found]
    return {
        each.relative_to(folder).as_posix(): destination.read_bytes(each, BYTES_MAX)
        for each in chosen
        if each.is_file() and not each.is_symlink()
    }


def default_branch(folder: Path) -> str:
    """Return the default branch of the remote of a checkout, else its own branch, else `main`."""
    remote = ci.git("-C", str(folder), "symbolic-ref", "--short", "refs/remotes/origin/HEAD")
    own = ci.git("-C", str(folder), "symbolic-ref", "--short", "HEAD")
    return remote.removeprefix("origin/") or own or "main"


def from_github(repo: str, branch: str | None, paths: Iterable[str]) -> Found:
    """Return what GitHub has of a repository. Raises Failed."""
    import asyncio

    from bot import settings, wiring
    from bot.github import importable
    from service.clock import SystemClock
    from service.provider.errors import ProviderError

    ref = destination.required_repository(repo)

    async def read() -> Found:
        client = wiring.live_client(settings.read(), ref, SystemClock())
        try:
            found = await importable.read(client, branch, paths)
        finally:
            await client.github.close()
        return Found(found.branch, found.files, (f"rules of {found.branch}", found.rules))

    try:
        return asyncio.run(read())
    except ProviderError as failed:
        raise Failed(Exit.REFUSED, f"{ref.slug} cannot be read: {failed.message}") from failed


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write files of the checkout. Raises Failed, also for a link, which may lead out of it."""
    for name in texts:
        if (folder / name).resolve() != folder.resolve() / name:
            raise Failed(Exit.REFUSED, f"{name} is a symbolic link", "Nothing was written")
    for name, text in texts.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        except OSError as failed:
            raise Failed(Exit.USAGE, f"{path} cannot be written ({failed.strerror})") from failed
