"""`headgate openapi`: the document of the API, without a running service."""

import sys

import typer

from bot.cli import output
from bot.cli.options import AsJson

app = typer.Typer()


@app.command()
def openapi(as_json: AsJson = False) -> None:
    """Print the OpenAPI document, as /openapi.json serves it; --json: on one line."""
    import orjson

    from service.http import openapi as documents
    from service.process.api import routes

    encoded = documents.encoded(routes.CONTRACT)
    if as_json:
        sys.stdout.write(encoded.decode() + "\n")
    else:
        output.print_json(orjson.loads(encoded))
