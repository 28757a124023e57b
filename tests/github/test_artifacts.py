"""Archives are fetched from where GitHub keeps them, and from nowhere else.

See docs/design/limits.md 1.
"""

import socket
from dataclasses import replace

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver

from bot.github import artifacts
from bot.github.artifacts import UNSAFE, Artifacts, PublicOnly
from bot.github.options import GitHubOptions, addresses_of
from bot.github.wire import Broken
from service.provider import archives
from service.provider.archives import NoArchive

OPTIONS = GitHubOptions("github.localhost", addresses_of("x", "http://127.0.0.1:1"), "1", (), ())
PUBLIC = replace(OPTIONS, host="github.com", addresses=addresses_of("github.com"))


@pytest.fixture
async def served():
    """A server that answers /archive, /elsewhere and /refused; its root, and the headers sent."""
    seen = []

    async def answer(request):
        seen.append(request.headers)
        if request.path == "/elsewhere":
            raise web.HTTPFound("/archive")
        status = 403 if request.path == "/refused" else 200
        return web.Response(body=b"x" * 3_000_000, status=status)

    app = web.Application()
    app.router.add_get("/{name}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}", seen
    await runner.cleanup()


@pytest.fixture
async def fetch():
    made = Artifacts(OPTIONS)
    yield made.fetch
    await made.close()


async def test_an_archive_is_fetched_without_a_token_or_cookies(fetch, served):
    root, seen = served
    assert await fetch(f"{root}/archive") == b"x" * 3_000_000
    assert not {"Authorization", "Cookie"} & set(seen[0])


async def test_no_more_is_read_than_the_limit(fetch, served, monkeypatch):
    monkeypatch.setattr(archives, "PACKED_MAX", 2_000_000)
    assert await fetch(f"{served[0]}/archive") == NoArchive(archives.TOO_LARGE)


@pytest.mark.parametrize("name", ["elsewhere", "refused"])
async def test_a_second_redirect_and_a_refusal_are_no_archive(fetch, served, name):
    with pytest.raises(Broken):
        await fetch(f"{served[0]}/{name}")
    assert len(served[1]) == 1


@pytest.mark.parametrize("url", ["", "ftp://a/b", "file:///etc/passwd", "http://u:p@a/b", "//a/b"])
async def test_odd_addresses_are_not_called(fetch, url):
    assert await fetch(url) == UNSAFE


@pytest.mark.parametrize(
    "url",
    ["http://a.example/b", "https://10.0.0.1/b", "https://[::1]/b", "https://2130706433/b"],
)
async def test_for_the_public_host_only_names_under_https_are_called(url):
    made = Artifacts(PUBLIC)
    assert await made.fetch(url) == UNSAFE
    await made.close()


class Finder(AbstractResolver):
    """Finds the same addresses for every name."""

    def __init__(self, *addresses):
        self.addresses = addresses

    async def resolve(self, host, port=0, family=socket.AF_INET):
        return [
            {"hostname": host, "host": each, "port": port, "family": family, "proto": 0, "flags": 0}
            for each in self.addresses
        ]

    async def close(self):
        pass


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "192.168.1.1",
        "100.64.0.1",
        "224.0.0.1",
        "168.63.129.16",
        "::1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "fd00:ec2::254",
        "2002:0a00:0001::",
    ],
)
async def test_a_name_that_leads_into_a_private_network_is_not_found(address):
    with pytest.raises(OSError, match="not public"):
        await PublicOnly(Finder("93.184.215.14", address)).resolve("a.example")


async def test_a_public_name_is_found():
    found = await PublicOnly(Finder("93.184.215.14", "2606:2800::1")).resolve("a.example")
    assert [each["host"] for each in found] == ["93.184.215.14", "2606:2800::1"]


async def test_a_private_name_is_not_called_for_the_public_host(monkeypatch):
    monkeypatch.setattr(artifacts, "ThreadedResolver", lambda: Finder("127.0.0.1"))
    made = Artifacts(PUBLIC)
    with pytest.raises(Broken):
        await made.fetch("https://storage.example/archive")
    await made.close()
