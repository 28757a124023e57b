"""The whole evening: raise the stage, play, prove, and leave the doors open for a while."""

import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TextIO

import aiohttp

from bot import listening, telemetry
from bot.demo import proofs, report, stage, story
from bot.demo.report import Report
from bot.demo.scene import Scene
from bot.demo.stage import Ports, Stage
from bot.program import VERSION
from bot.sandbox.records import HOST
from service.clock import Clock
from service.errors import StartRefused

LOG = "headgate.log"


@dataclass(frozen=True, slots=True)
class Evening:
    """What was asked for. `stays`: the servers go on after the story, until Ctrl-C.

    `keep` is the folder for all state, None a temporary one; `as_json`: one object on stdout,
    the timeline on stderr.
    """

    clock: Clock
    stays: bool
    as_json: bool = False
    keep: Path | None = None
    ports: Ports = field(default_factory=Ports)
    timeout_s: float = 120.0


async def demo(evening: Evening) -> bool:
    """Whether everything held; False also when the time was over. Raises StartRefused."""
    began = evening.clock.monotonic_s()
    out = sys.stderr if evening.as_json else sys.stdout

    def tell(text: str) -> None:
        print(f"{evening.clock.monotonic_s() - began:6.1f}s  {text}", file=out, flush=True)

    with folder_of(evening) as folder, logging_to(folder, evening.clock):
        print(f"Headgate {VERSION} demo · nothing leaves this machine", file=out, flush=True)
        async with stage.raised(folder, evening.ports) as raised:
            for line in welcome(raised):
                print(line, file=out, flush=True)
            playing = Scene(raised, evening.clock, tell)
            outcome = await played(evening, playing, began)
            shown(evening, outcome, raised, out)
            if evening.stays:
                await open_doors(raised, out)
            return outcome.ok


async def played(evening: Evening, playing: Scene, began: float) -> Report:
    """The report of the play; what is missing when the time is over is a fault of it."""
    late: tuple[str, ...] = ()
    try:
        async with asyncio.timeout(evening.timeout_s):
            await playing.play()
    except* aiohttp.ClientError as broken:
        late = tuple(f"the story broke off: {each}" for each in broken.exceptions)
    except* TimeoutError:
        late = (*late, f"the story was not over after {evening.timeout_s:.0f} s")
    bare, stories, branches = playing.stage.bare, [], []
    for each in story.STORIES:
        told = await playing.played(each)
        start, claims = playing.stage.starts[each.branch], playing.claims(told)
        branch = proofs.Branch(each.branch, start, claims, each.is_parallel)
        branches.append(branch)
        stories.append(replace(told, proofs=await proofs.known_landings(bare, branch)))
    proved = await proofs.all_of(bare, branches)
    return Report(stories, proved, late, evening.clock.monotonic_s() - began)


def shown(evening: Evening, outcome: Report, raised: Stage, out: TextIO) -> None:
    """Print the outcome, in words and for programs."""
    print("\n".join(report.lines(outcome)), file=out, flush=True)
    if evening.as_json:
        print(json.dumps(report.as_json(outcome, raised), indent=2), flush=True)


def welcome(raised: Stage) -> list[str]:
    """Where to look, before the story begins."""
    found = report.addresses(raised)
    return [
        f"  Service  {found['service']}",
        f"  Sandbox  {found['sandbox']}   ← comment /merge here",
        "",
        f"Four branches of {story.SLUG} with a queue each, played at the same time:",
        *(f"  {each.branch:<10} {each.shows}" for each in story.STORIES),
        "",
    ]


async def open_doors(raised: Stage, out: TextIO) -> None:
    """Say what a visitor can do, and wait for Ctrl-C, which ends the evening as it was."""
    body = json.dumps(
        {
            "repo": {"host": HOST, "owner": story.OWNER, "name": story.NAME},
            "targetBranch": story.MAIN.branch,
        }
    )
    found = report.addresses(raised)
    token, repo = raised.token, f"{HOST}/{story.SLUG}"
    print(
        "\nThe servers stay until Ctrl-C.\n"
        f"  Sandbox  {found['sandbox']}   8 is good, 9 is flaky, 10 conflicts with 8, 11 a draft\n"
        f"  API      {found['api']}\n"
        f"  Token    {token}\n\n"
        f"  curl -s {found['api']}/getQueue -H 'content-type: application/json' "
        f"-H 'x-api-token: {token}' -d '{body}'\n"
        f"  HEADGATE_URL={raised.service} HEADGATE_TOKEN={token} "
        f"{called_as(sys.argv[0])} queue show --repo {repo} --branch {story.MAIN.branch}",
        file=out,
        flush=True,
    )
    async with listening.until_told_to_stop() as told:
        await told.wait()


def called_as(program: str) -> str:
    """The command of this process as a visitor can type it; `program` is its `argv[0]`."""
    if Path(program).name != "headgate":
        return "headgate" if shutil.which("headgate") else f"{sys.executable} -m bot"
    is_on_path = Path(shutil.which("headgate") or "").absolute() == Path(program).absolute()
    return "headgate" if is_on_path else program


@contextmanager
def folder_of(evening: Evening) -> Iterator[Path]:
    """The folder of all state; a temporary one goes when the evening is over.

    Raises StartRefused for a folder with something in it: a world cannot be begun twice.
    """
    if evening.keep is not None:
        evening.keep.mkdir(parents=True, exist_ok=True)
        if any(evening.keep.iterdir()):
            raise StartRefused(f"--keep {evening.keep} is not empty. Give another folder")
        yield evening.keep.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="headgate-demo-") as folder:
        yield Path(folder)


@contextmanager
def logging_to(folder: Path, clock: Clock) -> Iterator[None]:
    """Both servers' log goes to a file there: the story is what people came for."""
    with (folder / LOG).open("w", encoding="utf-8") as file:
        telemetry.start("json", "info", clock, file)
        yield
