"""What landed, as the `git` command sees it in the sandbox's bare repository."""

import asyncio

from tests.harness.world import World


async def landed_on(world: World, branch: str = "main") -> list[str]:
    """Subjects of the first-parent commits that reached the branch after the world began."""
    lines = await git(world, "log", "--first-parent", "--format=%s", f"{world.start}..{branch}")
    return list(reversed(lines.splitlines()))


async def files_on(world: World, branch: str = "main") -> set[str]:
    """Names of all files at the branch's tip."""
    return set((await git(world, "ls-tree", "-r", "--name-only", branch)).splitlines())


async def git(world: World, *words: str) -> str:
    """Run git in the repository. Raises AssertionError when git fails."""
    process = await asyncio.create_subprocess_exec(
        "git",
        *words,
        cwd=world.repository.git.folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, trouble = await process.communicate()
    assert process.returncode == 0, trouble.decode()
    return out.decode()
