"""The wheel, installed into an empty environment: it runs where nothing else of ours is."""

import os
import subprocess
import sys
import urllib.request
import venv
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import pytest

from bot import program
from tests.cli import processes
from tests.tidy.test_pins import pinned_here
from tests.tidy.test_wheel import build
from tests.tidy.tree import ROOT

OUTSIDE = ("HEADGATE_", "PYTHONPATH", "COV_")


@pytest.fixture(name="installed", scope="module")
def _installed(tmp_path_factory):
    """An environment with the wheel and the packages of requirements/run.txt, and no other."""
    wheel = build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, symlinks=True)
    (site_packages,) = folder.glob("lib/python3*/site-packages")
    for name in pinned_here("run"):
        distribution = metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            there = site_packages / top
            if not there.exists():
                there.symlink_to(Path(str(distribution.locate_file(top))))
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python")]
    options = ("--no-deps", "--no-index", "--no-compile", "--quiet")
    subprocess.run([*pip, "install", *options, str(wheel)], check=True)
    return folder


def environment() -> dict[str, str]:
    """Variables that know neither the checkout nor an installation."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OUTSIDE)}


def run(installed: Path, cwd: Path, *arguments: str) -> str:
    """Run the installed command in a folder; return what it prints."""
    done = subprocess.run(
        [str(installed / "bin/headgate"), *arguments],
        check=True,
        cwd=cwd,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


@contextmanager
def serving(installed: Path, cwd: Path):
    """The installed service without an App; yields the address that it prints, ends with 0."""
    with subprocess.Popen(
        [str(installed / "bin/headgate"), "serve", "--port", "0"],
        cwd=cwd,
        env={**environment(), "HEADGATE_ADMIN_LISTEN": "off"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as child:
        try:
            yield next(line.strip() for line in child.stdout or () if "http://" in line)
            child.terminate()
            assert child.wait(processes.END_TIMEOUT_S) == 0
        finally:
            child.kill()


def test_the_installed_wheel_serves_with_the_pinned_packages_alone(installed, tmp_path):
    assert run(installed, tmp_path, "--version") == f"headgate {program.VERSION}\n"
    run(installed, tmp_path, "migrate")
    with (
        serving(installed, tmp_path) as address,
        urllib.request.urlopen(address, timeout=processes.END_TIMEOUT_S) as page,
    ):
        assert "<title>" in page.read().decode()


@pytest.mark.soak
@pytest.mark.timeout(330)
def test_the_installed_wheel_plays_the_demo(installed, tmp_path, needs):
    needs("git")
    assert "Everything held" in run(installed, tmp_path, "demo", "--once")
