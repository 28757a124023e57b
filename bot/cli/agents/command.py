"""`headgate mcp`: serve the tools over stdio, or over streamable HTTP."""

from typing import Annotated

import typer

from bot.cli import destination, options
from bot.program import MCP_PORT

app = typer.Typer()

PORT_MAX = 65_535


@app.command()
def mcp(
    http: Annotated[
        bool, typer.Option("--http", help="Serve HTTP at /mcp; each request sends its own token.")
    ] = False,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=PORT_MAX, help="Port to listen on.")
    ] = MCP_PORT,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host",
            help="Name by which clients reach it, as mcp.example.org; repeatable.",
        ),
    ] = None,
    repo: options.Repo = None,
    url: options.Url = None,
    token_file: options.TokenFile = None,
) -> None:
    """Serve coding agents: tools that land, explain and wait, by the Model Context Protocol."""
    from bot.cli.agents import server
    from bot.cli.agents.server import Address, Service

    address = destination.find_url(url)
    if http:
        service = Service(address, token="", repo=repo)
        server.serve_http(service, Address(host, port, tuple(allowed_host or ())))
    else:
        service = Service(address, destination.find_token(token_file), repo)
        server.serve_stdio(service)
