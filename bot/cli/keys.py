"""`keys …`: the keys that sign evidence of landings, beside a running service.

These commands open the database for one short transaction each.
"""

import typer

from bot.cli import options, output

app = typer.Typer(help="List and rotate the keys that sign evidence of landings.")


@app.command(name="list")
def list_all(
    database_url: options.DatabaseUrl = None,
    data_dir: options.DataDir = None,
    as_json: options.AsJson = False,
) -> None:
    """List the public keys; --json: as /.well-known/headgate-keys.json has them."""
    from bot.cli.administration import administer
    from service.accounts import signing_keys

    keys = administer(lambda runtime, _: signing_keys.all_keys(runtime), database_url, data_dir)
    if as_json:
        output.print_json(signing_keys.served(keys))
        return
    output.print_table(
        ("Id", "Signs since", "Until"),
        [
            (
                each.id,
                f"{each.since:%Y-%m-%d %H:%M}",
                f"{each.until:%Y-%m-%d %H:%M}" if each.until else "now",
            )
            for each in keys
        ],
    )


@app.command()
def rotate(
    database_url: options.DatabaseUrl = None,
    data_dir: options.DataDir = None,
    as_json: options.AsJson = False,
) -> None:
    """Sign with a new key from now on; what older keys signed can still be checked."""
    from bot.cli.administration import administer, operator
    from service.accounts import signing_keys

    key = administer(
        lambda runtime, _: signing_keys.rotate(runtime, operator()), database_url, data_dir
    )
    if as_json:
        output.print_json(signing_keys.served((key,)))
    else:
        output.line(f"Key {key.id} signs from now on")
