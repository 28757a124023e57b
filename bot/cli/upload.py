"""`upload` and `test`: run a command, send its reports, end as quarantine says (FLAKY.md 2.10).

How an upload is made, sent and judged is `bot/uploader`, which CI's action runs without us.
"""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from bot.cli import options, output, place, running, validate
from bot.cli.exits import Exit, Failed
from bot.cli.running import Ended
from bot.cli.sent_bytes import SentBytes
from bot.uploader import ci, files, oidc, sending, verdict
from bot.uploader.files import Report
from bot.uploader.sending import Json, Request, Service, Unsent
from bot.uploader.verdict import Ending, Told
from service.clock import SystemClock
from service.testhealth.reports.results import Format
from service.vocabulary import RepoRef

COMMAND_KEY_MAX = 16

app = typer.Typer()

Command = Annotated[
    list[str] | None, typer.Argument(help="Behind `--`: run it first, then upload.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Read the reports here, send nothing.")]
Strict = Annotated[bool, typer.Option("--strict", help="End with 70 when the upload fails.")]
Org = Annotated[str | None, typer.Option("--org", help="The organization. Default: the token's.")]
Sha = Annotated[str | None, typer.Option("--sha", help="Commit under test.")]
Tested = Annotated[str | None, typer.Option("--branch", help="Branch under test.")]
Pull = Annotated[int | None, typer.Option("--pr", help="Pull request under test.", min=1)]
Job = Annotated[str | None, typer.Option("--job", help="The CI job, the same in every run.")]
Matrix = Annotated[str, typer.Option("--matrix", help="Its values in the job's matrix.")]
Variant = Annotated[str, typer.Option("--variant", help="Flavor of the tests.")]
Owners = Annotated[Path | None, typer.Option("--codeowners", help="CODEOWNERS to send along.")]
Timeout = Annotated[
    str, typer.Option("--timeout", help="How long one try to send may take, all of it.")
]
NoProgress = Annotated[bool, typer.Option("--no-progress", help="Show no progress.")]


@dataclass(frozen=True, slots=True)
class Wish:
    """An upload and its destination; `org` None: the token's own, or the repository's `owner`."""

    globs: tuple[str, ...]
    meta: Json
    url: str
    token_file: Path | None
    org: str | None
    owner: str
    codeowners: bytes
    strict: bool
    timeout_s: float
    shows_progress: bool


@dataclass(frozen=True, slots=True)
class Sent:
    """What the service said of each upload, as it came and read, as far as it came."""

    raw: list[Json] = field(default_factory=list)
    told: Told = field(default_factory=Told)


@app.command(name="test")
@app.command(name="upload")
def upload(
    context: typer.Context,
    junit: options.Junit,
    command: Command = None,
    dry_run: DryRun = False,
    strict: Strict = False,
    org: Org = None,
    repo: options.Repo = None,
    sha: Sha = None,
    branch: Tested = None,
    pr: Pull = None,
    job: Job = None,
    matrix: Matrix = "",
    variant: Variant = "",
    source_root: options.SourceRoot = "",
    report_format: options.ReportFormat = None,
    codeowners: Owners = None,
    timeout: Timeout = f"{sending.TIMEOUT_S:g}s",
    no_progress: NoProgress = False,
    url: options.Url = None,
    token_file: options.TokenFile = None,
    as_json: options.AsJson = False,
) -> int:
    """Upload test reports, after a command if one is given; end as quarantine says."""
    if dry_run:
        if command:
            raise Failed(Exit.USAGE, "--dry-run runs no command", "Leave one of them out")
        found = files.reports_in(junit, 0, output.told)
        root = source_root or place.find_root()
        return validate.shown(found, report_format, root, as_json=as_json)
    if context.info_name == "test" and not command:
        raise Failed(Exit.USAGE, "no command is given", "Write it behind `--`")
    said: Json = {"sha": sha, "branch": branch, "pr_number": pr, "job": job, "variant": variant}
    source_root = source_root or place.find_root()
    said |= {"source_root": source_root, "format": word(report_format)}
    repository = place.find_repository(repo)
    wish = Wish(
        globs=tuple(junit),
        meta=meta_of(said, repository, matrix),
        url=place.find_url(url),
        token_file=token_file,
        org=org,
        owner=repository.owner,
        codeowners=b"" if codeowners is None else content_of(codeowners),
        strict=strict,
        timeout_s=options.seconds(timeout),
        shows_progress=not no_progress,
    )
    return ended(wish, command or [], as_json=as_json)


def ended(wish: Wish, command: Sequence[str], *, as_json: bool) -> int:
    """Run the command, upload what it left, say how that ended; the exit code."""
    started_at = SystemClock().now()
    ran = Ended(0, was_killed=False)
    if command:
        # stdout is the answer's alone.
        ran = running.run(command, keeps_stdout=as_json)
        wish = replace(wish, meta={**wish.meta, **ran_of(command, ran, started_at)})
    before = ci.triggering_run_of(os.environ)
    if before is not None:
        warned(f"{before.said}.")
    sent = Sent()
    since_s = started_at.timestamp() if command else 0.0
    found = files.reports_in(wish.globs, since_s, warned)
    sent.told.unread.extend(found.unread)
    try:
        ending = uploaded(wish, found.reports, ran.code, sent)
    except Unsent as trouble:
        ending = verdict.unsent_ending(trouble, sent.told, ran.code, strict=wish.strict)
    if ran.was_killed and ending.exit_code != ran.code:
        ending = Ending(ran.code, verdict.sentence_of(sent.told, ran.code))
    if as_json:
        wanted = Format(str(wish.meta["format"])) if "format" in wish.meta else None
        read = validate.records_of(found, wanted, str(wish.meta.get("source_root", "")))
        said: Json = {"exit_code": ending.exit_code, "message": ending.said, "uploads": sent.raw}
        output.json_value({**said, "files": read})
    warned(ending.said)
    return ending.exit_code


def ran_of(command: Sequence[str], ran: Ended, started_at: datetime) -> Json:
    """Return the metadata of a command that was run."""
    key = hashlib.sha256("\0".join(command).encode("utf-8", "surrogateescape")).hexdigest()
    return {
        "ran_at": started_at.isoformat(timespec="milliseconds"),
        "command_exit_code": min(ran.code, verdict.EXIT_CODE_MAX),
        "runner": running.runner_of(command),
        "command_key": key[:COMMAND_KEY_MAX],
    }


def uploaded(wish: Wish, found: Sequence[Report], command_code: int, sent: Sent) -> Ending:
    """How the uploads end; `sent` gets what the service says of each. Raises Unsent."""
    if not found:
        return verdict.no_report_ending(command_code)
    token = token_of(wish)
    service = Service(wish.url, token, warned, timeout_s=wish.timeout_s)
    # The owner names the organization, and an OIDC token may ask for nothing but uploads.
    own = wish.owner if oidc.is_oidc(token) else ""
    org = wish.org or own or org_of(service)
    batches = list(files.batches(found))
    meta = {**wish.meta, "org_url_slug": org}
    meta |= files.session_of(len(batches), sent.told.unread)
    with SentBytes(found, is_shown=wish.shows_progress) as progress:
        for index, batch in enumerate(batches):
            owners = b"" if index else wish.codeowners
            kind, body = files.form(meta, batch, owners)
            asked = Request(sending.UPLOAD, body, kind, progress.of(batch, len(body)))
            try:
                raw = service.ask(asked)
            except Unsent as trouble:
                verdict.pass_over(sent.told, batch, trouble)
                continue
            sent.raw.append(raw)
            sent.told.answers.append(verdict.answer_of(raw))
            progress.done(batch)
            for warning in sent.told.answers[-1].warnings:
                warned(warning)
    return verdict.ending_of(sent.told, command_code)


def meta_of(said: Json, repo: RepoRef, matrix: str) -> Json:
    """The metadata: options first, then the environment and the checkout.

    Raises Failed(USAGE) when no commit is known.
    """
    given = {name: value for name, value in said.items() if value}
    meta = {**ci.facts_of(os.environ, matrix), **given, "repo": place.named(repo)}
    if "sha" not in meta:
        raise Failed(Exit.USAGE, "no commit is known", "Give --sha, or run in a checkout")
    return meta


def token_of(wish: Wish) -> str:
    """The API token, or the job's OIDC token where there is none.

    Raises Unsent without either: a fork's job has no secrets, and must not fail.
    """
    try:
        return place.find_token(wish.token_file)
    except Failed as missing:
        given = wish.token_file is not None or os.environ.get("HEADGATE_TOKEN", "").strip()
        found = "" if given else oidc.token_of(os.environ, wish.url)
        if not found:
            raise Unsent(missing.what) from missing
        return found


def org_of(service: Service) -> str:
    """The organization that the token belongs to. Raises Unsent."""
    organization = service.ask(Request("/tokens/self")).get("organization")
    if not isinstance(organization, dict):
        raise Unsent("the answer names no organization: is it Headgate")
    return str(organization.get("slug"))


def content_of(path: Path) -> bytes:
    """What a file holds. Raises Failed(USAGE)."""
    try:
        return path.read_bytes()
    except OSError as failed:
        raise Failed(Exit.USAGE, f"{path} cannot be read ({failed.strerror})") from failed


def word(report_format: Format | None) -> str | None:
    """The format as the API names it."""
    return None if report_format is None else report_format.value


def warned(text: str) -> None:
    """Say on stderr who speaks: the command before has used the same terminal."""
    output.told(f"headgate: {text}")
