"""`doctor`: what keeps a repository's queue from working, and what to do about it."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from bot.cli import destination, importing, options, output
from bot.cli.client import Client, Refusal
from bot.cli.exits import Exit, Failed
from bot.cli.options import Result
from bot.uploader.transport import Json
from service.vocabulary import RepoRef

app = typer.Typer()

POLL_S = 3.0
DRY_TEST = "--dry-test"
"""The advice of a finding that a dry test has followed."""

GROUPS = {"error": "Errors", "warning": "Warnings", "note": "Notes", "ok": "In order"}

Name = Annotated[str | None, typer.Argument(metavar="[OWNER/REPO]", help="The repository.")]
DryTest = Annotated[
    bool, typer.Option("--dry-test", help="Build a test branch; see which checks report on it.")
]
Live = Annotated[
    bool,
    typer.Option("--live", help="Also try GitHub itself, on a scratch repository: it writes."),
]
Record = Annotated[
    Path | None,
    typer.Option(
        "--record",
        help="With --live: write what GitHub answers and sends to this file, without names.",
    ),
]
Fix = Annotated[
    bool,
    typer.Option(
        "--fix-workflows",
        help="Instead, change the workflows of this checkout so that they run on test branches.",
    ),
]
Timeout = Annotated[
    str, typer.Option("--timeout", help="How long the dry test waits for checks, up to 60m.")
]


class Place(NamedTuple):
    """A repository and branch as requests name them; the branch may be missing."""

    client: Client
    repo: Json
    branch: str | None

    def post(self, path: str, **members: object) -> Json:
        """Return the answer to a request about the place."""
        branch = {} if self.branch is None else {"targetBranch": self.branch}
        return self.client.post(path, {"repo": self.repo, **branch, **members})


@options.client_later_command(app)
def doctor(
    find_client: Callable[[], Client],
    name: Name = None,
    branch: Annotated[
        str | None,
        typer.Option("--branch", help="Target branch. Default: the only queue's, else main's."),
    ] = None,
    dry_test: DryTest = False,
    timeout: Timeout = "15m",
    live: Live = False,
    record: Record = None,
    fix_workflows: Fix = False,
    write: importing.Write = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before --live writes.")] = False,
    host: Annotated[
        bool, typer.Option("--host", help="Examine this machine instead, with the App.")
    ] = False,
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="With --host: folder of state and key.")
    ] = None,
) -> Result:
    """Find what keeps a queue from working. Exit 1 if there is an error.

    Needs a token of role admin. Changes nothing without --dry-test or --live; --live also needs
    the App's settings (HEADGATE_GITHUB_*), so run it beside the service. --fix-workflows
    changes files of this checkout with --write, and prints the changes without. --host needs
    the settings of the service and no token, and works before the first start.
    """
    if host:
        if name or branch or dry_test or live or fix_workflows or write:
            raise Failed(Exit.USAGE, "--host examines no repository", "Give it alone")
        return _result(None, "this machine", _of_host(data_dir))
    if record and not live:
        raise Failed(Exit.USAGE, "--record records the live checks", "Give --live, too")
    client = find_client()
    minutes = minutes_of(timeout)
    if live and not yes:
        typer.confirm("Write branches and a pull request to the repository?", abort=True, err=True)
    from bot.cli.progress import Spinner

    ref = destination.find_repository(name, client)
    place = Place(client, destination.repository_members(ref), branch)
    with Spinner(f"examining {ref.slug}") as spinner:
        examined = place.post("/runDoctor")
        findings = output.objects(examined["findings"])
        place = place._replace(branch=str(examined["branch"]))
        if fix_workflows:
            return importing.fix_workflows(str(place.branch), queue_of(place), write=write)
        if dry_test or live:
            spinner.show(f"dry test: waiting up to {minutes} min for required checks")
            others = [one for one in findings if DRY_TEST not in str(one["mend"])]
            findings = tried(place, minutes) + others
        if live:
            spinner.show("trying GitHub itself")
            findings = confirmed(ref, str(place.branch), record) + findings
    return _result(place.branch, f"{ref.slug} {place.branch}", findings)


def _result(branch: str | None, title: str, findings: list[Json]) -> Result:
    """Return the findings, the worst first."""
    findings.sort(key=lambda one: list(GROUPS).index(str(one["severity"])))
    passed = all(one["severity"] != "error" for one in findings)
    answer: Json = {"branch": branch, "passed": passed, "findings": findings}
    end = None if passed else typer.Exit(Exit.FALSE)
    return Result(answer, lambda: show(title, findings), end)


def _of_host(data_dir: Path | None) -> list[Json]:
    """Return what was found on this machine."""
    import asyncio

    from bot.host import audits

    found = asyncio.run(audits.examine(data_dir))
    return [asdict(one) | {"severity": one.severity.value} for one in found]


def queue_of(place: Place) -> Json:
    """Return the settings of the branch's queue; empty without a queue."""
    try:
        return place.post("/getQueue")
    except Refusal as refusal:
        if refusal.problem_code != "queue_not_found":
            raise
        return {}


def minutes_of(timeout: str) -> int:
    """Return whole minutes. Raises Failed(USAGE)."""
    seconds = options.seconds(timeout)
    if not 60 <= seconds <= 3600:
        raise Failed(Exit.USAGE, f"--timeout {timeout} is out of range", "Give 1m to 60m")
    return round(seconds / 60)


def tried(place: Place, minutes: int) -> list[Json]:
    """Run a dry test and return its findings; its branch is always removed."""
    made = place.post("/startDryTest", timeoutMinutes=minutes)
    output.log(f"dry test on {made['branch']}: waiting up to {minutes} min for required checks")
    try:
        while True:
            seen = place.post("/getDryTest", branch=made["branch"], sha=made["sha"])
            if seen["over"]:
                return output.objects(seen["findings"])
            place.client.clock.sleep(POLL_S)
    finally:
        place.post("/endDryTest", branch=made["branch"])


def confirmed(ref: RepoRef, branch: str, record: Path | None) -> list[Json]:
    """Return what trying GitHub itself found; each check is logged as it ends."""
    import asyncio
    from contextlib import nullcontext

    from bot import settings, wiring
    from bot.github import live, recording
    from service.clock import RandomIds, SystemClock

    async def all_of() -> list[Json]:
        client = wiring.live_client(settings.read(), ref, SystemClock())
        recorder = nullcontext() if record is None else recording.recorded(client, record)
        found: list[Json] = []
        try:
            async with recorder as kept:
                async for one in live.confirm(client, branch, RandomIds().uuid()):
                    output.log(f"{one.audit}: {one.severity.value}")
                    found.append(asdict(one) | {"severity": one.severity.value})
        finally:
            await client.github.close()
        if kept is not None:
            output.log(f"{record}: {kept.summary()}; look through it before you send it")
        return found

    return asyncio.run(all_of())


def show(title: str, findings: list[Json]) -> None:
    """Print the findings in groups, the worst first."""
    output.line(title)
    for severity, heading in GROUPS.items():
        group = [one for one in findings if one["severity"] == severity]
        if not group:
            continue
        output.line("")
        output.line(f"{heading} ({len(group)})")
        for one in group:
            output.line(f"  {one['audit']}: {one['found']}")
            if one["mend"]:
                output.line(f"    → {one['mend']}")
