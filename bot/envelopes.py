"""Signed statements: a DSSE envelope around an in-toto Statement, with an Ed25519 key.

An envelope is one line of JSON of which every byte counts: anything that is not exactly as we
write it is refused (docs/reference/landing-evidence.md).
"""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import UnverifiedSignatureError
from securesystemslib.signer import CryptoSigner, Signature, SSlibKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"

_ENVELOPE = {"payload", "payloadType", "signatures"}
_SIGNATURE = {"keyid", "sig"}
_KEY_ID = re.compile(r"[0-9a-f]{64}")


class Refuted(Exception):
    """The envelope is not as it was signed; the message says why."""


@dataclass(frozen=True, slots=True)
class Made:
    """A new key: its id, its public half in hexadecimal digits, its private half as PEM."""

    id: str
    public: str
    private: str


def new_key() -> Made:
    """Return a new Ed25519 key."""
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw()
    pem = CryptoSigner(private, _public(public.hex())).private_bytes.decode()
    return Made(id_of(public.hex()), public.hex(), pem)


def id_of(public: str) -> str:
    """Return the id of a key: the SHA-256 of its 32 public bytes, in hexadecimal digits."""
    return hashlib.sha256(bytes.fromhex(public)).hexdigest()


def signed(private: str, payload: bytes) -> str:
    """Return the payload in an envelope, as one line of JSON."""
    loaded = load_pem_private_key(private.encode(), None)
    if not isinstance(loaded, Ed25519PrivateKey):
        raise TypeError("only Ed25519 keys sign evidence")
    key = _public(loaded.public_key().public_bytes_raw().hex())
    envelope = Envelope(payload, PAYLOAD_TYPE, {})
    envelope.sign(CryptoSigner(loaded, key))
    return _written(envelope)


def key_id_of(text: str) -> str:
    """Return the id of the key that an envelope names. Raises Refuted."""
    return next(iter(_read(text).signatures))


def payload_of(text: str) -> bytes:
    """Return the payload, without looking at its signature. Raises Refuted."""
    payload: bytes = _read(text).payload
    return payload


def signer_of(text: str, keys: Mapping[str, str]) -> str | None:
    """Return the id of the key that signed the envelope; None if none of `keys` did.

    `keys` are public halves by id. Raises Refuted for a signature that does not fit, or that
    names another key than the one that made it.
    """
    envelope = _read(text)
    named, found = next(iter(envelope.signatures.items()))
    for key_id, public in keys.items():
        try:
            _public(public).verify_signature(Signature(key_id, found.signature), envelope.pae())
        except UnverifiedSignatureError:
            continue
        if key_id != named:
            raise Refuted(f"it names key {named}, and key {key_id} signed it")
        return key_id
    if named in keys:
        raise Refuted(f"its signature by key {named} does not fit its content")
    return None


def _public(public: str) -> SSlibKey:
    return SSlibKey(id_of(public), "ed25519", "ed25519", {"public": public})


def _written(envelope: Envelope) -> str:
    return json.dumps(envelope.to_dict(), separators=(",", ":"), sort_keys=True)


@lru_cache(maxsize=1)
def _read(text: str) -> Envelope:
    """Return an envelope with one signature. Raises Refuted unless it is as we write it.

    Its key, signature and payload are asked for one after the other.
    """
    try:
        read = orjson.loads(text)
        if set(read) != _ENVELOPE or [set(each) for each in read["signatures"]] != [_SIGNATURE]:
            raise Refuted("it is no envelope with exactly one signature")
        for encoded in (read["payload"], read["signatures"][0]["sig"]):
            base64.b64decode(encoded, validate=True)
        envelope = Envelope.from_dict(read)
        (named,) = envelope.signatures
        if _KEY_ID.fullmatch(named) is None:
            raise Refuted("it names no key")
    except (ValueError, TypeError, AttributeError, KeyError, binascii.Error) as broken:
        raise Refuted("it is no envelope") from broken
    if envelope.payload_type != PAYLOAD_TYPE:
        raise Refuted(f"its content is of type {envelope.payload_type!r}, not {PAYLOAD_TYPE!r}")
    if _written(envelope) != text:
        raise Refuted("its bytes are not as Headgate writes them")
    return envelope
