"""requirements/ pins what the project needs, each file with the hashes of all its builds."""

import re
import subprocess
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.tidy.tree import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
FILES = ("run", "dev", "deploy", "supply")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def needed(requirements: Iterable[str]) -> dict[str, str]:
    """Name to installed version of these requirements and of all that they need in turn."""
    waiting = [Requirement(each) for each in requirements]
    seen: set[tuple[str, str]] = set()
    found: dict[str, str] = {}
    while waiting:
        requirement = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        distribution = metadata.distribution(requirement.name)
        name = canonicalize_name(requirement.name)
        found[name] = distribution.version
        for extra in {"", *requirement.extras} - {done for each, done in seen if each == name}:
            seen.add((name, extra))
            for line in distribution.requires or ():
                inner = Requirement(line)
                if inner.marker is None or inner.marker.evaluate({"extra": extra}):
                    inner.marker = None
                    waiting.append(inner)
    return found


def pins(text: str) -> dict[str, Requirement]:
    """Name to pin; ValueError where a line is no `name==version` with at least one hash."""
    found: dict[str, Requirement] = {}
    for line in text.replace("\\\n", "").splitlines():
        pin, *hashes = re.split(r"\s+(?=--hash=)", line.rstrip())
        requirement = Requirement(pin)
        (specifier,) = requirement.specifier
        is_exact = specifier.operator == "==" and not specifier.version.endswith("*")
        if not is_exact or not hashes or not all(HASH.fullmatch(one) for one in hashes):
            raise ValueError(line)
        found[canonicalize_name(requirement.name)] = requirement
    return found


def pins_of(name: str) -> dict[str, Requirement]:
    """The pins of one of our files."""
    return pins((ROOT / f"requirements/{name}.txt").read_text("utf-8"))


def pinned_here(name: str) -> dict[str, str]:
    """Name to version of those that this machine needs."""
    return {
        each: str(pin.specifier).removeprefix("==")
        for each, pin in pins_of(name).items()
        if pin.marker is None or pin.marker.evaluate()
    }


def project_requirements() -> list[str]:
    """What pyproject.toml asks for to develop: to run, to test, to build."""
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    return [*project["dependencies"], *extras["tracing"], *extras["dev"]]


def test_everything_that_is_installed_is_pinned_to_its_version():
    wanted = needed(project_requirements())
    pinned = pinned_here("dev")
    assert {name: pinned.get(name) for name in wanted} == wanted


def test_what_is_pinned_is_needed():
    # A package may be needed by another version of Python alone.
    assert len(pinned_here("dev").keys() - needed(project_requirements()).keys()) <= 2


def test_what_runs_is_what_was_tested():
    run, dev = pinned_here("run"), pinned_here("dev")
    assert run == {name: dev[name] for name in run}
    assert run.keys() >= needed([*PROJECT["project"]["dependencies"], *build()]).keys()
    assert "pytest" not in run


def build() -> list[str]:
    """What builds the wheel."""
    requires: list[str] = PROJECT["build-system"]["requires"]
    return requires


def test_what_builds_is_pinned_as_well():
    assert PROJECT["dependency-groups"]["build"] == build()
    assert {Requirement(each).name for each in build()} <= pinned_here("run").keys()


@pytest.mark.parametrize("group", ["deploy", "supply"])
def test_tools_with_an_environment_of_their_own_are_pinned(group):
    tools = {Requirement(each).name for each in PROJECT["dependency-groups"][group]}
    assert tools <= pinned_here(group).keys()


def test_a_missing_pin_would_be_seen():
    assert {"pytest", "iniconfig", "pluggy"} <= needed(["pytest>=1"]).keys()
    assert "cryptography" in needed(["pyjwt[crypto]"])
    assert "cryptography" not in needed(["pyjwt"])


@pytest.mark.parametrize("name", FILES)
def test_pins_are_sorted(name):
    names = list(pins_of(name))
    assert names == sorted(names)


FIT = "a==1 --hash=sha256:" + "0" * 64


@pytest.mark.parametrize(
    "line",
    [
        *("a==1", "a>=1", "a @ https://host/a.whl", "a==1 --hash=md5:00", "a==1.*"),
        *(FIT.replace("==1", ">=1"), FIT.replace("==1", "==1.*"), FIT + "0", "-r other.txt"),
    ],
)
def test_a_pin_is_a_version_with_its_hashes(line):
    assert list(pins(f"{FIT}\n")) == ["a"]
    with pytest.raises(ValueError, match=r"."):
        pins(line)


def test_every_requirement_has_a_floor_or_a_ceiling():
    assert not [line for line in project_requirements() if not Requirement(line).specifier]


def test_no_command_of_the_project_installs_what_has_no_hash():
    lines = (ROOT / "Makefile").read_text("utf-8").splitlines()
    installs = [line for line in lines if "$(INSTALL)" in line]
    assert len(installs) >= 4
    assert all("$(LOCKED)" in line or "--no-deps" in line for line in installs)


def a_tool(folder: Path, name: str, script: str) -> None:
    """A program of the environment that `make audit` uses."""
    tool = folder / ".cache/supply/bin" / name
    tool.parent.mkdir(parents=True, exist_ok=True)
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("echo '{}' > .cache/audit.json", 0, ""),
        ('echo \'{"id": "one"}\' > .cache/audit.json; exit 1', 2, '{"id": "one"}'),
        ("exit 1", 2, "NOT AUDITED: the database of advisories could not be read."),
    ],
)
def test_an_audit_that_could_not_be_made_never_passes(tmp_path, script, code, said):
    (tmp_path / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/supply.txt").touch()
    a_tool(tmp_path, "pip-audit", script)
    (tmp_path / ".cache/supply/.stamp").touch()
    done = subprocess.run(
        ["make", "-s", "audit"], check=False, cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, said in done.stdout) == (code, True)
