"""Evidence and public keys, as files have them. What they say is believed only once it fits."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import orjson

from bot import envelopes
from bot.cli import destination
from bot.cli.exits import Exit, Failed
from bot.envelopes import Refuted

Json = Mapping[str, object]

VALIDITY_SLACK = timedelta(minutes=5)
"""A landing may be recorded while the key is rotated."""

_PUBLIC = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Key:
    """A public key that the user trusts, and from when until when it signed."""

    id: str
    public: str
    since: datetime | None
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Document:
    """One statement as a file has it; `signer` is the trusted key that signed it, None: unknown.

    `named` is the key that it names.
    """

    place: str
    commit: str
    statement: Json
    named: str
    signer: Key | None


@dataclass(slots=True)
class Documents:
    """All statements by the commit that they are about, and what is wrong with what was read."""

    by_commit: dict[str, list[Document]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def all(self) -> Iterable[Document]:
        """Return every statement."""
        return (each for group in self.by_commit.values() for each in group)

    def add(self, place: str, text: str, keys: Mapping[str, Key]) -> None:
        """Read the lines of a file, or of a note."""
        for number, line in enumerate(text.splitlines(), 1):
            if not line:
                continue
            try:
                found = read_document(f"{place}, line {number}", line, keys)
            except Refuted as refuted:
                self.faults.append(f"{place}, line {number}: {refuted}")
                continue
            self.by_commit.setdefault(found.commit, []).append(found)


def read_document(place: str, line: str, keys: Mapping[str, Key]) -> Document:
    """Return the statement in an envelope, found at a place. Raises Refuted."""
    named = envelopes.key_id_of(line)
    signer_id = envelopes.signer_of(line, {key.id: key.public for key in keys.values()})
    try:
        statement = orjson.loads(envelopes.payload_of(line))
        commit = str(statement["subject"][0]["digest"]["gitCommit"])
        predicate = statement["predicate"]
        signed = _moment(predicate.get("signed", predicate["recorded"])["at"])
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as strange:
        raise Refuted("its content is no statement about a landing") from strange
    if _COMMIT.fullmatch(commit) is None or len(statement["subject"]) != 1 or signed is None:
        raise Refuted("its content is no statement about one commit")
    signer = None if signer_id is None else keys[signer_id]
    if signer is not None and not _is_within(signer, signed):
        raise Refuted(f"key {signer.id} did not sign at {signed:%Y-%m-%d %H:%M} UTC")
    return Document(place, commit, statement, named, signer)


def _is_within(key: Key, at: datetime) -> bool:
    is_early = key.since is not None and at < key.since - VALIDITY_SLACK
    is_late = key.until is not None and at > key.until + VALIDITY_SLACK
    return not is_early and not is_late


def read_keys(paths: Iterable[Path]) -> dict[str, Key]:
    """Return the keys of these files by id. Raises Failed(USAGE) for a file without any."""
    found: dict[str, Key] = {}
    for path in paths:
        try:
            read = orjson.loads(destination.read_text(path))
            listed = read.get("keys", [read])
            keys = [_key(each) for each in listed]
        except (ValueError, TypeError, KeyError, AttributeError):
            keys = []
        if not keys:
            raise Failed(
                Exit.USAGE,
                f"{path} holds no public key of Headgate",
                "Save the service's /.well-known/headgate-keys.json there",
            )
        found.update({key.id: key for key in keys})
    return found


def _key(shown: Json) -> Key:
    """Return a key of a file. Raises ValueError, TypeError or KeyError."""
    value = shown["keyval"]
    public = value["public"] if isinstance(value, dict) else ""
    if shown["keytype"] != "ed25519" or _PUBLIC.fullmatch(public) is None:
        raise ValueError("no Ed25519 key")
    if envelopes.id_of(public) != shown["keyid"]:
        raise ValueError("the id is not that of the key")
    return Key(
        envelopes.id_of(public),
        public,
        _moment(shown.get("validFrom")),
        _moment(shown.get("validUntil")),
    )


def _moment(text: object) -> datetime | None:
    """Return a time; None for null. Raises ValueError for what is no time with a zone."""
    if text is None:
        return None
    read = datetime.fromisoformat(str(text))
    if read.tzinfo is None:
        raise ValueError("a time without a zone")
    return read
