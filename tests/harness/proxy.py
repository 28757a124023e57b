"""A company's network on loopback: an outbound proxy, and a private certification authority."""

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PART = 65_536
STEPS_TO_CLOSE = 5
"""Steps of the loop after which an aborted connection is closed."""


@dataclass(slots=True)
class Proxy:
    """An HTTP proxy: its address, the first line and header names of each request that it got.

    `leads` are the ports of this machine behind the targets that it knows, as `host:443`; others
    are refused. `answer` refuses all with this status; `credentials`, as `Basic …`, are demanded.
    """

    port: int = 0
    leads: Mapping[str, int] = field(default_factory=dict)
    answer: int = 200
    credentials: str = ""
    lines: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its address, as a variable of the environment has it."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def targets(self) -> list[str]:
        """What it was asked to connect to, in order."""
        return [line.split()[1] for line in self.lines if line.startswith("CONNECT ")]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection, which is one request."""
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, _, rest = head.partition("\r\n")
            self.lines.append(line)
            method, target = line.split()[:2]
            where = target if method == "CONNECT" else target.split("/")[2]
            status = self.answer if where in self.leads else 502
            if self.credentials and f"Proxy-Authorization: {self.credentials}\r\n" not in rest:
                status = 407
            if status != 200:
                asks = 'Proxy-Authenticate: Basic realm="x"\r\n' if status == 407 else ""
                head = (
                    f"HTTP/1.1 {status} No\r\n{asks}Connection: close\r\nContent-Length: 0\r\n\r\n"
                )
                writer.write(head.encode())
                await writer.drain()
                return
            is_tunnel = method == "CONNECT"
            if is_tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            first = b"" if is_tunnel else head.encode("latin-1")
            await _join(reader, writer, self.leads[where], first)


@asynccontextmanager
async def proxying(leads: Mapping[str, int], **more: str | int) -> AsyncIterator[Proxy]:
    """A proxy that knows these targets."""
    made = Proxy(leads=leads)
    for name, value in more.items():
        setattr(made, name, value)
    async with served(made.serve) as port:
        made.port = port
        yield made


@asynccontextmanager
async def tls_before(port: int, tls: ssl.SSLContext) -> AsyncIterator[int]:
    """The port of a listener that ends TLS before a plain server of this machine."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, ssl.SSLError):
            await _join(reader, writer, port)

    async with served(serve, tls) as own:
        yield own


@asynccontextmanager
async def served(serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port of a server on loopback, whose connections end with it."""
    tasks: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with suppress(asyncio.CancelledError):
                await serve(reader, writer)
        finally:
            writer.close()
            tasks.discard(task)

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for each in list(tasks):
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _ in range(STEPS_TO_CLOSE):
            await asyncio.sleep(0)


async def _join(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, first: bytes = b""
) -> None:
    """Join a connection with another one to a port of this machine, until both have ended."""
    there, onward = await asyncio.open_connection("127.0.0.1", port)
    try:
        onward.write(first)
        await asyncio.gather(_pass(reader, onward), _pass(there, writer))
    finally:
        onward.transport.abort()
        writer.transport.abort()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, ssl.SSLError):
        while part := await reader.read(PART):
            writer.write(part)
            await writer.drain()
    with suppress(OSError, RuntimeError):
        if writer.can_write_eof():
            writer.write_eof()
        else:
            writer.close()


@dataclass(frozen=True, slots=True)
class Authority:
    """A private certification authority: the file of its certificate, and its key."""

    file: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def server(self, name: str) -> ssl.SSLContext:
        """TLS of a server of this name, certified by the authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = (
            _builder(subject, self.certificate.subject, key)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        chain = self.file.with_name(f"{name}.pem")
        chain.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + made.public_bytes(serialization.Encoding.PEM)
        )
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(chain)
        return tls


def authority(folder: Path, days: float = 1) -> Authority:
    """A new authority, whose certificate is a file in the folder and ends in so many days."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Corporate CA")])
    made = (
        _builder(subject, subject, key, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "corporate-ca.pem"
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return Authority(file, made, key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: float = 1
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=days))
    )
