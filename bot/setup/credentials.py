"""The file of the registered App in the data directory, which `bot/settings.py` reads."""

from bot import keys
from bot.github.registration import RegisteredApp
from bot.settings import PREFIX, Settings
from bot.setup.manifest import Choices


class NotStored(Exception):
    """The credentials could not be written; the message names the file and why."""


def store(settings: Settings, app: RegisteredApp, choices: Choices) -> None:
    """Write the credentials of a new App, readable by us alone. Raises NotStored.

    A file that is there already is never replaced: it belongs to another App.
    """
    path = settings.app_file
    values = {
        "PUBLIC_URL": choices.public_url,
        "GITHUB_HOST": choices.host,
        "GITHUB_APP_ID": app.id,
        "GITHUB_PRIVATE_KEY": app.private_key.strip().replace("\n", "\\n"),
        "GITHUB_WEBHOOK_SECRET": app.webhook_secret,
        "GITHUB_CLIENT_ID": app.client_id,
        "GITHUB_CLIENT_SECRET": app.client_secret,
    }
    lines = [f'{PREFIX}{name}="{value}"\n' for name, value in values.items()]
    try:
        is_new = keys.place_secret(path, "".join(lines))
    except OSError as failed:
        raise NotStored(f"{path} cannot be written ({failed.strerror})") from failed
    if not is_new:
        raise NotStored(f"{path} is there already")
