"""What tests of the command line share: a service, an environment without surprises."""

import pytest

from bot import settings
from tests.cli import service


@pytest.fixture(autouse=True)
def _environment(monkeypatch, tmp_path):
    for name in settings.environment_of_headgate():
        monkeypatch.delenv(name)
    for name in ("GITHUB_REPOSITORY", "GITHUB_SERVER_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(name="api")
def _api(monkeypatch):
    """A service, and the environment that leads commands to its queue for main.

    Whatever the commands send there has only fields that the true service knows.
    """
    with service.served() as api:
        monkeypatch.setenv("HEADGATE_URL", api.url)
        monkeypatch.setenv("HEADGATE_TOKEN", service.TOKEN)
        monkeypatch.setenv("GITHUB_REPOSITORY", "octo/widgets")
        monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
        yield api
        for path, sent, _ in api.asked:
            assert service.unknown_fields(path, sent) == [], path
