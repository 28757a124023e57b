"""Read the stored evidence of a repository for a replay, some uploads at a time."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, select

from service.testhealth.reports.results import Outcome
from service.testhealth.reports.uploads import UploadClass
from service.testhealth.store.attempts import PRS, attempts
from service.testhealth.store.sets import READ_AT_ONCE, SELECT_SETS
from service.testhealth.store.uploads import uploads

CLAIM = "claim_"
"""Warnings that begin so say that an upload may not speak for its branch."""


class Known(NamedTuple):
    """An upload that is evidence. `may_be_stable`: nothing contradicts its branch."""

    id: str
    kind: UploadClass
    branch: str
    prs: tuple[int, ...]
    may_be_stable: bool


def eligible(session: Connection, repository_id: int, since: datetime) -> list[Known]:
    """Return all uploads that are evidence since then, the newest first."""
    statement = (
        select(uploads.c.id, uploads.c.kind, uploads.c.branch, uploads.c.prs, uploads.c.warnings)
        .where(
            uploads.c.repository_id == repository_id,
            uploads.c.is_eligible.is_(True),
            uploads.c.ran_at >= since,
        )
        .order_by(uploads.c.ran_at.desc(), uploads.c.digest.desc())
    )
    return [
        Known(no, UploadClass(kind), branch or "", PRS.decode(prs), CLAIM not in warnings)
        for no, kind, branch, prs, warnings in session.execute(statement)
    ]


def texts_of(
    session: Connection, ids: Sequence[str]
) -> Mapping[str, Mapping[int, tuple[str, ...]]]:
    """Return by upload and test the keys of its failures; ids are few enough for a statement."""
    found: defaultdict[str, defaultdict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    statement = select(attempts.c.upload, attempts.c.no, attempts.c.failure).where(
        attempts.c.upload.in_(ids),
        attempts.c.outcome == Outcome.FAILED.value,
        attempts.c.failure.is_not(None),
    )
    for upload, no, key in session.execute(statement):
        found[upload][no].append(key)
    return {
        upload: {no: tuple(dict.fromkeys(keys)) for no, keys in tests.items()}
        for upload, tests in found.items()
    }


def packed_sets(
    session: Connection, repository_id: int, keys: Iterable[str]
) -> Mapping[str, bytes]:
    """Return each of these sets of tests as it is stored, compressed; those that are there."""
    found: dict[str, bytes] = {}
    wanted = sorted(set(keys))
    for first in range(0, len(wanted), READ_AT_ONCE):
        some = wanted[first : first + READ_AT_ONCE]
        asked = {"of_repository": repository_id, "of_keys": some}
        found |= {key: bytes(bits) for key, bits in session.execute(SELECT_SETS, asked)}
    return found
