"""`headgate mcp`: serve the tools over stdio, or over streamable HTTP."""

from typing import Annotated

import typer

from bot.cli import destination, options
from bot.program import MCP_PORT

app = typer.Typer()

PORT_MAX = 65_535


@app.command()
def mcp(
    http: Annotated[bool, typer.Option("--http", help="Serve streamable HTTP at /mcp.")] = False,
    host: Annotated[
        str, typer.Option("--host", help="With --http: address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=PORT_MAX, help="With --http: port to listen on.")
    ] = MCP_PORT,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host",
            help="With --http: name by which agents reach it, as mcp.example.org; repeatable.",
        ),
    ] = None,
    repo: options.Repo = None,
    url: options.Url = None,
    token_file: options.TokenFile = None,
) -> None:
    """Serve tools for coding agents by the Model Context Protocol.

    Over standard input and output for one agent, with the token of the environment; with --http
    for many, each with its own token.
    """
    from bot.cli.agents import server
    from bot.cli.agents.server import Address, Service

    address = destination.find_url(url)
    if http:
        service = Service(address, token="", repo=repo)
        server.serve_http(service, Address(host, port, tuple(allowed_host or ())))
    else:
        service = Service(address, destination.find_token(token_file), repo)
        server.serve_stdio(service)
