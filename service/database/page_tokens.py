"""Page tokens: positions in lists that clients receive and send back; `paging.py` reads the pages.

A token holds the sort key of a row, never an offset, so that rows which are added or deleted
meanwhile neither repeat nor hide others. A tag made with the deployment's key proves that we wrote
it. A token names its list; every token that does not fit is refused with the same message, so that
a token reveals nothing about other lists.
"""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

import orjson

from service.errors import Malformed

PREFIX = "hgp1_"
TAG_BYTES = 16
VALID = timedelta(hours=24)

KeyPart = str | int | float
Key = tuple[KeyPart, ...]
"""The sort key of a row; an empty one is the beginning of a list."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class TagKeys(Protocol):
    """Makes the tags of page tokens from the deployment's secret key."""

    def page_tag(self, payload: bytes) -> bytes:
        """Return the tag that proves that we wrote the payload of a page token."""
        ...

    def page_tags(self, payload: bytes) -> tuple[bytes, ...]:
        """Return the tags under the present and the previous key, to compare with."""
        ...


@dataclass(frozen=True, slots=True)
class Listing:
    """The list that a token belongs to, with its filters.

    `place` is the id of the repository or queue, None for a list of the organization. `org_id` is
    None for a list over all organizations that a visitor sees.
    """

    endpoint: str
    org_id: int | None
    place: int | None = None
    filters: tuple[object, ...] = ()

    def digest(self) -> str:
        """Return a digest that differs between lists, of a fixed length whatever the filters."""
        text = orjson.dumps([self.endpoint, self.org_id, self.place, *self.filters])
        return hashlib.sha256(text).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class PageStart:
    """The row next to which a page begins, by its sort key; an empty key is the end of the list.

    `backwards`: the page is before that row. `rows_before` counts the rows before the page
    (forwards) or up to it (backwards) when the token was made.
    """

    key: Key
    rows_before: int = 0
    backwards: bool = False


def token(keys: TagKeys, listing: Listing, page_start: PageStart, now: datetime) -> str:
    """Return a token for the page that begins there; it is valid for 24 hours."""
    payload = orjson.dumps(
        [
            listing.digest(),
            list(page_start.key),
            page_start.rows_before,
            page_start.backwards,
            micros(now),
        ]
    )
    return PREFIX + _text(payload + keys.page_tag(payload))


def page_start_of(
    keys: TagKeys, listing: Listing, given: str | None, now: datetime, field: str
) -> PageStart | None:
    """Return the start of the page in a token of this list; None, the first page, without a token.

    Raises Malformed: page_token_expired after 24 hours, invalid_page_token for any other fault.
    The message names `field`, in which the token was sent.
    """
    if not given:
        return None
    payload = _payload(keys, given)
    if payload is None:
        raise _foreign(field)
    digest, key, rows_before, backwards, made_at = orjson.loads(payload)
    if not hmac.compare_digest(digest, listing.digest()):
        raise _foreign(field)
    if now - instant(made_at) > VALID:
        raise Malformed(
            f"The token in `{field}` is older than 24 hours. Begin again without it.",
            code="page_token_expired",
        )
    return PageStart(tuple(key), rows_before, backwards)


def micros(at: datetime) -> int:
    """Return an instant as part of a sort key: microseconds since 1970."""
    return (at - _EPOCH) // _MICROSECOND


def instant(micros_: int) -> datetime:
    """Return the instant again."""
    return _EPOCH + micros_ * _MICROSECOND


def _payload(keys: TagKeys, given: str) -> bytes | None:
    """Return the payload of a token, None if it differs in any bit from a token of ours."""
    try:
        encoded = given.removeprefix(PREFIX).encode("ascii")
        whole = base64.b64decode(encoded + b"=" * (-len(encoded) % 4), b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return None
    # Base64 has several spellings of the same bytes; only ours is accepted.
    if given != PREFIX + _text(whole):
        return None
    payload, tag = whole[:-TAG_BYTES], whole[-TAG_BYTES:]
    ours = False
    for expected in keys.page_tags(payload):
        ours |= hmac.compare_digest(expected, tag)
    return payload if ours else None


def _text(whole: bytes) -> str:
    return base64.urlsafe_b64encode(whole).rstrip(b"=").decode("ascii")


def _foreign(field: str) -> Malformed:
    return Malformed(
        f"`{field}` is not a valid page token for this list. Send the token of the last response "
        "unchanged, with the same filters, or begin again without it.",
        code="invalid_page_token",
    )
