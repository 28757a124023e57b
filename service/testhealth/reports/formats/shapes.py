"""Fields of JSON that a stranger wrote: each of the kind asked for, or nothing."""

from service.testhealth.reports.results import CaseResult, Outcome
from service.testhealth.reports.text import allowed

# What a column of the database holds, with room to spare.
LINE_MAX = 10**9


def record(value: object) -> dict[str, object]:
    """The object, or an empty one."""
    return value if isinstance(value, dict) else {}


def records(value: object) -> list[dict[str, object]]:
    """The objects of a list; what is none is left out."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text(fields: dict[str, object], name: str) -> str:
    """The text, or an empty one; what XML forbids is U+FFFD in it (docs/design/reports.md 4)."""
    value = fields.get(name)
    return allowed(value) if isinstance(value, str) else ""


def line(fields: dict[str, object], name: str) -> int | None:
    """The number of a line, if it is one."""
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < LINE_MAX else None


def number(fields: dict[str, object], name: str) -> float | None:
    """The number, or None; a boolean is none."""
    value = fields.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def passed_at_once(case: CaseResult) -> CaseResult:
    """The case in its short form, where its only attempt passed."""
    if len(case.explicit_attempts) == 1 and case.outcome is Outcome.PASSED:
        return case._replace(duration_s=case.explicit_attempts[0].duration_s, explicit_attempts=())
    return case
