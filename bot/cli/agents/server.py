"""The server of the tools, over stdio and over streamable HTTP."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl

from bot.cli import destination
from bot.cli.agents.tools import READS, Session, Tools
from bot.cli.exits import Exit, Failed
from bot.program import VERSION

INSTRUCTIONS = (
    "Headgate is a merge queue: it tests a pull request together with those ahead of it and merges "
    "it if the required checks pass. Call what_now about a pull request, do the one thing that it "
    'says, and repeat that until its kind is "DONE", "DROP" or "SUPERSEDED". Never merge by hand '
    "into a branch that has a queue."
)
LOOPBACK = ("127.0.0.1:*", "localhost:*", "[::1]:*")

# Each waiting agent holds one thread for the length of a long poll.
THREADS_MAX = 64


@dataclass(frozen=True, slots=True)
class Service:
    """The service that the tools ask; `token` is empty if each request brings its own."""

    url: str
    token: str
    repo: str | None


@dataclass(frozen=True, slots=True)
class Address:
    """The address to listen on, and other host names that clients may use."""

    host: str
    port: int
    allowed: tuple[str, ...]


class ServiceTokens(TokenVerifier):
    """Accepts the tokens that the service accepts."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what the service knows of the token; None if it does not know it."""
        try:
            own = await asyncio.to_thread(destination.connect(self._url, token).get, "/tokens/self")
        except Failed as failed:
            if failed.code is not Exit.NOT_ALLOWED:
                raise
            return None
        return AccessToken(token=token, client_id=str(own["id"]), scopes=[str(own["role"])])


def make_server(service: Service) -> MCPServer:
    """Return the server with all tools; it asks for a token if the service has none."""
    auth = None
    if not service.token:
        auth = AuthSettings(issuer_url=AnyHttpUrl(service.url), resource_server_url=None)
    server: MCPServer = MCPServer(
        "headgate",
        instructions=INSTRUCTIONS,
        version=VERSION,
        auth=auth,
        token_verifier=ServiceTokens(service.url) if auth else None,
        log_level="WARNING",
    )
    session = Session(service.url, service.token, service.repo, ThreadPoolExecutor(THREADS_MAX))
    tools = Tools(session)
    for tool in tools.all():
        server.add_tool(tool, annotations=READS if tool.__name__ in tools.reads else None)
    return server


def serve_stdio(service: Service) -> None:
    """Serve one client over standard input and output until it hangs up."""
    asyncio.run(make_server(service).run_stdio_async())


def serve_http(service: Service, address: Address) -> None:
    """Serve HTTP at /mcp until a signal stops it."""
    names = [each for name in address.allowed for each in (name, f"{name}:*")]
    security = TransportSecuritySettings(
        allowed_hosts=[*LOOPBACK, *names],
        allowed_origins=[f"{scheme}://{each}" for scheme in ("http", "https") for each in names]
        + [f"http://{each}" for each in LOOPBACK],
    )
    run = partial(
        make_server(service).run_streamable_http_async,
        host=address.host,
        port=address.port,
        transport_security=security,
    )
    asyncio.run(run())
