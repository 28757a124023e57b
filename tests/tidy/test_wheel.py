"""The package: what it carries is what the checkout has."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from bot import program
from tests.tidy import tree
from tests.tidy.tree import PRODUCT, ROOT

INCLUDED = {
    "bot/app.yml": "app.yml",
    "service/http/SKILL.md": "docs/skill/SKILL.md",
    "service/http/SECURITY.md": "SECURITY.md",
    "bot/cli/headgate_pytest.py": "plugins/pytest/headgate_pytest.py",
}
# What describes the package, in the form that each kind of it has.
ABOUT = {".gitignore", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
LICENSE = f"headgate-{program.VERSION}.dist-info/licenses/LICENSE"


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
