"""A mirror on a disk that has lost or changed bytes is made anew, whatever git says of it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bot.github.options import BuildMethod
from service.provider.values import Built, Vehicle
from tests.provider.stage import Stage, mirrors_in, on_sandbox

REST_S = 3_700.0
"""After so long git is tried again where it failed twice."""


@pytest.fixture
async def stage(tmp_path: Path):
    """A provider that has built a test branch in its mirror."""
    async with on_sandbox(mirrors=mirrors_in(tmp_path, BuildMethod.GIT)) as made:
        assert await is_built_by_git(made, "first.txt")
        yield made


async def is_built_by_git(stage: Stage, file: str) -> bool:
    """Build the test branch of a new pull request, which is always built; whether by git."""
    before = stage.built_by().get(("git", "default"), 0)
    pull = await stage.open({file: "new\n"})
    built = await stage.provider.build(stage.request(pull, vehicle=Vehicle.PUSH))
    assert isinstance(built, Built)
    return bool(stage.built_by().get(("git", "default"), 0) > before)


def halved(path: Path) -> None:
    """Lose the second half of a file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path: Path) -> None:
    """Lose the content of a file."""
    path.write_bytes(b"")


def overwritten(path: Path) -> None:
    """Get other bytes in place of a file's own."""
    path.write_bytes(b"garbage")


def lost(path: Path) -> None:
    """Lose a file."""
    path.unlink()


def turned(path: Path) -> None:
    """Get one bit in eight wrong in the middle of a file, which keeps its size."""
    content = bytearray(path.read_bytes())
    third = len(content) // 3
    content[third : 2 * third] = bytes(byte ^ 1 for byte in content[third : 2 * third])
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("files", "damage"),
    [
        ("objects/**/*", halved),
        ("objects/**/*", emptied),
        ("objects/**/*", overwritten),
        ("objects/**/*", turned),
        ("objects/pack/*.idx", lost),
        ("refs/**/*", turned),
        ("config", halved),
    ],
)
@pytest.mark.fault(
    "files of a mirror are lost or changed",
    holds="the REST API makes each test branch meanwhile, and git makes them again",
    within="2 failures and 1 h",
)
async def test_git_builds_again_whatever_was_damaged(
    stage: Stage, files: str, damage: Callable[[Path], None]
):
    struck = [path for path in stage.mirror.glob(files) if path.is_file()]
    assert struck
    for path in struck:
        path.chmod(0o600)
        damage(path)
    for number in range(2):
        await is_built_by_git(stage, f"{number}.txt")
    stage.clock.advance(REST_S)
    assert await is_built_by_git(stage, "last.txt")
