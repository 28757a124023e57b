"""Secrets of endpoints, and the headers of one attempt: Standard Webhooks.

See docs/design/notifications.md 2.
"""

import base64
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime

from standardwebhooks import Webhook

SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"
ID_PREFIX = "msg_"
FAMILIES = ("webhook", "svix")
"""Receivers accept the three headers by either name."""


def new_secret() -> str:
    """Return a fresh secret: `whsec_` and 32 random bytes in base64."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def message_id(uuid: str) -> str:
    """Return the id of a message: `msg_` and the 32 hex digits of a fresh UUID."""
    return ID_PREFIX + uuid.replace("-", "")


def headers(message: str, at: datetime, body: str, keys: Sequence[str]) -> Mapping[str, str]:
    """Return the six signing headers of an attempt; a signature for each secret, in order."""
    signed = [Webhook(secret).sign(message, at, body) for secret in keys]
    values = {
        "id": message,
        "timestamp": str(int(at.timestamp())),
        "signature": " ".join(signed),
    }
    return {f"{family}-{name}": value for family in FAMILIES for name, value in values.items()}
