"""Troubles that keep this process from working, in memory, so that they need no database.

Whoever meets a trouble reports it, and whoever meets proof of its end ends it. Health, metrics,
`/v1/status`, explanations, answers about queues and pages read it here, and `sentence` is what each
of them says.

Example: a call that GitHub answers with its secondary rate limit reports SECONDARY_RATE_LIMIT of
the account with the time to wait; the next call to a repository of the account that succeeds ends
it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Literal

from service.clock import Clock
from service.text import times

NOTE_CHARS_MAX = 200

Who = Literal["operator", "nobody"]


class Part(StrEnum):
    """The parts that can have a trouble; one of a part replaces another one of the same subject."""

    DATABASE = "database"
    PROVIDER = "provider"
    PRIMARY_LIMIT = "primary_limit"
    SECONDARY_LIMIT = "secondary_limit"
    CREDENTIALS = "credentials"
    WORKER = "worker"
    WEBHOOKS = "webhooks"


class TroubleName(StrEnum):
    """The kinds of trouble, the gravest first."""

    DATABASE_UNREACHABLE = "database_unreachable"
    DATABASE_SILENT = "database_silent"
    DATABASE_DISK_FAILS = "database_disk_fails"
    DATABASE_FULL = "database_full"
    DATABASE_READ_ONLY = "database_read_only"
    DATABASE_LOCKED = "database_locked"
    CREDENTIALS_REFUSED = "credentials_refused"
    PROVIDER_AWAY = "provider_away"
    SECONDARY_RATE_LIMIT = "secondary_rate_limit"
    RATE_LIMIT = "rate_limit"
    WORKER_CRASHED = "worker_crashed"
    WEBHOOKS_FAIL = "webhooks_fail"


@dataclass(frozen=True, slots=True)
class _Record:
    """The part that a kind belongs to, what is said of it, who acts, and what they do."""

    part: Part
    text: str
    who: Who
    remedy: str


_RECORDS: Mapping[TroubleName, _Record] = {
    TroubleName.DATABASE_UNREACHABLE: _Record(
        Part.DATABASE,
        "The database cannot be reached",
        "operator",
        "An operator starts the database server or mends the way to it.",
    ),
    TroubleName.DATABASE_SILENT: _Record(
        Part.DATABASE,
        "The database does not answer in time",
        "operator",
        "An operator looks at the database server, its disk and its load.",
    ),
    TroubleName.DATABASE_DISK_FAILS: _Record(
        Part.DATABASE,
        "The disk of the database fails",
        "operator",
        "An operator looks at that disk, and at the log of its machine.",
    ),
    TroubleName.DATABASE_FULL: _Record(
        Part.DATABASE,
        "The disk of the database is full, so nothing can be written",
        "operator",
        "An operator makes room on that disk.",
    ),
    TroubleName.DATABASE_READ_ONLY: _Record(
        Part.DATABASE,
        "The database accepts no writes",
        "operator",
        "An operator makes it writable again.",
    ),
    TroubleName.DATABASE_LOCKED: _Record(
        Part.DATABASE,
        "Another program has locked the database, so nothing can be written",
        "operator",
        "An operator ends that program.",
    ),
    TroubleName.CREDENTIALS_REFUSED: _Record(
        Part.CREDENTIALS,
        "{host} refuses the App's key",
        "operator",
        "An operator checks the App's id and its private key in the settings.",
    ),
    TroubleName.PROVIDER_AWAY: _Record(
        Part.PROVIDER,
        "{host} does not answer as it should",
        "nobody",
        "Headgate asks again by itself.",
    ),
    TroubleName.SECONDARY_RATE_LIMIT: _Record(
        Part.SECONDARY_LIMIT,
        "{host} asks Headgate to wait (secondary rate limit)",
        "nobody",
        "Headgate goes on by itself.",
    ),
    TroubleName.RATE_LIMIT: _Record(
        Part.PRIMARY_LIMIT,
        "The rate limit of {host} is used up",
        "nobody",
        "Headgate goes on by itself.",
    ),
    TroubleName.WORKER_CRASHED: _Record(
        Part.WORKER,
        "A background job of Headgate has crashed and is started again",
        "operator",
        "An operator reports the lines `crashed` of the log.",
    ),
    TroubleName.WEBHOOKS_FAIL: _Record(
        Part.WEBHOOKS,
        "Webhooks of {host} do not arrive, so changes are seen minutes later",
        "operator",
        "An operator checks the address and the secret of the App's webhook.",
    ),
}


@dataclass(frozen=True, slots=True)
class Trouble:
    """One trouble of this process.

    `until`: when it ends by what was announced, None if that is not known. `host` and `owner` of
    the repositories say what it concerns, empty: everything. `note` has details, which are public.
    """

    name: TroubleName
    since: datetime
    until: datetime | None = None
    host: str = ""
    owner: str = ""
    note: str = ""

    @property
    def part(self) -> Part:
        """The part that has the trouble."""
        return _RECORDS[self.name].part

    @property
    def who_must_act(self) -> Who:
        """The people who must act."""
        return _RECORDS[self.name].who


def sentence(trouble: Trouble, now: datetime) -> str:
    """Return the trouble, since when, until when if that is known, who acts, and what they do."""
    return f"{statement(trouble, now)} {remedy(trouble)}"


def remedy(trouble: Trouble) -> str:
    """Return who acts, and what they do."""
    return _RECORDS[trouble.name].remedy


def statement(trouble: Trouble, now: datetime) -> str:
    """Return the trouble, since when, and until when if that is known."""
    record = _RECORDS[trouble.name]
    what = record.text.format(host=trouble.host or "the provider")
    since = f"since {times.clock_time(trouble.since, now)}"
    note = f" ({trouble.note})" if trouble.note else ""
    until = ""
    if trouble.until is not None:
        at = times.clock_time(trouble.until, now)
        until = f", until {at}" if trouble.until > now else f"; the wait was over at {at}"
    return f"{what}, {since}{until}{note}."


def sentences(found: tuple[Trouble, ...], now: datetime) -> str:
    """Return several troubles in sentences; empty for none."""
    return " ".join(sentence(each, now) for each in found)


_Key = tuple[Part, str, str, str]


@dataclass(frozen=True, slots=True)
class _Kept:
    """A trouble, and when it was reported last, by the monotonic clock."""

    trouble: Trouble
    seen_s: float


class Troubles:
    """The troubles of one process; used from its event loop alone."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._kept: dict[_Key, _Kept] = {}

    def report(self, trouble: Trouble, side: str = "") -> None:
        """Note a trouble, or that it lasts: then `since` stays.

        `side` tells apart what ends by different proof, such as reads and writes.
        """
        trouble = replace(trouble, owner=trouble.owner.lower())
        key = _key(trouble.part, trouble.host, trouble.owner, side)
        known = self._kept.get(key)
        note = trouble.note[:NOTE_CHARS_MAX]
        since = trouble.since if known is None else min(known.trouble.since, trouble.since)
        name = trouble.name
        if known is not None and name is TroubleName.DATABASE_SILENT:
            name = known.trouble.name  # a time limit says less than the cause that is known
        now_s = self.clock.monotonic_s()
        self._kept[key] = _Kept(replace(trouble, name=name, since=since, note=note), now_s)

    def end(
        self,
        part: Part,
        host: str = "",
        owner: str = "",
        *,
        side: str = "",
        asked_s: float | None = None,
    ) -> None:
        """End a trouble; `asked_s`: when what proves it began, which must be after the report.

        The same proof ends others of this part and host whose announced end has passed.
        """
        if not self._kept:
            return
        self._kept = {
            each: kept
            for each, kept in self._kept.items()
            if each[:2] != (part, host)
            or kept.trouble.until is None
            or kept.trouble.until > self.clock.now()
        }
        key = _key(part, host, owner.lower(), side)
        known = self._kept.get(key)
        if known is not None and (asked_s is None or asked_s >= known.seen_s):
            del self._kept[key]

    def of(self, host: str, owner: str) -> tuple[Trouble, ...]:
        """Return those that concern repositories of an account, the gravest first."""
        return _each_once(
            each
            for each in self.all()
            if each.host in ("", host) and each.owner in ("", owner.lower())
        )

    def of_part(self, part: Part) -> tuple[Trouble, ...]:
        """Return those of one part."""
        return tuple(each for each in self.all() if each.part is part)

    def all(self) -> tuple[Trouble, ...]:
        """Return every trouble once, the gravest first; the sides of one count as one."""
        found: dict[tuple[Part, str, str], Trouble] = {}
        for key, kept in self._kept.items():
            place, trouble = key[:3], kept.trouble
            known = found.get(place)
            if known is None:
                found[place] = trouble
                continue
            gravest, other = sorted((known, trouble), key=_weight)
            found[place] = replace(gravest, since=min(gravest.since, other.since))
        return tuple(sorted(found.values(), key=_weight))

    def public(self) -> tuple[Trouble, ...]:
        """Return one of each kind, without the account: for those without a token."""
        return _each_once(replace(each, owner="") for each in self.all())


def _each_once(found: Iterable[Trouble]) -> tuple[Trouble, ...]:
    """Return one trouble of each kind: since the first of them, and until the last one ends."""
    once: dict[tuple[TroubleName, str], Trouble] = {}
    for each in found:
        known = once.setdefault((each.name, each.host), each)
        ends = [one.until for one in (known, each) if one.until is not None]
        until = max(ends) if len(ends) == 2 else None
        since = min(known.since, each.since)
        once[each.name, each.host] = replace(known, since=since, until=until)
    return tuple(once.values())


def _key(part: Part, host: str, owner: str, side: str) -> _Key:
    return part, host, owner, side


def _weight(trouble: Trouble) -> tuple[int, datetime]:
    return list(TroubleName).index(trouble.name), trouble.since
