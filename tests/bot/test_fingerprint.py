"""Which settings instances must share, told in one word that gives none of them away."""

from typing import Any

import pytest

from bot import settings
from bot.fingerprint import OWN, fingerprint_of
from bot.keys import KeyRing
from bot.settings import Settings

KEY = "k" * 43


def of(**chosen: Any) -> str:
    given = settings.alone(**{"secret_key": KEY, **chosen})
    return fingerprint_of(given, KeyRing(chosen.get("secret_key", KEY)))


def test_it_is_the_same_wherever_the_shared_settings_are():
    own = {"host": "127.0.0.2", "port": 1, "log_level": "debug", "workers": False, "data_dir": "x"}
    assert of() == of(**own)
    assert of(webhook_ports="8443,9000") == of(webhook_ports="9000,8443")
    assert len(of()) == 32


@pytest.mark.parametrize(
    "chosen",
    [
        {"secret_key": "n" * 43},
        {"secret_key_previous": "o" * 43},
        {"public_url": "https://queue.example.org"},
        {"github_app_id": "7"},
        {"github_webhook_secret": "s" * 20},
        {"auto_create_queues": False},
        {"api_enum_case": "lower"},
        {"api_compatibility": "trunk"},
        {"api_rate_read": "1/1"},
        {"webhook_allow_networks": "10.1.0.0/16"},
        {"period_queues_s": 30},
    ],
    ids=lambda chosen: next(iter(chosen)),
)
def test_it_is_another_one_wherever_a_shared_setting_is(chosen):
    assert of(**chosen) != of()


def test_settings_of_one_instance_are_settings():
    assert set(Settings.model_fields) >= OWN
