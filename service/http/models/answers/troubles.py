"""Troubles of the process, as answers show them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Self

from service import troubles
from service.http.models.answers.common import Answer, EitherSpelling, SnakeAnswer, Time, open_word
from service.troubles import Trouble, TroubleName, Who


class TroubleFields(EitherSpelling):
    """What keeps this process from working."""

    name: Annotated[str, open_word(TroubleName)]
    """The kind of trouble."""
    since: Time
    """Since when this process knows of it."""
    until: Time | None
    """When it ends by what was announced; null if that is not known."""
    who_must_act: Who
    """Who must act; `nobody`: it passes by itself."""
    text: str
    """The trouble, who acts and what they do, in sentences. For example `The database cannot be
    reached, since 14:02 UTC. An operator starts the database server or mends the way to it.`
    """

    @classmethod
    def each(cls, found: Iterable[Trouble], now: datetime) -> list[Self]:
        """Return the answers about troubles."""
        return [cls.of(one, name=one.name.value, text=troubles.sentence(one, now)) for one in found]


class TroubleShown(TroubleFields, Answer):
    """What keeps this process from working."""


class SnakeTrouble(TroubleFields, SnakeAnswer):
    """What keeps this process from working."""
