"""The package: what it carries is what the checkout has, and it runs where nothing else is."""

import os
import subprocess
import sys
import tarfile
import urllib.request
import venv
import zipfile
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import pytest

from bot import program
from tests.cli import processes
from tests.tidy import tree
from tests.tidy.test_pins import pinned_here
from tests.tidy.tree import PRODUCT, ROOT

INCLUDED = {
    "bot/app.yml": "app.yml",
    "service/http/SKILL.md": "docs/skill/SKILL.md",
    "service/http/SECURITY.md": "SECURITY.md",
}
# What describes the package, in the form that each kind of it has.
ABOUT = {".gitignore", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
LICENSE = f"headgate-{program.VERSION}.dist-info/licenses/LICENSE"
OUTSIDE = ("HEADGATE_", "PYTHONPATH", "COV_")


def build(source: Path, kind: str, target: Path) -> Path:
    """Build a wheel or an sdist of a source tree, as pip would."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)],
        check=True,
        cwd=source,
        capture_output=True,
    )
    (built,) = target.glob(f"headgate-{program.VERSION}*{'.whl' if kind == 'wheel' else '.gz'}")
    return built


@pytest.fixture(name="wheel", scope="module")
def _wheel(tmp_path_factory):
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(name="installed", scope="module")
def _installed(tmp_path_factory, wheel):
    """An environment with the wheel and the packages of requirements/run.txt, and no other."""
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
            yield next(line.strip() for line in child.stdout if "http://" in line)
            child.terminate()
            assert child.wait(processes.END_TIMEOUT_S) == 0
        finally:
            child.kill()


@pytest.mark.first
def test_the_wheel_carries_every_file_of_the_product_and_the_app_manifest(wheel):
    with zipfile.ZipFile(wheel) as archive:
        carried = {name for name in archive.namelist() if ".dist-info/" not in name}
        for inside, path in {**INCLUDED, LICENSE: "LICENSE"}.items():
            assert archive.read(inside) == (ROOT / path).read_bytes()
    product = {path for path, _ in tree.texts() if tree.is_in(path, *PRODUCT)}
    assert carried == {*product, *INCLUDED}
    assert carried >= {f"{package}/py.typed" for package in PRODUCT}


def test_the_source_distribution_carries_the_product_alone_and_builds_the_same_wheel(
    wheel, tmp_path
):
    with tarfile.open(build(ROOT, "sdist", tmp_path)) as archive:
        archive.extractall(tmp_path, filter="data")
    root = tmp_path / f"headgate-{program.VERSION}"
    files = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    with zipfile.ZipFile(wheel) as archive:
        carried = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert files == {*(carried - INCLUDED.keys()), *INCLUDED.values(), *ABOUT}
    assert build(root, "wheel", tmp_path / "again").read_bytes() == wheel.read_bytes()


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
