"""The meaning of an answer that is no success: rate limits, refusals, missing rights. Pure."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from bot.github.wire import Answer
from service.provider.errors import (
    Gone,
    GoneKind,
    NotPermitted,
    ProviderError,
    Refused,
    RefusedCode,
    Suspended,
    Throttled,
)

READ_TRIES = 5
SECONDARY_S = 60.0
SECONDARY_MAX_S = 900.0
UNAVAILABLE_S = 60.0
UNAVAILABLE_MAX_S = 900.0
QUOTE_CHARS_MAX = 300
YOUNG_WAITS_S = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # "not yet visible" lasts up to 120 s


class Trouble(StrEnum):
    """Classes of answers that are no success."""

    SECONDARY = "secondary"
    PRIMARY = "primary"
    UNAUTHORIZED = "unauthorized"
    SUSPENDED = "suspended"
    WORKFLOWS = "workflows"
    FORBIDDEN = "forbidden"
    MISSING = "missing"
    GONE = "gone"
    REFUSED = "refused"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Finding:
    """One class; `wait_s` as the answer named it, `reset` as seconds since 1970."""

    trouble: Trouble
    wait_s: float | None = None
    reset: float | None = None


# Parts of a message (lower case), first match wins.
REFUSALS: tuple[tuple[str, RefusedCode], ...] = (
    ("without workflows permission", RefusedCode.WORKFLOWS),
    ("draft pull requests are not supported", RefusedCode.DRAFT_NOT_SUPPORTED),
    ("rule violations", RefusedCode.RULE_DENIED),
    ("protected branch", RefusedCode.RULE_DENIED),
    ("already exists", RefusedCode.NAME_TAKEN),
)

# A permission by what a path holds, where the answer names none.
PERMISSIONS: tuple[tuple[str, str], ...] = (
    ("/check-runs", "checks: write"),
    ("/check-suites", "checks: write"),
    ("/statuses", "statuses: read"),
    ("/protection", "administration: read"),
    ("/artifacts", "actions: read"),
    ("/attempts/", "actions: read"),
    ("/actions/", "actions: write"),
    ("/comments", "pull_requests: write"),
    ("/pulls", "pull_requests: write"),
    ("/issues", "issues: write"),
    ("/merges", "contents: write"),
    ("/git/", "contents: write"),
    ("/rename", "contents: write"),
)


def finding_of(status: int, headers: Mapping[str, str], message: str) -> Finding | None:
    """Return the class of an answer, None for success; header names in lower case."""
    if status < 400:
        return None
    limit = _limit_of(status, headers, message.lower())
    if limit is not None:
        return limit
    if status == 403:
        return Finding(_denial_of(message.lower()))
    by_status = {
        401: Trouble.UNAUTHORIZED,
        404: Trouble.MISSING,
        410: Trouble.GONE,
        451: Trouble.GONE,
    }
    if status in by_status:
        return Finding(by_status[status])
    return Finding(Trouble.BROKEN if status >= 500 else Trouble.REFUSED)


def error_of(answer: Answer, path: str, now: datetime) -> ProviderError | None:
    """Return the error that a refusal means; None when GitHub cannot be used."""
    words = words_of(answer)
    finding = finding_of(answer.status, answer.headers, answer.message)
    match None if finding is None else finding.trouble:
        case Trouble.SUSPENDED:
            return Suspended("The owner has suspended the App.")
        case Trouble.WORKFLOWS:
            return Refused(words, RefusedCode.WORKFLOWS)
        case Trouble.FORBIDDEN | Trouble.UNAUTHORIZED:
            return NotPermitted(words, permission_of(path, answer.headers))
        case Trouble.REFUSED:
            return Refused(words, refusal_of(answer.message))
        case Trouble.MISSING | Trouble.GONE:
            return Gone(words, GoneKind.REPOSITORY)
        case Trouble.SECONDARY | Trouble.PRIMARY:
            later = now + timedelta(seconds=SECONDARY_S)
            return Throttled("GitHub's rate limit is used up for now.", later)
        case _:
            return None


def words_of(answer: Answer) -> str:
    """Return GitHub's message, or the status when there is none."""
    return quoted(answer.message) or f"GitHub answered {answer.status}."


def quoted(words: str) -> str:
    """Return a message of GitHub, cut to a length that can be stored."""
    return words if len(words) <= QUOTE_CHARS_MAX else words[: QUOTE_CHARS_MAX - 1] + "…"


def _limit_of(status: int, headers: Mapping[str, str], message: str) -> Finding | None:
    if status not in (403, 429):
        return None
    wait, reset = _seconds(headers.get("retry-after")), _seconds(headers.get("x-ratelimit-reset"))
    if wait is not None:
        return Finding(Trouble.SECONDARY, wait_s=wait)
    if headers.get("x-ratelimit-remaining") == "0":
        return Finding(Trouble.PRIMARY, reset=reset)
    if status == 429 or "rate limit" in message or "abuse" in message:
        return Finding(Trouble.SECONDARY)
    return None


def _denial_of(message: str) -> Trouble:
    if "suspended" in message:
        return Trouble.SUSPENDED
    return Trouble.WORKFLOWS if is_about_workflows(message) else Trouble.FORBIDDEN


def is_about_workflows(message: str) -> bool:
    """Whether a refusal is about workflow files; GitHub writes it with and without backticks."""
    return "workflows permission" in message.lower().replace("`", "")


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdecimal() else None


def refusal_of(message: str) -> RefusedCode:
    """Return the reason of a refusal, by the words of a 4xx answer."""
    words = message.lower().replace("`", "")
    return next((code for part, code in REFUSALS if part in words), RefusedCode.OTHER)


def permission_of(path: str, headers: Mapping[str, str]) -> str | None:
    """The permission a denied call would have needed, as `contents: write`."""
    accepted = headers.get("x-accepted-github-permissions", "").partition(";")[0].strip()
    if "=" in accepted:
        return accepted.replace("=", ": ", 1)
    return next((name for part, name in PERMISSIONS if part in path), None)


def retry_wait_s(attempt: int, seed: str) -> float:
    """Seconds before try `attempt` + 2: 1, 2, 4, 8, 16, each spread by 25 % either way.

    `seed` takes the place of chance: equal calls of one moment wait differently.
    """
    spread = zlib.crc32(f"{attempt} {seed}".encode()) / 0xFFFFFFFF
    return float(2**attempt) * (0.75 + spread / 2)


def doubled_s(first_s: float, times: int, longest_s: float) -> float:
    """`first_s`, doubled as many times, at most `longest_s`."""
    return min(first_s * (1 << min(times, 16)), longest_s)
