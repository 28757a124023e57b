"""`setup-url`: another link to the set-up pages of a running service."""

import typer

from bot.cli import options, output

app = typer.Typer()


@app.command(name="setup-url")
def setup_url(data_dir: options.DataDir = None, as_json: options.AsJson = False) -> None:
    """Print a new link to the set-up pages; it works once, within an hour.

    Run it on the machine of `headgate serve`, with the same data directory.
    """
    from bot import settings
    from bot.setup import sessions
    from service.clock import SystemClock
    from service.errors import StartRefused

    chosen = settings.read(data_dir=data_dir)
    if not chosen.data_dir.is_dir():
        raise StartRefused(
            f"HEADGATE_DATA_DIR: {chosen.data_dir} does not exist. Give the directory of "
            "`headgate serve`, on its machine."
        )
    token = sessions.new_link(chosen, SystemClock().now())
    root = sessions.stored_address(chosen.data_dir) or chosen.public_url
    if root is None:
        root = f"http://{chosen.host}:{chosen.port}"
        output.log(
            "no service of this data directory has stored its address, so the host and port are "
            "those of the settings here"
        )
    link = sessions.link_of(root, token)
    if as_json:
        output.print_json({"url": link})
    else:
        output.line(link)
