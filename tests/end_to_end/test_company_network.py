"""A pull request lands where GitHub is reached by an outbound proxy alone, and by a private CA."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.end_to_end.test_two_processes import REPO, comment, open_one, seed
from tests.harness.processes import (
    LOOK_EVERY_S,
    START_WITHIN_S,
    NeverHappened,
    Stage,
    address_in,
    stage,
)
from tests.harness.proxy import Proxy, authority, proxying, tls_before
from tests.tidy.tree import ROOT

NAME = "github.localhost"
"""Nothing listens on its own port: only the proxy leads there."""
PASSWORD = "Basic Ym9iOnMzY3JldA=="


@pytest.fixture
async def network(tmp_path: Path) -> AsyncIterator[tuple[Stage, Proxy]]:
    """A sandbox behind TLS of a private authority, and the proxy that alone leads to it."""
    corporate = authority(tmp_path)
    async with stage(tmp_path) as set_up:
        await seed(set_up)
        plain = urlsplit(set_up.sandbox_url).port or 0
        async with (
            tls_before(plain, corporate.server(NAME)) as port,
            proxying({f"{NAME}:443": port}, credentials=PASSWORD) as proxy,
        ):
            environment = {
                **set_up.environment,
                "PYTHONPATH": str(ROOT),
                "HEADGATE_GITHUB_URL": f"https://{NAME}",
                "HEADGATE_BUILD_METHOD": "git",
                "HTTPS_PROXY": proxy.url.replace("//", "//bob:s3cret@"),
                "SSL_CERT_FILE": str(corporate.file),
            }
            yield replace(set_up, environment=environment), proxy


@asynccontextmanager
async def serving(set_up: Stage) -> AsyncIterator[Path]:
    """`headgate serve` as a process of its own, which reads the environment at its start; its log.

    It is terminated at the end.
    """
    log = set_up.folder / "serve.log"
    with log.open("w") as sink:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bot",
            "serve",
            env=set_up.environment,
            stdout=sink,
            stderr=sink,
            cwd=set_up.folder,
        )
    try:
        deadline = set_up.clock.monotonic_s() + START_WITHIN_S
        while process.returncode is None and '"ready"' not in log.read_text():
            if set_up.clock.monotonic_s() > deadline:
                raise NeverHappened(log.read_text())
            await set_up.clock.sleep(LOOK_EVERY_S)
        if url := address_in(log):
            await set_up.control("webhook", {"url": f"{url}/webhooks/github"})
        yield log
    finally:
        process.terminate()
        await process.wait()


async def test_everything_goes_through_the_proxy_and_git_too(network: tuple[Stage, Proxy]) -> None:
    set_up, proxy = network
    number = await open_one(set_up)
    async with serving(set_up) as log:
        await comment(set_up, number, "/merge")
        await set_up.landed(number)
        await set_up.swept(REPO)
    said = log.read_text()
    assert set(proxy.targets) == {f"{NAME}:443"}
    assert '"error"' not in said
    assert "s3cret" not in said
    assert '"mirror_made"' in said
    assert '"sign_in":"token"' in said
    assert "failed" not in said
