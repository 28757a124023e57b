"""constraints.txt pins everything that the project needs, and nothing else."""

import tomllib
from collections.abc import Iterable
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.tidy.tree import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


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


def pins(text: str) -> dict[str, str]:
    """Name to version; ValueError on a line that is anything but `name==version`."""
    return dict(pin_of(line) for line in text.splitlines())


def pin_of(line: str) -> tuple[str, str]:
    """Name and version of one line."""
    name, version = line.split("==")
    if name != canonicalize_name(name) or not version or " " in line or ";" in line:
        raise ValueError(line)
    return name, version


def project_requirements() -> list[str]:
    """What pyproject.toml asks for: to run, to develop, to build."""
    project = PROJECT["project"]
    return [
        *project["dependencies"],
        *project["optional-dependencies"]["dev"],
        *PROJECT["build-system"]["requires"],
    ]


def test_everything_needed_is_pinned_to_what_is_installed():
    assert pins((ROOT / "constraints.txt").read_text("utf-8")) == needed(project_requirements())


def test_a_missing_pin_would_be_seen():
    assert {"pytest", "iniconfig", "pluggy"} <= needed(["pytest>=1"]).keys()
    assert "cryptography" in needed(["pyjwt[crypto]"])
    assert "cryptography" not in needed(["pyjwt"])


def test_pins_are_sorted():
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert lines == sorted(lines)


@pytest.mark.parametrize("line", ["a>=1", "A==1", "a==1 ; x", "a @ https://host/a.whl", "a=="])
def test_a_pin_is_a_name_and_a_version_alone(line):
    with pytest.raises(ValueError, match=r"."):
        pins(line)


def test_every_requirement_has_a_floor_or_a_ceiling():
    assert not [line for line in project_requirements() if not Requirement(line).specifier]
