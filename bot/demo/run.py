"""`headgate demo`: play the stories once, prove and report; or serve the playground."""

import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import aiohttp

from bot import listening, telemetry
from bot.demo import ground, play, proof, seeding, stage, story
from bot.demo import playground as playgrounds
from bot.demo.play import Play
from bot.demo.proof import Branch, Proof
from bot.demo.stage import Parts, Ports, Scenery, Stage
from bot.demo.watching import RunDetails, Submission, Watch
from bot.program import VERSION
from bot.sandbox.records import HOST
from service.clock import Clock
from service.errors import StartRefused

LOG = "headgate.log"


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """The options of a demo.

    `keep` is the folder for all state, None a temporary one; `as_json`: one object on stdout,
    the events on stderr.
    """

    as_json: bool = False
    keep: Path | None = None
    ports: Ports = field(default_factory=Ports)
    timeout_s: float = 300.0
    parts: Parts = field(default_factory=Parts)


@dataclass(frozen=True, slots=True)
class Report:
    """The result of the demo; `faults` are expectations that were not met, as sentences."""

    submissions: Mapping[int, Submission]
    runs: Mapping[str, Sequence[RunDetails]]
    branches: Sequence[Branch]
    faults: Sequence[str]
    proofs: Sequence[Proof]
    duration_s: float

    @property
    def ok(self) -> bool:
        """Return whether every proof holds and every expectation is met."""
        return not self.faults and all(each.ok for each in self.proofs)


async def demo(options: DemoOptions) -> bool:
    """Return whether everything held within the time. Raises StartRefused."""
    clock = options.parts.clock
    began = clock.monotonic_s()
    out = sys.stderr if options.as_json else sys.stdout

    def tell(text: str) -> None:
        print(f"{clock.monotonic_s() - began:6.1f}s  {text}", file=out, flush=True)

    with state_folder(options) as folder, logging_to(folder, clock):
        print(f"Headgate {VERSION} demo · nothing leaves this machine", file=out, flush=True)
        ports, scenery = options.ports.chosen(), Scenery(seeding.all_stories)
        async with stage.running(folder, ports, options.parts, scenery) as running:
            print("\n".join(_welcome(running)), file=out, flush=True)
            played = Play(Watch(running), clock, tell)
            report = await _play_and_prove(options, played, began)
            print("\n".join(_report_lines(report)), file=out, flush=True)
            if options.as_json:
                print(json.dumps(_report_json(report, running), indent=2), flush=True)
            return report.ok


async def _play_and_prove(options: DemoOptions, played: Play, began: float) -> Report:
    """Play the stories and compare the outcome with what they promise."""
    faults = await play_within(played, options.timeout_s)
    if not played.explanation:
        faults.append(f"#{story.CULPRIT.number} was not explained")
    watch = played.watch
    runs = {each.branch: await watch.runs_of(each.branch) for each in story.STORIES}
    branches = []
    for each in story.STORIES:
        branch = play.outcome_of(watch, each, runs[each.branch])
        landed = [landing.number for landing in branch.landings]
        faults += play.faults_of(each, watch.submissions, runs[each.branch], landed)
        branches.append(branch)
    proofs = await asyncio.to_thread(proof.prove, watch.stage.bare, branches)
    duration_s = played.clock.monotonic_s() - began
    return Report(watch.submissions, runs, branches, faults, proofs, duration_s)


async def play_within(played: Play, timeout_s: float) -> list[str]:
    """Play the stories; return as sentences what ended them early."""
    faults: list[str] = []
    try:
        async with asyncio.timeout(timeout_s) as limit:
            await played.play()
    except* aiohttp.ClientError as broken:
        faults += [f"the story broke off: {each}" for each in broken.exceptions]
    except* TimeoutError:
        # The session's own time limit for a response raises the same error.
        if limit.expired():
            faults.append(f"the story was not over after {timeout_s:.0f} s")
        else:
            faults.append(f"the story broke off: {stage.NOT_ANSWERED}")
    return faults


def _report_json(report: Report, running: Stage) -> dict[str, object]:
    """Return the report as programs read it; submissions and runs have the API's members."""
    return {
        "ok": report.ok,
        "version": VERSION,
        "durationS": round(report.duration_s, 1),
        "urls": running.addresses(),
        "faults": list(report.faults),
        "stories": [
            {
                "branch": each.branch,
                "shows": each.shows,
                "landed": [landing.number for landing in branch.landings],
                "pullRequests": [
                    report.submissions[change.number].shown()
                    for change in each.changes
                    if change.number in report.submissions
                ],
                "testRuns": [run.shown() for run in report.runs[each.branch]],
            }
            for each, branch in zip(story.STORIES, report.branches, strict=True)
        ],
        "proofs": [asdict(each) for each in report.proofs],
    }


def _report_lines(report: Report) -> list[str]:
    """Return what was shown, the proofs and the verdict, for people."""
    shown = [f"  {each.branch:<10} {each.shows}" for each in story.STORIES]
    faults = [f"  ✗ {fault}" for fault in report.faults]
    verdict = "Everything held" if report.ok else "Not everything held"
    return [
        "",
        "Shown:",
        *(faults or shown),
        "",
        *_proof_lines(report.proofs),
        "",
        f"{verdict}, after {report.duration_s:.1f} s.",
    ]


def _welcome(running: Stage) -> list[str]:
    """Return the addresses and what will be played."""
    addresses = running.addresses()
    return [
        f"  Queues         {addresses['dashboard']}",
        f"  Pull requests  {addresses['sandbox']}",
        "",
        f"Five branches of {story.SLUG} with a queue each, played at the same time:",
        *(f"  {each.branch:<10} {each.shows}" for each in story.STORIES),
        "",
    ]


async def playground(options: DemoOptions) -> bool:
    """Serve the playground until it is ended; return whether everything was proved.

    Raises StartRefused.
    """

    def tell(text: str) -> None:
        print(f"{options.parts.clock.now():%H:%M:%S}  {text}", flush=True)

    print(f"Headgate {VERSION} demo · nothing leaves this machine", flush=True)
    print("First, CI tests main twice, so that one test is known to be flaky …", flush=True)
    ports = options.ports.chosen()
    with state_folder(options) as folder, logging_to(folder, options.parts.clock):
        async with (
            ground.running(folder, ports, options.parts, tell) as played,
            playgrounds.serving(played, ports.page or 0) as address,
            listening.until_stopped() as stopping,
        ):
            print("\n".join(_invitation(played.stage, address)), flush=True)
            await stopping.wait()
            proofs = await played.end()
            print("\n".join(["", *_proof_lines(proofs)]), flush=True)
            return all(each.ok for each in proofs)


def _invitation(running: Stage, address: str) -> list[str]:
    """Return what a visitor of the playground opens, and what they can do there."""
    command = command_of(sys.argv[0])
    return [
        "",
        f"  Open  {address}",
        "",
        "Pull requests are on the left, Headgate's queue is on the right. Comment /merge, or",
        "play a story by its button. Ctrl-C ends with the proofs by git.",
        "",
        f"Commands:  export HEADGATE_URL={running.service} HEADGATE_TOKEN={running.token}",
        f"           {command} queue show --repo {HOST}/{story.SLUG} --branch {ground.QUEUE}",
        "",
    ]


def _proof_lines(proofs: Sequence[Proof]) -> list[str]:
    """Return the proofs for people."""
    marks = {True: "✓", False: "✗"}
    proved = [f"  {marks[each.ok]} {each.name}: {each.detail}" for each in proofs]
    return ["Proofs, by git alone:", *proved]


def command_of(program: str) -> str:
    """Return the command of this process as a visitor can type it; `program` is its `argv[0]`."""
    if Path(program).name != "headgate":
        return "headgate" if shutil.which("headgate") else f"{sys.executable} -m bot"
    is_on_path = Path(shutil.which("headgate") or "").absolute() == Path(program).absolute()
    return "headgate" if is_on_path else program


@contextmanager
def state_folder(options: DemoOptions) -> Iterator[Path]:
    """Yield the folder of all state; a temporary one is deleted at the end.

    Raises StartRefused for a folder that is not empty: a world cannot be begun twice.
    """
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
        if any(options.keep.iterdir()):
            raise StartRefused(f"--keep {options.keep} is not empty. Give another folder")
        yield options.keep.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="headgate-demo-") as folder:
        yield Path(folder)


@contextmanager
def logging_to(folder: Path, clock: Clock) -> Iterator[None]:
    """Write the log of both servers to a file in the folder, so that stdout has the events."""
    with (folder / LOG).open("w", encoding="utf-8") as file:
        telemetry.start("json", "info", clock, file)
        yield
