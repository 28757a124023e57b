"""Play producers, and keep their reports: `python -m tests.laboratory.record [PRODUCER…]`.

A producer of `Home.MACHINE` must be installed. Nothing is kept but the reports and the exit codes,
with paths and the name of this machine taken out.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bot.cli import upload
from tests.harness.needs import LABORATORY
from tests.laboratory import all_producers
from tests.laboratory.producer import STARTED, Home, Producer, Scene

ROOT = Path(__file__).resolve().parents[2]
RECORDED = Path(__file__).parent / "recorded"
PACKAGES = LABORATORY

ENDED = "ended.json"
"""How each scene of a producer ended."""

OTHER_MACHINE = "build-7"
LOOK_EVERY_S = 0.02
START_WITHIN_S = 60
END_WITHIN_S = 300
TO_END_S = 10
BETWEEN_S = 1.1
"""What a report tells of the time changes within so many seconds."""

MACHINE_OF_JAVA = re.compile(
    r'\s*<property name="(?!java\.version")(?:\w+\.[\w.]+|basedir|localRepository)"[^>]*/>'
)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and the runner that `headgate test` takes it for."""

    exit_code: int
    runner: str


@dataclass(frozen=True, slots=True)
class Run:
    """What a producer wrote in a scene, path to bytes, and how it ended."""

    reports: dict[str, bytes]
    ended: Ended


def play(producer: Producer, scene: Scene, folder: Path) -> Run:
    """Play a scene in an empty folder."""
    for path, text in producer.files_of(scene).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    if producer.home is Home.NODE:
        (folder / "node_modules").symlink_to(PACKAGES / "node" / "node_modules")
    environment = _environment(producer.home)
    if producer.prepare:
        subprocess.run(
            producer.prepare, cwd=folder, env=environment, check=True, capture_output=True
        )
    command = producer.command_of(scene)
    with contextlib.chdir(folder):
        runner = upload.runner_of(command, environment)
    ended = Ended(_exit_code(command, folder, environment, scene), runner)
    paths = sorted(folder.glob(producer.reports))
    return Run({str(path.relative_to(folder)): path.read_bytes() for path in paths}, ended)


def _environment(home: Home) -> dict[str, str]:
    """Return the variables of a CI job that has the packages of a producer."""
    kept = {name: os.environ[name] for name in ("HOME", "PATH", "LANG") if name in os.environ}
    kept |= {"CI": "1", "LC_ALL": "C.UTF-8", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    if home is Home.PYTHON:
        kept |= {"PYTHONPATH": str(PACKAGES / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
        kept["PATH"] = f"{PACKAGES / 'python' / 'bin'}:{Path(sys.executable).parent}:{kept['PATH']}"
    if home is Home.NODE:
        kept["PATH"] = f"{PACKAGES / 'node' / 'node_modules' / '.bin'}:{kept['PATH']}"
    return kept


def _exit_code(
    command: tuple[str, ...], folder: Path, environment: dict[str, str], scene: Scene
) -> int:
    """Run a command; its exit code as a shell gives it."""
    if scene is Scene.MACHINE:
        named = f'hostname {OTHER_MACHINE} && exec "$@"'
        command = ("unshare", "--uts", "sh", "-c", named, "sh", *command)
        environment = {**environment, "HOSTNAME": OTHER_MACHINE}
    # A shell lets its background jobs ignore SIGINT, and whatever they start inherits that.
    command = ("env", "--default-signal=SIGINT", *command)
    with (folder / "said.txt").open("wb") as said:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        if scene is Scene.INTERRUPTED:
            _interrupt(process, folder)
        code = process.wait(END_WITHIN_S)
    return code if code >= 0 else 128 - code


def _interrupt(process: subprocess.Popen[bytes], folder: Path) -> None:
    """End a run as a person or a CI system does: SIGINT to all of it, then harder."""
    deadline = time.monotonic() + START_WITHIN_S
    while not (folder / STARTED).exists() and time.monotonic() < deadline:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_EVERY_S)
            return
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        os.killpg(process.pid, number)
        try:
            process.wait(TO_END_S)
        except subprocess.TimeoutExpired:
            continue


def record(name: str) -> None:
    """Play all scenes of a producer, and keep what it wrote."""
    producer, kept = all_producers.PRODUCERS[name], RECORDED / name
    shutil.rmtree(kept, ignore_errors=True)
    ends: dict[str, Ended] = {}
    for scene in producer.played:
        if scene is Scene.AGAIN:
            time.sleep(BETWEEN_S)
        with tempfile.TemporaryDirectory() as folder:
            run = play(producer, scene, Path(folder).resolve())
            ends[scene] = run.ended
            said = (Path(folder) / "said.txt").read_text("utf-8", "replace")
            if scene is Scene.SUITE and not run.reports:
                raise SystemExit(f"{name} wrote no report:\n{said}")
            for path, content in run.reports.items():
                target = kept / scene / path.replace("/", "_")
                target.parent.mkdir(parents=True, exist_ok=True)
                place = "elsewhere" if scene is Scene.DIRECTORY else "build"
                target.write_bytes(_scrubbed(content, folder, place))
    (kept / ENDED).write_text(
        json.dumps({scene: asdict(ended) for scene, ended in ends.items()}, indent=1) + "\n",
        "utf-8",
    )


def _scrubbed(content: bytes, folder: str, place: str) -> bytes:
    """Return a report without what names this machine; the folder of its samples is `/place`."""
    text = content.decode("utf-8", "surrogateescape")
    text = text.replace(folder, f"/{place}").replace(folder.lstrip("/"), place)
    for path, name in (
        *((each.resolve(), "packages") for each in (PACKAGES / "python", PACKAGES / "node")),
        *((PACKAGES, "packages"), (ROOT, "checkout"), (sys.base_prefix, "python")),
        (Path.home(), "home"),
    ):
        text = text.replace(str(path), f"/{name}")
    text = text.replace(socket.gethostname(), "build-1")
    text = MACHINE_OF_JAVA.sub("", text)
    return text.encode("utf-8", "surrogateescape")


if __name__ == "__main__":
    for each in sys.argv[1:] or all_producers.PRODUCERS:
        print(f"{each} …", flush=True)
        record(each)
