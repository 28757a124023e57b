"""Signed evidence as an audit reads it: the signature is checked, then what it says is taken."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from bot import envelopes
from bot.cli.verifying import documents
from bot.cli.verifying.documents import Key
from bot.envelopes import Refuted
from service.accounts.store.signing_keys import SigningKey
from service.mergequeue.auditing.records import Statement
from service.mergequeue.landing_records import StoredLanding


class _Part(BaseModel):
    """A part of a statement; other fields are ignored."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)


class _Digest(_Part):
    git_commit: str


class _Tree(_Part):
    git_tree: str


class _Landed(_Digest, _Tree):
    pass


class _Subject(_Part):
    digest: _Landed


class _Member(_Part):
    head: _Digest
    is_subject: bool


class _Landing(_Part):
    expected_tree: _Tree
    number: int
    position: int


class _Predicate(_Part):
    base: _Digest
    members: list[_Member]
    landing: _Landing


class _Statement(_Part):
    """The fields that an audit compares; docs/reference/landing-evidence.md has the rest."""

    subject: list[_Subject]
    predicate: _Predicate


def read(
    signed: Sequence[StoredLanding],
    waiting: Sequence[StoredLanding],
    keys: Sequence[SigningKey],
) -> list[Statement]:
    """Return the content of each row of evidence. What waits to be signed is a bare statement."""
    trusted = {key.id: Key(key.id, key.public, key.since, key.until) for key in keys}
    return [
        *(_signed(each, trusted) for each in signed),
        *(replace(_said(each, each.envelope), waits=True) for each in waiting),
    ]


def _signed(row: StoredLanding, keys: Mapping[str, Key]) -> Statement:
    """Return what an envelope says, or why it cannot be believed."""
    try:
        document = documents.read_document(f"evidence {row.no}", row.envelope, keys)
    except Refuted as refuted:
        return Statement(row.sha, row.pr, fault=str(refuted))
    if document.signer is None:
        return Statement(row.sha, row.pr, fault=f"no key of this service is {document.named}")
    return _said(row, envelopes.payload_of(row.envelope))


def _said(row: StoredLanding, statement: bytes | str) -> Statement:
    """Return the fields of a statement that rows and git have as well."""
    try:
        read_statement = _Statement.model_validate_json(statement)
        digest, predicate = read_statement.subject[0].digest, read_statement.predicate
        subject = next(each for each in predicate.members if each.is_subject)
    except (ValidationError, IndexError, StopIteration):
        return Statement(row.sha, row.pr, fault="it has no usable statement about a landing")
    return Statement(
        sha=row.sha,
        pr=row.pr,
        commit=digest.git_commit,
        tree=digest.git_tree,
        base=predicate.base.git_commit,
        head=subject.head.git_commit,
        expected_tree=predicate.landing.expected_tree.git_tree,
        number=predicate.landing.number,
        position=predicate.landing.position,
    )
