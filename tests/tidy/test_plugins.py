"""Packages of plug-ins: versions, licences and files, and the one file that all of them have."""

import json
import subprocess
import tarfile
from typing import Any

import pytest

from bot import program
from tests.tidy.tree import ROOT

PLUGINS = ("jest", "playwright", "vitest")
README_LINES_MAX = 60


def package_of(plugin: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "plugins" / plugin / "package.json").read_text())
    return found


def paths_of(exports: dict[str, str], main: str) -> set[str]:
    """The files that a program can ask a package for."""
    return {path.removeprefix("./") for path in (*exports.values(), main)}


def test_every_plugin_of_javascript_is_named_here():
    assert {path.parent.name for path in ROOT.glob("plugins/*/package.json")} == {*PLUGINS}


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_package_has_our_version_our_license_and_no_dependency(plugin):
    package = package_of(plugin)
    about = (package["name"], package["version"], package["license"])
    assert about == (f"@headgate/{plugin}", program.VERSION, "Apache-2.0")
    assert not {"dependencies", "devDependencies", "scripts"} & package.keys()
    assert package["engines"] == {"node": ">=18"}


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_package_lists_each_of_its_files(plugin):
    package = package_of(plugin)
    there = {path.name for path in (ROOT / "plugins" / plugin).iterdir()}
    assert {*package["files"], "package.json", "README.md"} == there
    assert paths_of(package["exports"], package["main"]) <= there


def test_all_plugins_have_the_same_file_of_lines():
    assert len({(ROOT / "plugins" / each / "lines.cjs").read_bytes() for each in PLUGINS}) == 1


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_readme_is_short_and_names_the_version_that_it_installs(plugin):
    text = (ROOT / "plugins" / plugin / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= README_LINES_MAX
    assert f"headgate-{plugin}-{program.VERSION}.tgz" in text


@pytest.mark.parametrize("plugin", PLUGINS)
def test_npm_packs_what_is_listed(plugin, needs, tmp_path):
    needs("npm")
    folder = str(ROOT / "plugins" / plugin)
    pack = ("npm", "pack", "--silent", "--offline", folder)
    subprocess.run(pack, cwd=tmp_path, check=True, capture_output=True)
    with tarfile.open(tmp_path / f"headgate-{plugin}-{program.VERSION}.tgz") as archive:
        packed = {name.removeprefix("package/") for name in archive.getnames()}
    assert packed == {*package_of(plugin)["files"], "package.json", "README.md"}
