"""The key ring: hashes, tags and encryption with keys derived from the deployment's secret key.

One secret key feeds one key a purpose, by HKDF with a label, so that no purpose can speak for
another (docs/design/security.md 1). While the secret key is rotated the previous one is accepted,
never used for anything new.
"""

import hashlib
import hmac
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from bot import envelopes
from service.errors import ServiceError, StartRefused
from service.runtime import MadeKey

KEY_BYTES = 32
TOKENS = b"headgate/api-token/v1"
PAGES = b"headgate/page-token/v1"
FORMS = b"headgate/form/v1"
SEALED = b"headgate/sealed/v1"
SETTINGS = b"headgate/settings/v1"

PAGE_TAG_BYTES = 16
FINGERPRINT_LENGTH = 32
# 96 bits, the size that AES-GCM is made for; random ones suffice for 2**32 secrets a key.
NONCE_BYTES = 12

KEY_FILE = "secret.key"
SETTING = "HEADGATE_SECRET_KEY"


class KeyRing:
    """The keys of this process; implements `service.runtime.Keys`."""

    def __init__(self, present: str, previous: str | None = None) -> None:
        secret_keys = (present,) if previous is None else (present, previous)
        self._token_keys = tuple(derived(secret_key, TOKENS) for secret_key in secret_keys)
        self._page_keys = tuple(derived(secret_key, PAGES) for secret_key in secret_keys)
        self._sealing_keys = tuple(derived(secret_key, SEALED) for secret_key in secret_keys)
        self._form_key = derived(present, FORMS)
        self._settings_key = derived(present, SETTINGS)

    def token_digest(self, token: str) -> bytes:
        """Return the hash under which a new token is stored: HMAC-SHA-256, 32 bytes."""
        return _keyed_hash(self._token_keys[0], token)

    def token_digests(self, token: str) -> tuple[bytes, ...]:
        """Return the hashes that a given token may be stored under, the present key's first."""
        return tuple(_keyed_hash(key, token) for key in self._token_keys)

    def page_tag(self, payload: bytes) -> bytes:
        """Return the tag of a new page token: 16 bytes of HMAC-SHA-256."""
        return page_tag(self._page_keys[0], payload)

    def page_tags(self, payload: bytes) -> tuple[bytes, ...]:
        """Return the tags that a given page token may have, the present key's first."""
        return tuple(page_tag(key, payload) for key in self._page_keys)

    def form_tag(self, credential: str) -> str:
        """Return the secret field of forms that are sent with this credential."""
        return _keyed_hash(self._form_key, credential).hex()

    def fingerprint(self, text: str) -> str:
        """Return a keyed hash of the settings as 32 hexadecimal digits."""
        return _keyed_hash(self._settings_key, text).hex()[:FINGERPRINT_LENGTH]

    def sealed(self, text: str) -> bytes:
        """Encrypt a secret for storage: a fresh nonce, then AES-256-GCM; never twice the same."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + AESGCM(self._sealing_keys[0]).encrypt(nonce, text.encode(), SEALED)

    def opened(self, sealed: bytes) -> str:
        """Decrypt a stored secret. Raises ServiceError if none of our keys encrypted it."""
        nonce, rest = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
        for key in self._sealing_keys:
            # A ValueError is a nonce cut short.
            with suppress(InvalidTag, ValueError):
                return AESGCM(key).decrypt(nonce, rest, SEALED).decode()
        raise ServiceError(
            f"A stored secret was sealed with another {SETTING}. Give that one as "
            f"{SETTING}_PREVIOUS, or make the secret anew."
        )

    def new_signing_key(self) -> MadeKey:
        """Return a new key for evidence of landings, its private half sealed."""
        made = envelopes.new_key()
        return MadeKey(made.id, made.public, self.sealed(made.private))

    def signed(self, sealed: bytes, payload: bytes) -> str:
        """Return a statement in an envelope that a sealed key signed. Raises as `opened`."""
        return envelopes.signed(self.opened(sealed), payload)


def derived(secret_key: str, label: bytes) -> bytes:
    """Return the 32-byte key of one purpose, derived from the secret key and the label.

    Without a salt: the secret key is random already (RFC 5869, 3.1).
    """
    return HKDF(SHA256(), KEY_BYTES, salt=None, info=label).derive(secret_key.encode())


def page_tag(key: bytes, payload: bytes) -> bytes:
    """Return an HMAC-SHA-256, cut to the bytes that docs/design/http.md 8 names."""
    return hmac.new(key, payload, hashlib.sha256).digest()[:PAGE_TAG_BYTES]


def _keyed_hash(key: bytes, text: str) -> bytes:
    """Return the HMAC-SHA-256 of the text's UTF-8 bytes."""
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def secret_key_in(data_dir: Path) -> str:
    """Return the secret key of a data directory; the first call creates it, readable by us alone.

    Raises StartRefused when the file cannot be made or read, is empty, or is open to others.
    """
    path = data_dir / KEY_FILE
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            place_secret(path, secrets.token_urlsafe(KEY_BYTES) + "\n")
        return key_of(path)
    except OSError as failed:
        raise StartRefused(
            f"{SETTING}: {path} cannot be used ({failed.strerror}). Set {SETTING}, or give a "
            "HEADGATE_DATA_DIR that can be written"
        ) from failed


def place_secret(path: Path, text: str) -> bool:
    """Write a new file that we alone can read, whole or not at all.

    Returns False, and leaves the file as it is, if there is one: of two processes the first wins.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        path.hardlink_to(draft)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return True


def key_of(path: Path) -> str:
    """Return the key in the file. Raises StartRefused if others can read it or it is too short."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise StartRefused(
            f"{SETTING}: {path} has mode {mode:04o}; others may read it. chmod 600 {path}"
        )
    secret_key = path.read_text("utf-8").strip()
    if len(secret_key) < KEY_BYTES:
        raise StartRefused(
            f"{SETTING}: {path} holds no key. Put the backed-up file back; without one, remove "
            "it, and make all API tokens anew"
        )
    return secret_key
