"""`setup-url`: the link leads to the service that uses the data directory."""

import pytest

from bot import settings
from bot.cli import app
from bot.setup import sessions

TOLD = "has stored its address"


@pytest.fixture(name="folder")
def _folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADGATE_DATA_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("serves_at", ["http://127.0.0.1:31842", "https://queue.example.org"])
def test_the_link_leads_to_the_address_of_the_running_service(folder, capsys, serves_at):
    sessions.store_address(settings.alone(data_dir=str(folder)), serves_at)
    assert app.run(["setup-url"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith(f"{serves_at}/setup?token=")
    assert TOLD not in said.err


def test_a_public_url_of_the_settings_is_used_before_the_first_start(folder, capsys, monkeypatch):
    monkeypatch.setenv("HEADGATE_PUBLIC_URL", "https://queue.example.org")
    assert app.run(["setup-url"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("https://queue.example.org/setup?token=")
    assert TOLD not in said.err


@pytest.mark.parametrize("text", [None, "", "[]", '{"url"', "{}"])
def test_an_address_that_is_guessed_is_told_as_a_guess(folder, capsys, text):
    if text is not None:
        (folder / sessions.ADDRESS_FILE).write_text(text)
    assert app.run(["setup-url"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("http://127.0.0.1:8642/setup?token=")
    assert TOLD in said.err
