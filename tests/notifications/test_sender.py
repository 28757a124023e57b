"""Attempts over real sockets on loopback: what counts, what is refused, what is bounded."""

import asyncio
import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from service.notifications.addresses import Address, Rules
from service.notifications.sender import HttpSender
from service.runtime import Outgoing
from tests.harness.receiver import receiving

LOOPBACK = Rules(frozenset(range(1024, 65536)), (ipaddress.ip_network("127.0.0.0/8"),))
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def outgoing(url: str, **headers: str) -> Outgoing:
    return Outgoing(url, {"Content-Type": "application/json", **headers}, b'{"type":"x"}')


STEPS_TO_BEGIN = 10
"""Steps of the loop after which an accepted connection is being answered."""


@asynccontextmanager
async def listening(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A bare server; its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        under_way.append(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await serve(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    under_way: list[asyncio.Task[None]] = []
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
        if under_way:
            await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
    finally:
        server.close()
        for _ in range(STEPS_TO_BEGIN):
            await asyncio.sleep(0)
        for each in under_way:
            each.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


async def head_of(reader: asyncio.StreamReader) -> bytes:
    """The request up to its body."""
    return await reader.readuntil(b"\r\n\r\n")


def resolving(*answers: Sequence[str]) -> tuple[list[str], Callable[..., Awaitable[list[Address]]]]:
    """A resolver that answers each time with the next of these; and what it was asked."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[Address]:
        asked.append(host)
        found = answers[min(len(asked), len(answers)) - 1]
        return [ipaddress.ip_address(text) for text in found]

    return asked, resolve


@pytest.mark.parametrize("status", [200, 201, 204, 299])
async def test_every_success_counts(status):
    async with receiving() as receiver:
        receiver.answers = [status]
        outcome = await HttpSender(LOOPBACK).post(outgoing(receiver.url))
    assert (outcome.status, outcome.error) == (status, None)
    assert [each.body for each in receiver.got] == [b'{"type":"x"}']


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 400, 410, 429, 500, 503])
async def test_everything_else_is_a_failure_and_no_redirect_is_followed(status):
    async with receiving() as receiver:
        receiver.answers = [status]
        receiver.headers = {"Location": receiver.url, "Retry-After": "7", "Set-Cookie": "a=b"}
        sender = HttpSender(LOOPBACK)
        outcome = await sender.post(outgoing(receiver.url))
        await sender.post(outgoing(receiver.url))
    assert outcome.status == status
    assert outcome.error is not None
    assert str(status) in outcome.error
    assert outcome.retry_after == "7"
    assert len(receiver.got) == 2
    assert "cookie" not in receiver.got[1].headers


async def test_no_proxy_of_the_environment_is_asked(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    async with receiving() as receiver:
        outcome = await HttpSender(LOOPBACK).post(outgoing(receiver.url))
    assert outcome.error is None


async def test_the_url_is_sent_as_it_was_written():
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.append((await head_of(reader)).split(b"\r\n")[0])
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    lines: list[bytes] = []
    async with listening(serve) as port:
        url = f"http://127.0.0.1:{port}/a%2Fb/../c;d?x=%41&y"
        assert (await HttpSender(LOOPBACK).post(outgoing(url))).error is None
    assert lines == [b"POST /a%2Fb/../c;d?x=%41&y HTTP/1.1"]


async def test_a_receiver_that_hangs_is_a_failure_in_time():
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        await reader.read(-1)

    async with listening(serve) as port:
        sender = HttpSender(LOOPBACK, timeout_s=0.3)
        outcome = await sender.post(outgoing(f"http://127.0.0.1:{port}/"))
        assert (outcome.status, outcome.error) == (None, "No answer within 0.3 s.")


async def test_an_answer_that_never_ends_is_a_failure_in_time():
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx")
        await reader.read(-1)

    async with listening(serve) as port:
        sender = HttpSender(LOOPBACK, timeout_s=0.3)
        outcome = await sender.post(outgoing(f"http://127.0.0.1:{port}/"))
    assert outcome.error == "No answer within 0.3 s."


async def test_of_an_answer_of_a_gigabyte_the_beginning_is_read():
    written = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        await head_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n")
        part = b"x" * 65_536
        while written < 2**30:
            writer.write(part)
            written += len(part)
            await writer.drain()

    async with listening(serve) as port:
        outcome = await HttpSender(LOOPBACK).post(outgoing(f"http://127.0.0.1:{port}/"))
    assert (outcome.status, outcome.error) == (200, None)
    # What lies in the buffers of both sockets was written too.
    assert written < 32 * 2**20


async def test_a_compressed_answer_is_not_expanded():
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnone")

    async with listening(serve) as port:
        outcome = await HttpSender(LOOPBACK).post(outgoing(f"http://127.0.0.1:{port}/"))
    assert outcome.error is None


@pytest.mark.parametrize(
    "answer",
    [b"", b"SSH-2.0-OpenSSH_9.9\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"],
    ids=["nothing", "no HTTP", "broken off"],
)
async def test_what_is_no_whole_answer_is_a_failure(answer):
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        writer.write(answer)

    async with listening(serve) as port:
        outcome = await HttpSender(LOOPBACK).post(outgoing(f"http://127.0.0.1:{port}/"))
    assert outcome.error is not None


async def test_nobody_there_is_a_failure():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    outcome = await HttpSender(LOOPBACK).post(outgoing(f"http://127.0.0.1:{port}/"))
    assert (outcome.status, outcome.error) == (None, "The connection failed: connection refused.")


async def test_a_name_that_leads_elsewhere_now_is_refused_at_the_attempt():
    async with receiving() as receiver:
        port = receiver.url.partition("127.0.0.1:")[2].partition("/")[0]
        rules = Rules(frozenset({int(port)}))
        asked, resolve = resolving(["1.1.1.1"], ["127.0.0.1"])
        sender = HttpSender(rules, resolve)
        url = f"https://hooks.example.org:{port}/"
        assert await sender.refusal(url) is None
        outcome = await sender.post(outgoing(url))
    assert outcome.status is None
    assert outcome.error == "hooks.example.org leads to 127.0.0.1, which is no public address."
    assert asked == ["hooks.example.org"] * 2
    assert receiver.got == []


async def test_the_address_that_was_vetted_is_the_one_that_is_called():
    async with receiving() as receiver:
        port = receiver.url.partition("127.0.0.1:")[2].partition("/")[0]
        asked, resolve = resolving(["127.0.0.1"], ["127.0.0.2"], ["10.0.0.1"])
        sender = HttpSender(LOOPBACK, resolve)
        outcome = await sender.post(outgoing(f"http://hooks.example.org:{port}/"))
    assert outcome.error is None
    assert asked == ["hooks.example.org"]
    assert receiver.got[0].headers["host"] == f"hooks.example.org:{port}"


async def test_one_bad_answer_of_a_name_refuses_all_and_no_answer_too():
    async def nobody(host: str, port: int) -> list[Address]:
        raise OSError("Name or service not known")

    _, resolve = resolving(["1.1.1.1", "169.254.169.254"])
    refusal = await HttpSender(Rules(), resolve).refusal("https://hooks.example.org/")
    assert refusal == "hooks.example.org leads to 169.254.169.254, which is no public address."
    refusal = await HttpSender(Rules(), nobody).refusal("https://hooks.example.org/")
    assert refusal == "hooks.example.org cannot be resolved."


async def test_names_that_are_slow_to_resolve_hold_up_no_other(monkeypatch):
    known, over = socket.getaddrinfo, threading.Event()

    def looked_up(host: str, port: int, **_: object) -> object:
        if host.startswith("slow"):
            over.wait(20)
        return known("127.0.0.1", port)

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    sender = HttpSender(Rules())
    slow = [asyncio.ensure_future(sender.refusal(f"https://slow{n}.example/")) for n in range(16)]
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(15):
            refusal = await sender.refusal("https://quick.example/")
    finally:
        over.set()
        await asyncio.gather(*slow)
        sender.close()
    assert refusal == "quick.example leads to 127.0.0.1, which is no public address."


async def test_a_name_that_takes_too_long_to_resolve_is_refused():
    async def never(host: str, port: int) -> list[Address]:
        await asyncio.Event().wait()
        return []

    sender = HttpSender(Rules(), never, timeout_s=0.1)
    refusal = await sender.refusal("https://hooks.example.org/")
    assert refusal == "Its host could not be resolved in time."
    outcome = await sender.post(outgoing("https://hooks.example.org/"))
    assert outcome.error == "No answer within 0.1 s."


async def test_the_system_is_asked_for_names():
    sender = HttpSender(LOOPBACK)
    async with receiving() as receiver:
        outcome = await sender.post(outgoing(receiver.url.replace("127.0.0.1", "localhost")))
    sender.close()
    # The machine may also have an IPv6 address of that name, which nobody allowed.
    assert outcome.error in (None, "It must begin with https://")


def a_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate for this name that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, secret = folder / f"{name}.pem", folder / f"{name}.key"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate, secret


@pytest.mark.parametrize(
    ("name", "is_trusted", "is_sent"),
    [
        ("hooks.example.org", True, True),
        ("hooks.example.org", False, False),
        ("other.example.org", True, False),
    ],
)
async def test_tls_is_verified_for_the_name_though_the_address_is_pinned(
    tmp_path, monkeypatch, name, is_trusted, is_sent
):
    certificate, key = a_certificate(tmp_path, name)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    _, resolve = resolving(["127.0.0.1"])
    async with listening(serve, tls) as port:
        sender = HttpSender(LOOPBACK, resolve)
        outcome = await sender.post(outgoing(f"https://hooks.example.org:{port}/"))
    assert (outcome.error is None) is is_sent
    assert is_sent or (outcome.error or "").startswith("TLS failed: ")
