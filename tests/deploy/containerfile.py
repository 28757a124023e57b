"""Play a Containerfile without a registry: its stages are overlays of this machine's own files.

Each instruction of the file is read from it and really done, by a shell script that has mounts of
its own, so nothing is left when it ends. Only the base image is another one: this machine.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.tidy.tree import ROOT

CONTAINERFILE = ROOT / "deploy/Containerfile"
IGNORED = ROOT / "deploy/Containerfile.dockerignore"
LOOPBACK_UP = """\
import fcntl, socket, struct
SIOCSIFFLAGS, UP_AND_RUNNING = 0x8914, 0x41
fcntl.ioctl(socket.socket(), SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", UP_AND_RUNNING))
"""
SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass
class Image:
    """The last stage of a Containerfile as a container engine would run it."""

    environment: dict[str, str] = field(default_factory=dict)
    user: str = "0:0"
    volumes: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)
    entry: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)


def instructions() -> list[tuple[str, str]]:
    """The instructions of our Containerfile: name, and the rest as one line."""
    text = re.sub(r"^#.*\n", "", CONTAINERFILE.read_text("utf-8"), flags=re.MULTILINE)
    lines = [line for line in re.sub(r" *\\\n *", " ", text).splitlines() if line]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def context(folder: Path) -> None:
    """Copy what a build sends: all is ignored but for the paths with a `!`."""
    lines = [line for line in IGNORED.read_text("utf-8").splitlines() if not line.startswith("#")]
    everything, *paths, caches = lines
    assert (everything, caches) == ("*", "**/__pycache__")
    for path in (line.removeprefix("!") for line in paths):
        source, target = ROOT / path, folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)


def built(folder: Path, context: Path) -> tuple[str, Image]:
    """A script that builds each stage below `folder`, the last one as `folder`/image."""
    script = ["set -eu", f"mount -t tmpfs tmpfs {folder}"]
    names: list[str] = []
    image, work = Image(), "/"
    for name, rest in instructions():
        root = f"{folder}/{names[-1]}" if names else ""
        match name:
            case "FROM":
                _, _, stage = rest.partition(" AS ")
                names.append(stage or "image")
                image, work = Image({"PATH": f"{sys.base_prefix}/bin:{SYSTEM}"}), "/"
                script += _base(f"{folder}/{names[-1]}")
            case "COPY":
                *options, source, target = rest.split()
                stages = [f"{folder}/{each.removeprefix('--from=')}" for each in options]
                (origin,) = stages or [str(context)]
                script.append(f"cp -a {origin}/{source} {root}{os.path.join(work, target)}")
            case "RUN":
                steps = shlex.quote(f"cd {work} && {rest}")
                script.append(f"PATH={image.environment['PATH']} chroot {root} sh -ec {steps}")
            case "WORKDIR":
                work = rest
                script.append(f"mkdir -p {root}{work}")
            case _:
                _describe(image, name, rest)
    return "\n".join(script), image


def _describe(image: Image, name: str, rest: str) -> None:
    """Note what an instruction says about running the image."""
    match name:
        case "ENV":
            pairs = dict(pair.split("=", 1) for pair in shlex.split(rest))
            path = pairs.pop("PATH", "$PATH").replace("$PATH", image.environment["PATH"])
            image.environment |= {**pairs, "PATH": path}
        case "USER":
            image.user = rest
        case "VOLUME":
            image.volumes.append(rest)
        case "HEALTHCHECK":
            image.health = json.loads(rest.partition("CMD ")[2])
        case "ENTRYPOINT":
            image.entry = json.loads(rest)
        case "CMD":
            image.command = json.loads(rest)
        case _:
            assert name in ("ARG", "EXPOSE", "STOPSIGNAL"), f"{name} cannot be played"


def _base(root: str) -> list[str]:
    """Mount a writable copy of this machine, whose Python everybody may run."""
    above = [str(each) for each in Path(sys.base_prefix).parents if each != Path("/")]
    return [
        f"mkdir -p {root} {root}.up {root}.work",
        f"mount -t overlay overlay -o lowerdir=/,upperdir={root}.up,workdir={root}.work {root}",
        f"mount --rbind /dev {root}/dev",
        f"mount -t proc proc {root}/proc",
        *(f"chmod o+x {root}{each}" for each in above),
    ]


def started(folder: Path, image: Image) -> str:
    """A script that runs the image as strictly as can be, until its health check succeeds.

    Read-only but for `/tmp` and its volumes, as its user, without any capability, in a network of
    its own. At the end it is stopped as an engine stops it.
    """
    root, (user, group) = f"{folder}/image", image.user.split(":")
    script = [f"mount -t tmpfs tmpfs {root}/tmp"]
    for volume in image.volumes:
        script += [
            f"cp -a {root}{volume} {folder}/volume",
            f"mount --bind {folder}/volume {root}{volume}",
        ]
    environment = " ".join(
        f"{name}={shlex.quote(value)}" for name, value in image.environment.items()
    )
    bounds = f"--reuid {user} --regid {group} --clear-groups --no-new-privs --bounding-set=-all"
    inside = f"env -i {environment} chroot {root} setpriv {bounds}"
    return "\n".join(
        [
            *script,
            f"mount -o remount,ro {root}",
            f"{sys.executable} -c {shlex.quote(LOOPBACK_UP)}",
            f"if {inside} touch /opt/headgate/x 2>&1; then exit 90; fi",
            f"{inside} {shlex.join([*image.entry, *image.command])} & service=$!",
            f"until {inside} {shlex.join(image.health)} 2>/dev/null; do",
            "  kill -0 $service && sleep 1",
            "done",
            "echo HEALTHY",
            "kill -TERM $service",
            "wait $service",
        ]
    )


def play(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script with mounts and processes of its own."""
    return subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
