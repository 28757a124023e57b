"""`upload`, `test`, `validate`: run a command, send its reports, end as quarantine says.

How an upload is made, sent and judged is `bot/uploader`, which CI's action runs alone. The command
runs in the same terminal, with the same signals. The name of its test runner is that of a program
whose exit code is the command's own, so that the service can tell what the code means: what a shell
line of several commands, a script of `package.json` or `make` ends with is not the runner's.
"""

import glob
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Annotated, NamedTuple

import typer

from bot.cli import destination, live, options, output, repeating, runner_ends
from bot.cli.exits import Exit, Failed
from bot.cli.job_service import JobService
from bot.uploader import ci, files, transport, uploading, verdict
from bot.uploader.files import Reports
from bot.uploader.transport import Clock, Json, RequestFailed
from bot.uploader.uploading import Content
from bot.uploader.verdict import Ending, Outcome
from service.testhealth.reports.results import Format
from service.vocabulary import RepoRef

COMMAND_KEY_MAX = 16
CLOCK = Clock()

app = typer.Typer()

Command = Annotated[
    list[str] | None, typer.Argument(help="Behind `--`: run it first, then upload.")
]
Named = Annotated[list[str] | None, typer.Argument(metavar="FILE", help="Reports to read.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Read the reports here, send nothing.")]
Strict = Annotated[bool, typer.Option("--strict", help="End with 70 when the upload fails.")]
Org = Annotated[str | None, typer.Option("--org", help="The organization. Default: the token's.")]
Sha = Annotated[str | None, typer.Option("--sha", help="Commit under test.")]
Tested = Annotated[str | None, typer.Option("--branch", help="Branch under test.")]
Pull = Annotated[int | None, typer.Option("--pr", help="Pull request under test.", min=1)]
Job = Annotated[str | None, typer.Option("--job", help="The CI job, the same in every run.")]
Matrix = Annotated[str, typer.Option("--matrix", help="The values of the job's matrix.")]
Variant = Annotated[str, typer.Option("--variant", help="Flavor of the tests.")]
Owners = Annotated[Path | None, typer.Option("--codeowners", help="CODEOWNERS to send along.")]
Timeout = Annotated[
    str, typer.Option("--timeout", help="How long one attempt to send may take in total.")
]
Final = Annotated[
    bool,
    typer.Option(
        "--reports-are-final",
        help="The runner tries no failed test again after it has written its report file.",
    ),
]
NoProgress = Annotated[bool, typer.Option("--no-progress", help="Show no progress.")]

_RUNNER_MAX = 255

# Words that may precede the program that runs the tests.
_LAUNCHERS = re.compile(
    r"bunx|bundle|coverage|dlx|env|exec|node|npx|php|pipenv|poetry|py|python|run|time|uv|uvx"
    r"|xvfb-run"
)

# Programs that run scripts of a project by name, unless one of these words follows.
_OF_SCRIPTS = frozenset({"bun", "npm", "pnpm", "yarn"})
_OF_PROGRAMS = frozenset({"dlx", "exec", "x"})

_SHELLS = frozenset({"bash", "dash", "sh", "zsh"})

# Anything by which a shell line is more than one plain command.
_MORE_THAN_ONE = re.compile(r"[;&|<>()`$\n]|^\s*!|\b(?:if|while|for|until|case)\b")

# Programs that do many things: the word after the program tells which.
_BY_WORD = frozenset({"bazel", "bazelisk", "cargo", "go"})
_NAMES = {"bazelisk test": "bazel test"}

_PYTEST, _PYTEST_WITH_COVERAGE = "pytest", "pytest-cov"
_COVERAGE = "--cov"
_OPTIONS_FILE = ("-c", "--config-file", "--rootdir")
_PYTEST_FILES = (
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)
_PARENTS_MAX = 20


# The file descriptor of standard error.
_STDERR = 2

# What a shell adds to a signal's number.
_KILLED = 128


@dataclass(frozen=True, slots=True)
class _Ended:
    """The end of a command: its exit code, 128 + signal when it was killed."""

    code: int
    was_killed: bool


class Upload(NamedTuple):
    """An upload and its target service."""

    globs: Sequence[str]
    metadata: Json
    job: JobService
    codeowners: bytes
    strict: bool
    timeout_s: float
    shows_progress: bool
    reports_are_final: bool


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
    timeout: Timeout = f"{transport.TIMEOUT_S:g}s",
    no_progress: NoProgress = False,
    reports_are_final: Final = False,
    url: options.Url = None,
    token_file: options.TokenFile = None,
    as_json: options.AsJson = False,
) -> int:
    """Upload test reports, after a command if given. Fails only for unquarantined failures."""
    if dry_run and command:
        raise Failed(Exit.USAGE, "--dry-run runs no command", "Leave one of them out")
    if dry_run:
        return check_reports(junit, source_root, report_format, as_json=as_json)
    if context.info_name == "test" and not command:
        raise Failed(Exit.USAGE, "no command is given", "Write it behind `--`")
    given: Json = {
        "sha": sha,
        "branch": branch,
        "pr_number": pr,
        "job": job,
        "variant": variant,
        "source_root": source_root or destination.find_source_root(),
        "format": None if report_format is None else report_format.value,
    }
    repository = destination.find_repository(repo)
    wanted = Upload(
        globs=junit,
        metadata=metadata_of(given, repository, matrix),
        job=JobService(destination.find_url(url), token_file, repository, org),
        codeowners=b"" if codeowners is None else destination.read_bytes(codeowners),
        strict=strict,
        timeout_s=options.seconds(timeout),
        shows_progress=not no_progress,
        reports_are_final=reports_are_final,
    )
    return _run_and_upload(wanted, command or [], as_json=as_json)


@app.command()
def validate(
    named: Named = None,
    junit: options.MoreJunit = None,
    source_root: options.SourceRoot = "",
    report_format: options.ReportFormat = None,
    as_json: options.AsJson = False,
) -> int:
    """Read test reports on this machine, and say what to fix in them."""
    # A shell that expanded a pattern gives names, which may contain the letters of patterns.
    literal = [glob.escape(each) if os.path.exists(each) else each for each in named or ()]
    globs = [*literal, *(junit or ())]
    if not globs:
        raise Failed(Exit.USAGE, "no report is named", "Write `headgate validate FILE`")
    return check_reports(globs, source_root, report_format, as_json=as_json)


def check_reports(
    globs: Sequence[str], source_root: str, report_format: Format | None, *, as_json: bool
) -> int:
    """Read the reports that match and print what to fix; return the exit code."""
    from bot.cli import report_checks

    reports = files.find_reports(globs, 0, output.log)
    root = source_root or destination.find_source_root()
    code = report_checks.print_checks(reports, report_format, root, as_json=as_json)
    missing = [each for each in globs if not any(map(os.path.isfile, files.matching(each)))]
    folders = [each for each in missing if os.path.isdir(each)]
    unmatched = ", ".join(each for each in missing if each not in folders)
    if unmatched:
        log(f"{verdict.NO_REPORT} {unmatched}.")
    for each in folders:
        log(f"{each} is a folder: name its files, as '{each.rstrip('/')}/**/*.xml'.")
    return Exit.FALSE if missing else code


def _run_and_upload(wanted: Upload, command: Sequence[str], *, as_json: bool) -> int:
    """Run the command, upload its reports, print how that ended; return the exit code."""
    started_s = CLOCK.unix_s()
    ran, spoken, odd_ends = _Ended(0, was_killed=False), list[bool](), list[str]()
    if command:
        job = live.Job(wanted.job, wanted.metadata, wanted.globs, wanted.reports_are_final)
        find_program(command)
        with live.followed(job, started_s) as followed:
            # With --json stdout is for the answer alone.
            ran = _run(command, followed.variables, keeps_stdout=as_json)
        spoken = followed.spoken
        about_command = _command_metadata(command, ran, started_s)
        odd_ends = _log_ends(followed.runner_ends)
        if followed.runner_ends:
            about_command["runner_ends"] = followed.runner_ends
        wanted = wanted._replace(metadata={**wanted.metadata, **about_command})
    earlier = ci.triggering_run_of(os.environ)
    if earlier is not None:
        log(f"{earlier.description}.")
    outcome = Outcome()
    reports = files.find_reports(wanted.globs, started_s if command else 0.0, log)
    try:
        if reports.readable:
            send(wanted, reports, outcome)
        elif odd_ends:
            _send_end(wanted, reports)
    except RequestFailed as failed:
        outcome.failure = failed
    ending = verdict.ending_of(outcome, ran.code, strict=wanted.strict)
    if ran.was_killed and ending.exit_code != ran.code:
        ending = Ending(ran.code, verdict.message_of(outcome, ran.code))
    if as_json:
        _print_record(wanted, reports, outcome, ending)
    _log_ending(outcome, ending)
    if outcome.received and spoken and not ran.was_killed:
        _repeat(wanted, command, outcome, is_able=spoken == [True])
    return ending.exit_code


def _log_ends(ends: Sequence[Json]) -> list[str]:
    """Log the ends of runners that no report shows; return these sentences."""
    sentences = list(dict.fromkeys(runner_ends.sentences(ends)))
    for sentence in sentences:
        log(f"{sentence.rstrip('.')}.")
    return sentences


def _send_end(wanted: Upload, reports: Reports) -> None:
    """Upload how the runner ended where it could write no report, for people to read.

    The exit code does not depend on it.
    """
    outcome = Outcome()
    try:
        send(wanted, reports, outcome)
    except RequestFailed as failed:
        log(f"the end of the test runner was not sent: {failed.reason.rstrip('.')}.")
    _log_pages(outcome)


def _log_ending(outcome: Outcome, ending: Ending) -> None:
    _log_pages(outcome)
    log(ending.message)


def _log_pages(outcome: Outcome) -> None:
    for address in sorted({str(each.get("html_url") or "") for each in outcome.received} - {""}):
        if not address.startswith("urn:"):  # the service knows no address of its pages
            log(f"results: {address}")


def _repeat(wanted: Upload, command: Sequence[str], outcome: Outcome, *, is_able: bool) -> None:
    """Run tests again where the service asks for it; the exit code is settled.

    `is_able`: the one runner of the command can run single tests. The command must be that runner:
    what a script does besides is not done twice.
    """
    upload_id = str(outcome.received[0].get("upload_id") or "")
    is_runner = runner_of(command) in repeating.RUNNERS and not _is_measured(command)
    job = live.Job(wanted.job, wanted.metadata, wanted.globs)
    repeating.repeat(repeating.Repeatable(command, job, upload_id, is_able and is_runner))


def _print_record(wanted: Upload, reports: Reports, outcome: Outcome, ending: Ending) -> None:
    """Print the exit code, the service's answers, and each report as read here."""
    from bot.cli import report_checks

    given = wanted.metadata.get("format")
    report_format = None if given is None else Format(str(given))
    source_root = str(wanted.metadata.get("source_root", ""))
    output.print_json(
        {
            "exit_code": ending.exit_code,
            "message": ending.message,
            "uploads": outcome.received,
            "files": report_checks.records_of(reports, report_format, source_root),
        }
    )


def _command_metadata(command: Sequence[str], ran: _Ended, started_s: float) -> Json:
    """Return the metadata of a command that was run."""
    key = hashlib.sha256("\0".join(command).encode("utf-8", "surrogateescape")).hexdigest()
    ran_at = datetime.fromtimestamp(started_s, UTC)
    return {
        "ran_at": ran_at.isoformat(timespec="milliseconds"),
        "command_exit_code": min(ran.code, verdict.EXIT_CODE_MAX),
        "runner": runner_of(command),
        "command_key": key[:COMMAND_KEY_MAX],
    }


def send(wanted: Upload, reports: Reports, outcome: Outcome) -> None:
    """Upload the reports; `outcome` receives the answers. Raises RequestFailed."""
    from bot.cli.progress import UploadDisplay

    service = wanted.job.connect(wanted.job.find_token(), log, wanted.timeout_s)
    metadata = {**wanted.metadata, "org_url_slug": wanted.job.organization_of(service)}
    content = Content(reports, metadata, wanted.codeowners)
    with UploadDisplay(reports.readable, is_shown=wanted.shows_progress) as display:
        uploading.upload(service, content, outcome, display)


def metadata_of(given: Json, repo: RepoRef, matrix: str) -> Json:
    """Return the metadata: options first, then the environment and the checkout.

    Raises Failed(USAGE) without a commit.
    """
    chosen = {name: value for name, value in given.items() if value}
    members = destination.repository_members(repo)
    found = ci.metadata_of(os.environ, matrix, str(chosen.get("sha", "")))
    metadata = {**found, **chosen, "repo": members}
    if "sha" not in metadata:
        raise Failed(Exit.USAGE, "no commit is known", "Give --sha, or run in a checkout")
    return metadata


def log(text: str) -> None:
    """Print a line on stderr under our name: the command before has used the same terminal."""
    output.log(f"headgate: {text}")


def runner_of(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Return the name of the program that runs the tests: `pytest` of `uv run python -m pytest`.

    pytest that measures coverage is `pytest-cov`, by option or by setting: a missed threshold ends
    it with the code of a failed test. Empty if there is no such name.
    """
    words = list(_unwrapped(command))
    at, name = _program_in(words)
    rest = words[at + 1 :]
    if name in _BY_WORD:
        name = " ".join((name, *[word for word in rest if not word.startswith(("-", "+"))][:1]))
        return _NAMES.get(name, name)[:_RUNNER_MAX]
    given = os.environ if environment is None else environment
    if name == _PYTEST and _has_coverage(rest, given.get("PYTEST_ADDOPTS", ""), Path.cwd()):
        return _PYTEST_WITH_COVERAGE
    return name[:_RUNNER_MAX]


def _unwrapped(command: Sequence[str]) -> Sequence[str]:
    """Return the one plain command that a shell runs, else the words as they are."""
    is_line = len(command) == 3 and command[1] in ("-c", "-ec", "-lc")
    if not (is_line and _plain_name(command[0]) in _SHELLS) or _MORE_THAN_ONE.search(command[2]):
        return command
    try:
        return shlex.split(command[2])
    except ValueError:
        return command


def _is_measured(command: Sequence[str]) -> bool:
    """Return whether the program runs under Coverage.py, which writes its data anew each time."""
    words = list(_unwrapped(command))
    at, _ = _program_in(words)
    return any(re.sub(r"\d+$", "", _launcher_name(each)) == "coverage" for each in words[:at])


def _program_in(words: Sequence[str]) -> tuple[int, str]:
    for at, word in enumerate(words):
        plain, launcher = _plain_name(word), _launcher_name(word)
        if plain in _OF_SCRIPTS and _OF_PROGRAMS & {*words[at + 1 : at + 2]}:
            continue
        if launcher in _OF_PROGRAMS or _LAUNCHERS.fullmatch(re.sub(r"[\d.]+$", "", launcher)):
            continue
        if plain and not plain.startswith("-") and "=" not in plain:
            return at, plain
    return len(words), ""


def _launcher_name(word: str) -> str:
    """Return the name under which a word may be a launcher: a script `run.py` is none."""
    return re.sub(r"\.(?:exe|cmd|bat)$", "", re.split(r"[/\\]", word)[-1].lower())


def _plain_name(word: str) -> str:
    name = re.split(r"[/\\]", word)[-1].lower()
    return re.sub(r"\.(?:exe|cmd|bat|phar|m?js|py)$", "", name)


def _has_coverage(words: Sequence[str], more: str, folder: Path) -> bool:
    """Return whether pytest may measure coverage, by its options or a file of settings.

    `words` are its arguments, `more` those of the environment, `folder` is where it starts. Options
    that are elsewhere than usual count as coverage.
    """
    if any(word.startswith(("@", *_OPTIONS_FILE)) or _COVERAGE in word for word in (*words, more)):
        return True
    return any(_COVERAGE in _text_of(file) for file in _settings_files(words, folder))


def _settings_files(words: Sequence[str], folder: Path) -> Iterator[Path]:
    """Every file that pytest may read settings from: beside its arguments and above them."""
    places = (folder / word.partition("::")[0] for word in words if not word.startswith("-"))
    starts = {folder.resolve(), *(each.resolve() for each in places if each.exists())}
    folders = {above for each in starts for above in (each, *list(each.parents)[:_PARENTS_MAX])}
    return (each / name for each in sorted(folders) for name in _PYTEST_FILES)


def _text_of(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""


def find_program(command: Sequence[str]) -> None:
    """Raise Failed(USAGE) if there is no program of the command's name."""
    if shutil.which(command[0]) is None:
        raise Failed(
            Exit.USAGE,
            f"{command[0]!r} is not a command",
            "The command follows `--`; quote globs: --junit 'reports/*.xml'",
        )


def _run(
    command: Sequence[str], variables: Mapping[str, str], *, keeps_stdout: bool = False
) -> _Ended:
    """Run a command with more variables to its end. Raises Failed(USAGE) if it cannot be run.

    `keeps_stdout`: the command's stdout goes to stderr, so that stdout has our answer alone.

    A signal that asks this process to end is passed on to the command; the terminal sends it
    Ctrl-C itself.
    """
    environment = {**os.environ, **variables}
    stdout = _STDERR if keeps_stdout else None
    try:
        child = subprocess.Popen(command, stdout=stdout, env=environment)
    except OSError as failed:
        raise Failed(Exit.USAGE, f"{command[0]} cannot be run ({failed.strerror})") from failed
    with _passing_on(child):
        code = child.wait()
    return _Ended(_KILLED - code, True) if code < 0 else _Ended(code, False)


@contextmanager
def _passing_on(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Pass signals to end on to the child until the block ends."""

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGINT or not os.isatty(sys.stdin.fileno()):
            child.send_signal(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, pass_on) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
