"""Periods of rules: from when until when they last.

A period lasts while the clock in its zone shows a time from `start` to `minutes` later, so it is an
hour shorter or longer if the clocks change meanwhile. A time that is shown twice is the first one
for the beginning and the second one for the end; one that is skipped is the time after the change.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from dateutil.rrule import rrulestr

from service.mergequeue.engine.rules import Period, Span

AHEAD = timedelta(days=35)
SPANS_MAX = 100
MINUTES_MAX = 366 * 24 * 60
REPEAT_CHARS_MAX = 200
EXCEPTIONS_MAX = 100
YEAR_MIN = 2000
YEAR_MAX = 2199
_CYCLES = 19 * 400
"""The calendar repeats every 400 years, and the library looks for times until the year 9999: times
are asked for in those years, so that a recurrence that never occurs ends soon."""

_START = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?")
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,2}")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_INTERVAL = re.compile(r"[1-9]\d{0,2}")
_ZERO = re.compile(r"(^|,)[+-]?0+(,|$|[A-Z])")
"""A number that RFC 5545 does not have: the library takes it for every day, or for no limit."""

_UNTIL = re.compile(r"\d{8}(T\d{6})?")
_BY_DAYS = frozenset({"BYDAY", "BYMONTH", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYSETPOS"})
_PARTS = frozenset({"FREQ", "INTERVAL", "UNTIL", "WKST", *_BY_DAYS})
_SELECTED_BY = {"DAILY": {"BYDAY"}, "WEEKLY": {"BYDAY", "BYMONTH"}}
"""The parts that choose days; any other way to say it ends sooner: by weeks, months or years."""
_EVERY = {"DAILY": 1, "WEEKLY": 7, "MONTHLY": 0, "YEARLY": 0}
"""How many days are between two times; 0: it differs."""


def faults(period: Period) -> list[tuple[str, str]]:
    """Return what is wrong with a period, by field."""
    found = [
        (name, message)
        for name, message in (
            ("start", _start_fault(period.start)),
            ("zone", _zone_fault(period.zone)),
            ("minutes", _minutes_fault(period.minutes)),
            ("exceptOn", _exceptions_fault(period.except_on)),
        )
        if message is not None
    ]
    return found or [("repeat", message) for message in _repeat_faults(period)]


def spans(period: Period, now: datetime) -> tuple[Span, ...]:
    """Return when the period lasts, from now on, if it begins within `AHEAD`; none touch."""
    zone = ZoneInfo(period.zone)
    merged: list[Span] = []
    for start in _starts(period, now):
        span = _span(start, timedelta(minutes=period.minutes), zone)
        if span.until <= now:
            continue
        if merged and span.since <= merged[-1].until:
            merged[-1] = Span(merged[-1].since, max(merged[-1].until, span.until))
        elif len(merged) == SPANS_MAX:
            break
        else:
            merged.append(span)
    return tuple(merged)


def _span(start: datetime, length: timedelta, zone: ZoneInfo) -> Span:
    since = start.replace(tzinfo=zone).astimezone(UTC)
    shown = (start + length).replace(tzinfo=zone)
    until = max(shown.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
    return Span(since, until if until > since else since + length)


def _starts(period: Period, now: datetime) -> Iterator[datetime]:
    """Return the local times at which it begins, so far as they matter, in order."""
    local = now.astimezone(ZoneInfo(period.zone)).replace(tzinfo=None)
    first = local - timedelta(minutes=period.minutes, days=1)
    last = local + AHEAD
    excepted = set(period.except_on)
    start = datetime.fromisoformat(period.start)
    times: Iterable[datetime] = (
        [start] if not period.repeat else _recurrence(period.repeat, start, first, last)
    )
    for each in times:
        if first <= each <= last and each.date().isoformat() not in excepted:
            yield each


def _recurrence(
    repeat: str, start: datetime, first: datetime, last: datetime
) -> Iterator[datetime]:
    """Return the recurrence, begun anew shortly before `first`, so that few times are counted."""
    parts = _parts(repeat)
    every = _EVERY[parts["FREQ"]] * int(parts.get("INTERVAL", "1"))
    skipped = max((first - start).days // every * every, 0) if every else 0
    until = min(last, _until(parts.pop("UNTIL", ""), last))
    bounded = {**parts, "UNTIL": f"{_shifted(until, _CYCLES):%Y%m%dT%H%M%S}"}
    text = ";".join(f"{name}={value}" for name, value in bounded.items())
    for each in rrulestr(text, dtstart=_shifted(start + timedelta(days=skipped), _CYCLES)):
        yield _shifted(each, -_CYCLES)


def _shifted(time: datetime, years: int) -> datetime:
    return time.replace(year=time.year + years)


def _until(text: str, default: datetime) -> datetime:
    """Return the last time of a recurrence; a date is its last moment."""
    if not text:
        return default
    return datetime.fromisoformat(text if "T" in text else f"{text}T235959")


def _parts(repeat: str) -> dict[str, str]:
    pairs = [each.partition("=") for each in repeat.upper().split(";")]
    return {name: value for name, _, value in pairs}


def _start_fault(start: str) -> str | None:
    if not _START.fullmatch(start):
        return "is a local time, such as 2026-11-27T18:00"
    try:
        year = datetime.fromisoformat(start).year
    except ValueError:
        return "is no time of the calendar"
    return None if YEAR_MIN <= year <= YEAR_MAX else f"is not from {YEAR_MIN} to {YEAR_MAX}"


def _zone_fault(zone: str) -> str | None:
    try:
        if _ZONE.fullmatch(zone):
            ZoneInfo(zone)
            return None
    except (KeyError, ValueError, OSError):
        pass
    return "must be the IANA name of a time zone, such as Europe/Berlin"


def _minutes_fault(minutes: int) -> str | None:
    return None if 1 <= minutes <= MINUTES_MAX else f"is not from 1 to {MINUTES_MAX}"


def _exceptions_fault(days: tuple[str, ...]) -> str | None:
    if len(days) > EXCEPTIONS_MAX:
        return f"has more than {EXCEPTIONS_MAX} days"
    for day in days:
        try:
            if not _DAY.fullmatch(day):
                raise ValueError
            date.fromisoformat(day)
        except ValueError:
            return "has days, such as 2026-12-25"
    return None


def _repeat_faults(period: Period) -> Iterator[str]:
    """Yield what is wrong with the recurrence, if its start is sound; at most one."""
    repeat = period.repeat
    if not repeat:
        return
    parts = _parts(repeat)
    if len(repeat) > REPEAT_CHARS_MAX:
        yield f"is longer than {REPEAT_CHARS_MAX} characters"
    elif unknown := sorted(parts.keys() - _PARTS):
        yield f"cannot have `{unknown[0]}`; there are {', '.join(sorted(_PARTS))}"
    elif len(parts) != len(repeat.split(";")):
        yield "names a part twice"
    elif parts.get("FREQ") not in _EVERY:
        yield f"needs FREQ, one of {', '.join(_EVERY)}"
    elif not _INTERVAL.fullmatch(parts.get("INTERVAL", "1")):
        yield "needs an INTERVAL from 1 to 999"
    elif not _UNTIL.fullmatch(parts.get("UNTIL", "20000101")):
        yield "needs an UNTIL in local time, such as 20261231 or 20261231T180000"
    elif fault := next(_fault_of_days(parts), None):
        yield fault
    else:
        yield from _unreadable(period)


def _fault_of_days(parts: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with the days on which a recurrence with a sound FREQ begins."""
    if other := sorted(parts.keys() & _BY_DAYS - _SELECTED_BY.get(parts["FREQ"], _BY_DAYS)):
        yield f"cannot have `{other[0]}` with FREQ={parts['FREQ']}; use MONTHLY or YEARLY"
    elif fault := _number_fault(parts):
        yield fault
    if parts["FREQ"] == "DAILY" and {"BYDAY", "INTERVAL"} <= parts.keys():
        yield "cannot have `BYDAY` and `INTERVAL` with FREQ=DAILY; use WEEKLY"


def _number_fault(parts: Mapping[str, str]) -> str | None:
    for name in sorted(parts):
        if _ZERO.search(parts[name]):
            return f"cannot have 0 in `{name}`"
    if parts["FREQ"] in _SELECTED_BY and re.search(r"\d", parts.get("BYDAY", "")):
        return f"cannot have a number in `BYDAY` with FREQ={parts['FREQ']}; use MONTHLY or YEARLY"
    return None


def _unreadable(period: Period) -> Iterator[str]:
    start = datetime.fromisoformat(period.start)
    try:
        first = next(_recurrence(period.repeat, start, start, datetime(YEAR_MAX, 12, 31)), None)  # noqa: DTZ001 - local
    except (ValueError, IndexError, TypeError, OverflowError) as error:
        yield f"is no recurrence of RFC 5545: {error}"
        return
    if first is None:
        yield "never occurs"
