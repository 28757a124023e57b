"""A hash of the settings that all instances of a deployment must share.

An instance with other settings answers the same request differently, or refuses tokens that
another one issued.
"""

import json

from pydantic import SecretStr

from bot.keys import KeyRing
from bot.settings import Settings

OWN = frozenset(
    {
        "admin_listen",
        "build_method",
        "data_dir",
        "database_pool",
        "database_url",
        "fault_boundary",
        "host",
        "log_format",
        "log_level",
        "mirrors_max_gb",
        "port",
        "traces_url",
        "trusted_proxies",
        "workers",
        # An App may have several keys, and GitHub takes each of them.
        "github_private_key",
        "github_private_key_previous",
    }
)
"""Settings that may be each instance's own; every other one must be the same."""


def fingerprint_of(settings: Settings, keys: KeyRing) -> str:
    """Return 32 hexadecimal digits, which differ if a shared setting or the secret key differs."""
    shared = {
        name: _plain(getattr(settings, name)) for name in Settings.model_fields if name not in OWN
    }
    return keys.fingerprint(json.dumps(shared, sort_keys=True))


def _plain(value: object) -> object:
    """Return equal plain values for equal settings, whatever their type."""
    match value:
        case SecretStr():
            return value.get_secret_value()
        case frozenset() | tuple():
            return sorted(str(each) for each in value)
        case _:
            return str(value)
