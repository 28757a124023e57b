"""The guide "Let a hundred agents land" works when its blocks are pasted, one after the other."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.end_to_end.test_agents import QUEUE
from tests.end_to_end.test_command_line import seed
from tests.end_to_end.test_two_processes import token
from tests.harness.processes import Service, Stage, stage
from tests.tidy.tree import ROOT

GUIDE = (ROOT / "docs/how-to/agents.md").read_text("utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
PROGRAMS = Path(sys.prefix, "bin")


async def pasted(set_up: Stage, service: Service, block: str, secret: str) -> tuple[str, str]:
    """Run a block in a shell; what it wrote, and its error output. The last exit code is 0."""
    environment = {
        **set_up.environment,
        "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
        "HEADGATE_URL": service.url,
        "HEADGATE_TOKEN": secret,
        "GITHUB_REPOSITORY": "octo/widgets",
    }
    child = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        block,
        cwd=set_up.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = await child.communicate()
    assert child.returncode == 0, err.decode()
    return out.decode(), err.decode()


WORDS = (
    *("token create", "headgate next 1 --json", "until", "webhook add"),
    *("--open-entries", "fairShares"),
)
"""What the blocks have, one after the other."""


def test_the_guide_has_the_blocks() -> None:
    assert [word in block for word, block in zip(WORDS, BLOCKS, strict=True)] == [True] * 6


async def test_the_pasted_blocks_land_pull_requests(tmp_path: Path) -> None:
    makes_token, loop, script, _hook, limited, shares = BLOCKS
    async with stage(tmp_path) as set_up:
        await seed(set_up)
        async with set_up.serving() as service:
            admin = await token(set_up)
            status, made = await set_up.api(service, "createQueue", admin, **QUEUE)
            assert status == 200, made
            secret = (await pasted(set_up, service, makes_token, admin))[0].strip()
            said, _ = await pasted(set_up, service, loop, secret)
            kinds = re.findall(r'^  "kind": "([A-Z]+)"', said, re.MULTILINE)
            assert kinds == ["SUBMIT", "DONE"]
            change = {"head": "next", "files": {"next.txt": "x"}, "title": "Next"}
            act = {"as": "alice", "act": "open", "repo": "octo/widgets", **change}
            number = (await set_up.control("acts", act))["number"]
            written = script.replace("number=1", f"number={number}")
            assert written != script
            assert f"#{number} DONE" in (await pasted(set_up, service, written, secret))[0]
            assert (await set_up.pull(number))["merged"]
            assert (await pasted(set_up, service, limited, admin))[0].startswith("hgt_")
            assert "fairShares" in (await pasted(set_up, service, shares, admin))[0]
