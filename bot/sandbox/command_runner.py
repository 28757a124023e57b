"""Commands of CI checks, run on an exported commit; only with `--allow-commands`.

In a temporary folder, with a bare environment, in a process group of its own that is killed
at the timeout. Nothing else of the sandbox starts a foreign program.
"""

import asyncio
import os
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bot.sandbox.ci_file import CheckPlan
from bot.sandbox.git import Objects
from bot.sandbox.world import Repository, WorkflowRun

OUTPUT_MAX = 1 << 20
REPORT_MAX = 64 << 20
SHOWN_MAX = 60_000  # a check run's text holds 65,535 characters
SYMLINK_MODE = "120000"


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a command, and the report file that it wrote, None without one."""

    conclusion: str
    title: str
    text: str
    report: bytes | None = None


async def run(
    repository: Repository, run_of_ci: WorkflowRun, plan: CheckPlan, own: Mapping[str, str]
) -> Done:
    """Run the command of a check on its commit; `own` are variables of its job alone."""
    if not repository.world.allow_commands or plan.run is None:
        message = "commands are off; start the sandbox with --allow-commands"
        return Done("failure", message, message)
    async with repository.world.command_places:
        with tempfile.TemporaryDirectory(prefix="sandbox-ci-") as folder:
            await asyncio.to_thread(
                export, repository.git.objects, run_of_ci.tested_sha, Path(folder)
            )
            environment = {**_environment(repository, run_of_ci), **own}
            done = await _shell(plan.run, Path(folder), environment, plan.timeout_s)
            return replace(done, report=_report(Path(folder), plan.junit))


def _report(folder: Path, name: str | None) -> bytes | None:
    """The file of that name, if the command wrote one inside its folder."""
    if name is None:
        return None
    path = (folder / name).resolve()
    is_there = path.is_relative_to(folder.resolve()) and path.is_file()
    return path.read_bytes()[:REPORT_MAX] if is_there else None


def export(objects: Objects, commit: str, folder: Path) -> None:
    """Write the files of a commit into an empty folder."""
    for path, item in objects.walk(commit):
        target = folder / path
        if item.kind == "tree":
            target.mkdir()
        elif item.mode == SYMLINK_MODE:
            target.symlink_to((objects.blob(item.sha) or b"").decode())
        elif item.kind == "blob":
            target.write_bytes(objects.blob(item.sha) or b"")
            target.chmod(0o755 if item.mode == "100755" else 0o644)


def _environment(repository: Repository, run_of_ci: WorkflowRun) -> dict[str, str]:
    passed = {name: os.environ[name] for name in repository.world.pass_env if name in os.environ}
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": tempfile.gettempdir(),
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": run_of_ci.event,
        "GITHUB_SHA": run_of_ci.tested_sha,
        "GITHUB_REF": f"refs/heads/{run_of_ci.head_branch}",
        "GITHUB_REPOSITORY": repository.full_name,
        "GITHUB_RUN_ID": str(run_of_ci.id),
        "GITHUB_RUN_ATTEMPT": str(run_of_ci.attempt),
        **passed,
    }


async def _shell(command: str, folder: Path, environment: dict[str, str], timeout_s: float) -> Done:
    child = await asyncio.create_subprocess_shell(
        command,
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(timeout_s):
            output = await _read(child)
            code = await child.wait()
    except TimeoutError:
        return Done("timed_out", f"no end after {timeout_s:g} s", "")
    finally:
        await _end(child)
    text = output.decode(errors="replace")[-SHOWN_MAX:]
    if code == 0:
        return Done("success", "exit code 0", text)
    return Done("failure", f"exit code {code}", text)


async def _end(child: asyncio.subprocess.Process) -> None:
    """End a command that still runs, at its timeout or when the sandbox stops."""
    if child.returncode is None:
        os.killpg(child.pid, signal.SIGKILL)
        await child.wait()


async def _read(child: asyncio.subprocess.Process) -> bytes:
    output = b""
    if child.stdout is not None:
        while part := await child.stdout.read(OUTPUT_MAX):
            output = (output + part)[-OUTPUT_MAX:]
    return output
