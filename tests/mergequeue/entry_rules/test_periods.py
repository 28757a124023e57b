"""Periods of rules: recurrences, exceptions, and days on which clocks change."""

# ruff: noqa: DTZ001 - local times

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.mergequeue.engine.rules import Period
from service.mergequeue.entry_rules import periods
from tests.mergequeue.entry_rules.pulls import NOW, WEEKEND


def shown(period: Period, now: datetime = NOW) -> list[str]:
    """Return the spans by the clock of the zone."""
    zone = ZoneInfo(period.zone)
    return [
        f"{one.since.astimezone(zone):%m-%dT%H:%M} {one.until.astimezone(zone):%m-%dT%H:%M}"
        for one in periods.spans(period, now)
    ]


def utc(period: Period, now: datetime) -> list[str]:
    return [f"{one.since:%dT%H:%M} {one.until:%dT%H:%M}" for one in periods.spans(period, now)]


def test_a_period_that_repeats_is_known_for_the_next_weeks():
    assert shown(WEEKEND) == [
        "11-27T18:00 11-30T08:00",
        "12-04T18:00 12-07T08:00",
        "12-11T18:00 12-14T08:00",
        "12-18T18:00 12-21T08:00",
        "12-25T18:00 12-28T08:00",
        "01-01T18:00 01-04T08:00",
    ]


def test_none_begins_on_an_excepted_day():
    excepted = replace(WEEKEND, except_on=("2026-12-11", "2026-12-25"))
    assert [each[:5] for each in shown(excepted)] == ["11-27", "12-04", "12-18", "01-01"]


def test_one_that_is_over_counts_no_more():
    assert shown(replace(WEEKEND, repeat="")) == ["11-27T18:00 11-30T08:00"]
    over = datetime(2026, 11, 30, 7, tzinfo=UTC)
    assert periods.spans(replace(WEEKEND, repeat=""), over) == ()
    assert periods.spans(replace(WEEKEND, repeat="FREQ=WEEKLY;UNTIL=20261127"), over) == ()


def test_the_day_of_until_is_included():
    until = replace(WEEKEND, repeat="FREQ=WEEKLY;UNTIL=20261204")
    assert [each[:5] for each in shown(until)] == ["11-27", "12-04"]


def test_periods_that_touch_are_one():
    always = Period("2026-01-01T00:00", "UTC", 24 * 60, "FREQ=DAILY")
    assert shown(always) == ["11-28T00:00 01-03T00:00"]
    overlapping = Period("2026-01-01T00:00", "UTC", 36 * 60, "FREQ=DAILY;INTERVAL=2")
    assert shown(overlapping)[0] == "11-29T00:00 11-30T12:00"
    assert len(shown(replace(overlapping, minutes=49 * 60))) == 1


@pytest.mark.parametrize(
    ("zone", "start", "minutes", "spans"),
    [
        # Friday 18:00 to Monday 08:00 by the clock, 61 and 63 hours long
        ("Europe/Berlin", "2026-03-27T18:00", 3720, ["27T17:00 30T06:00"]),
        ("Europe/Berlin", "2026-10-23T18:00", 3720, ["23T16:00 26T07:00"]),
        ("America/New_York", "2026-03-06T18:00", 3720, ["06T23:00 09T12:00"]),
        ("America/New_York", "2026-10-30T18:00", 3720, ["30T22:00 02T13:00"]),
        # a time that the clock skips, as beginning and as end
        ("Europe/Berlin", "2026-03-29T02:30", 60, ["29T01:30 29T02:30"]),
        ("Europe/Berlin", "2026-03-29T01:30", 60, ["29T00:30 29T01:30"]),
        # a time that the clock shows twice, as beginning and as end
        ("Europe/Berlin", "2026-10-25T02:30", 60, ["25T00:30 25T02:30"]),
        ("Europe/Berlin", "2026-10-25T01:30", 60, ["24T23:30 25T01:30"]),
    ],
)
def test_a_period_follows_the_clock_of_its_zone(zone, start, minutes, spans):
    now = datetime.fromisoformat(start).replace(tzinfo=UTC) - timedelta(days=2)
    assert utc(Period(start, zone, minutes), now) == spans


ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC")
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


@dataclass(frozen=True)
class Weekly:
    """A period on some days of every so many weeks."""

    zone: ZoneInfo
    start: datetime
    minutes: int
    days: set[str]
    every: int
    excepted: set[date]

    @property
    def period(self) -> Period:
        return Period(
            f"{self.start:%Y-%m-%dT%H:%M}",
            self.zone.key,
            self.minutes,
            f"FREQ=WEEKLY;INTERVAL={self.every};BYDAY={','.join(sorted(self.days))}",
            tuple(each.isoformat() for each in sorted(self.excepted)),
        )

    def covers(self, clock: datetime) -> bool:
        """Return whether the clock shows a time of the period."""
        monday = self.start.date() - timedelta(days=self.start.weekday())
        begun = [
            day
            for day in (clock.date() - timedelta(days=back) for back in range(17))
            if DAYS[day.weekday()] in self.days
            and (day - monday).days // 7 % self.every == 0
            and day not in self.excepted
        ]
        times = [datetime.combine(day, self.start.time()) for day in begun]
        length = timedelta(minutes=self.minutes)
        return any(self.start <= time <= clock < time + length for time in times)


WEEKLY = st.builds(
    Weekly,
    zone=st.sampled_from([ZoneInfo(each) for each in ZONES]),
    start=st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31)).map(
        lambda each: each.replace(second=0, microsecond=0)
    ),
    minutes=st.integers(1, 15 * 24 * 60),
    days=st.sets(st.sampled_from(DAYS), min_size=1),
    every=st.integers(1, 4),
    excepted=st.sets(st.dates(date(2026, 1, 1), date(2027, 4, 1))),
)


@given(
    weekly=WEEKLY,
    later=st.timedeltas(timedelta(0), timedelta(days=900)),
    asked=st.lists(st.timedeltas(timedelta(0), timedelta(days=34)), min_size=1),
)
@settings(max_examples=300, deadline=None)
def test_a_period_lasts_while_the_clock_shows_its_times(weekly, later, asked):
    now = weekly.start.replace(tzinfo=weekly.zone).astimezone(UTC) + later
    spans = periods.spans(weekly.period, now)
    assert all(one.since < one.until for one in spans)
    assert all(one.until < other.since for one, other in pairwise(spans)), "they do not touch"
    for at in (now + each for each in asked):
        if not any(_changes_near(at, weekly.zone, back) for back in (0, weekly.minutes)):
            clock = at.astimezone(weekly.zone).replace(tzinfo=None)
            assert weekly.covers(clock) == any(one.since <= at < one.until for one in spans)


def _changes_near(at: datetime, zone: ZoneInfo, minutes: int) -> bool:
    """Return whether the clock changes within hours of then: a time may be shown twice."""
    near = [at - timedelta(minutes=minutes, hours=hours) for hours in (-3, 3)]
    return len({each.astimezone(zone).utcoffset() for each in near}) > 1


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"start": "2026-11-27"}, "start", "is a local time, such as 2026-11-27T18:00"),
        ({"start": "2026-11-27T18:00Z"}, "start", "is a local time"),
        ({"start": "2026-02-30T18:00"}, "start", "is no time of the calendar"),
        ({"start": "1026-02-03T18:00"}, "start", "is not from 2000 to 2199"),
        ({"zone": "Europe/Bärlin"}, "zone", "must be the IANA name of a time zone"),
        ({"zone": "Europe"}, "zone", "must be the IANA name of a time zone"),
        ({"zone": "../etc/passwd"}, "zone", "must be the IANA name of a time zone"),
        ({"zone": ""}, "zone", "must be the IANA name of a time zone"),
        ({"minutes": 0}, "minutes", "is not from 1 to 527040"),
        ({"minutes": 527041}, "minutes", "is not from 1 to 527040"),
        ({"except_on": ("25.12.",)}, "exceptOn", "has days, such as 2026-12-25"),
        ({"except_on": ("2026-13-25",)}, "exceptOn", "has days"),
        ({"except_on": ("2026-12-25",) * 101}, "exceptOn", "more than 100 days"),
        ({"repeat": "FREQ=HOURLY"}, "repeat", "needs FREQ, one of DAILY, WEEKLY"),
        ({"repeat": "FREQ=DAILY;BYHOUR=1,2"}, "repeat", "cannot have `BYHOUR`"),
        ({"repeat": "FREQ=DAILY;COUNT=3"}, "repeat", "cannot have `COUNT`"),
        ({"repeat": "FREQ=DAILY;FREQ=DAILY"}, "repeat", "names a part twice"),
        ({"repeat": "FREQ=DAILY;INTERVAL=0"}, "repeat", "needs an INTERVAL from 1 to 999"),
        ({"repeat": "FREQ=DAILY;UNTIL=20261231T000000Z"}, "repeat", "UNTIL in local time"),
        ({"repeat": "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"}, "repeat", "cannot have `BYMONTH` with"),
        ({"repeat": "FREQ=DAILY;INTERVAL=7;BYDAY=MO"}, "repeat", "`BYDAY` and `INTERVAL`"),
        ({"repeat": "FREQ=WEEKLY;BYDAY=XX"}, "repeat", "no recurrence of RFC 5545"),
        ({"repeat": "FREQ=YEARLY;BYDAY=300MO"}, "repeat", "no recurrence of RFC 5545"),
        ({"repeat": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"}, "repeat", "never occurs"),
        ({"repeat": "FREQ=MONTHLY;BYMONTHDAY=0"}, "repeat", "cannot have 0 in `BYMONTHDAY`"),
        ({"repeat": "FREQ=MONTHLY;BYDAY=FR;BYSETPOS=1,-0"}, "repeat", "0 in `BYSETPOS`"),
        ({"repeat": "FREQ=MONTHLY;BYDAY=MO,0FR"}, "repeat", "cannot have 0 in `BYDAY`"),
        ({"repeat": "FREQ=WEEKLY;BYDAY=1FR"}, "repeat", "cannot have a number in `BYDAY`"),
        ({"repeat": "FREQ=DAILY;UNTIL=20200101"}, "repeat", "never occurs"),
        ({"repeat": "FREQ=DAILY\nRRULE:FREQ=DAILY"}, "repeat", "needs FREQ"),
        ({"repeat": f"FREQ=DAILY;BYDAY={'MO,' * 80}MO"}, "repeat", "longer than 200 characters"),
    ],
)
def test_a_fault_of_a_period_is_named(changes, field, words):
    [(named, message)] = periods.faults(replace(WEEKEND, **changes))
    assert named == field
    assert words in message


@pytest.mark.parametrize(
    "repeat",
    [
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
        "freq=weekly;byday=fr",
        "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
        "FREQ=DAILY;BYDAY=SA,SU",
    ],
)
def test_a_sound_recurrence_has_no_fault(repeat):
    period = replace(WEEKEND, repeat=repeat)
    assert periods.faults(period) == []
    periods.spans(period, NOW)
