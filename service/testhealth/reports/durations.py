"""Read how long a test took, as reports write it. Never influences health."""

import re

SECONDS_MAX = 1e7
# Of a text without blanks around it; the possessive repeat keeps the time linear in the blanks.
NUMBER = re.compile(r"([0-9][0-9.,]{0,40}|[.,][0-9]{1,40})([eE][+-]?[0-9]{1,4})?\s*+(ms|s)?")
CLOCK = re.compile(r"(?:(\d{1,6})\.)?(\d{1,4}):(\d{1,2}):(\d{1,2}(?:\.\d{1,12})?)")


def seconds_of(text: str) -> float | None:
    """Seconds, or None when negative, not finite, above 10^7 or unreadable.

    A comma is the decimal point, or separates thousands where a point follows; an exponent and
    a trailing `s` or `ms` are read.

    See docs/design/reports.md 5.
    """
    read = NUMBER.fullmatch(text.strip())
    if not read:
        return None
    digits = read[1].replace(",", "" if "." in read[1] else ".")
    try:
        value = float(digits + (read[2] or ""))
    except ValueError:
        return None
    return bounded(value / 1000 if read[3] == "ms" else value)


def bounded(seconds: float) -> float | None:
    """The seconds, or None when they are no duration."""
    return seconds if 0 <= seconds <= SECONDS_MAX else None


def clock_seconds_of(text: str) -> float | None:
    """Seconds of `[days.]hours:minutes:seconds`, as .NET writes a time span."""
    read = CLOCK.fullmatch(text)
    if not read:
        return None
    days, hours, minutes = (int(each or 0) for each in read.groups()[:3])
    return bounded(((days * 24 + hours) * 60 + minutes) * 60 + float(read[4]))
