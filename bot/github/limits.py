"""Decide which calls GitHub limits, and what an answer means that is no success. Pure."""

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.github import told_times
from bot.github.reading import Fields
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


@dataclass(frozen=True, slots=True)
class Limit:
    """A rate limit; `wait_s` as the answer named it, of a primary one until its reset."""

    wait_s: float | None = None
    is_primary: bool = False


# The calls that GitHub's published description (OpenAPI) marks as creating content, as far as
# Headgate makes them. Edits, check runs and reactions are not marked.
CONTENT: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("POST", re.compile(r"/issues(/\d+/comments)?")),
    ("POST", re.compile(r"/pulls")),
    ("PUT", re.compile(r"/pulls/\d+/merge")),
)

# Parts of the message of a 422 that limits created content: what was sent is not to blame.
# https://github.com/cli/cli/issues/4801, https://github.com/octokit/plugin-throttling.js/issues/775
TOO_QUICK = ("submitted too quickly", "base abuse")

# Types of a GraphQL error: the second has taken the place of the first.
# https://github.com/yanyongyu/githubkit/issues/271, https://github.com/chdsbd/kodiak/issues/906
USED_UP = frozenset({"RATE_LIMITED", "RATE_LIMIT"})

# Parts of a message (lower case), first match wins.
REFUSALS: tuple[tuple[str, RefusedCode], ...] = (
    ("without workflows permission", RefusedCode.WORKFLOWS),
    ("draft pull requests are not supported", RefusedCode.DRAFT_NOT_SUPPORTED),
    ("rule violations", RefusedCode.RULE_DENIED),
    ("protected branch", RefusedCode.RULE_DENIED),
    ("already exists", RefusedCode.NAME_TAKEN),
)

# The permission that a call needs, by a part of its path, if the answer names none.
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


def creates_content(method: str, tail: str) -> bool:
    """Return whether a call below a repository's address counts as created content."""
    return any(method == verb and form.fullmatch(tail) for verb, form in CONTENT)


def limit_in(answer: Answer, now: datetime) -> Limit | None:
    """Return the rate limit that an answer reports; GraphQL reports it inside a success.

    `now` counts where the answer has no time of its own.
    """
    content, headers = answer.content, answer.headers
    if answer.status != 200 or not isinstance(content, dict) or "errors" not in content:
        return limit_of(answer.status, headers, answer.message, now)
    errors = Fields(content).each("errors")
    if any(error.words("type") in USED_UP for error in errors):
        return Limit(told_times.until_reset_s(headers, now), is_primary=True)
    if any("secondary rate limit" in error.words("message").lower() for error in errors):
        return Limit(_seconds(headers.get("retry-after")))
    return None


def limit_of(status: int, headers: Mapping[str, str], message: str, now: datetime) -> Limit | None:
    """Return the rate limit that an answer reports; header names in lower case."""
    wait, words = _seconds(headers.get("retry-after")), message.lower()
    if status == 422 and any(part in words for part in TOO_QUICK):
        return Limit(wait)
    if status not in (403, 429):
        return None
    if wait is not None:
        return Limit(wait)
    if headers.get("x-ratelimit-remaining") == "0":
        return Limit(told_times.until_reset_s(headers, now), is_primary=True)
    if status == 429 or "rate limit" in words or "abuse" in words:
        return Limit()
    return None


def error_of(answer: Answer, path: str, now: datetime) -> ProviderError | None:
    """Return the error that a refusal means; None when GitHub cannot be used."""
    words, message = words_of(answer), answer.message.lower()
    if limit_of(answer.status, answer.headers, message, now) is not None:
        later = now + timedelta(seconds=SECONDARY_S)
        return Throttled("GitHub's rate limit is used up for now.", later)
    match answer.status:
        case 403 if "suspended" in message:
            return Suspended("The owner has suspended the App.")
        case 403 if is_about_workflows(message):
            return Refused(words, RefusedCode.WORKFLOWS)
        case 401 | 403:
            return NotPermitted(words, permission_of(path, answer.headers))
        case 404 | 410 | 451:
            return Gone(words, GoneKind.REPOSITORY)
        case status if 400 <= status < 500:
            return Refused(words, refusal_of(message))
        case _:
            return None


def words_of(answer: Answer) -> str:
    """Return GitHub's message, or the status when there is none."""
    return quoted(answer.message) or f"GitHub answered {answer.status}."


def quoted(words: str) -> str:
    """Return a message of GitHub, cut to a length that can be stored."""
    return words if len(words) <= QUOTE_CHARS_MAX else words[: QUOTE_CHARS_MAX - 1] + "…"


def is_about_workflows(message: str) -> bool:
    """Return whether a refusal is about workflow files; backticks come and go in its text."""
    return "workflows permission" in message.lower().replace("`", "")


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdecimal() else None


def refusal_of(message: str) -> RefusedCode:
    """Return the reason of a refusal, by the words of a 4xx answer."""
    words = message.lower().replace("`", "")
    return next((code for part, code in REFUSALS if part in words), RefusedCode.OTHER)


def permission_of(path: str, headers: Mapping[str, str]) -> str | None:
    """Return the permission that a denied call needs, as `contents: write`."""
    accepted = headers.get("x-accepted-github-permissions", "").partition(";")[0].strip()
    if "=" in accepted:
        return accepted.replace("=", ": ", 1)
    return next((name for part, name in PERMISSIONS if part in path), None)


def retry_wait_s(attempt: int, seed: str) -> float:
    """Return the seconds before try `attempt` + 2: 1, 2, 4, 8, 16, each spread by 25 % either way.

    `seed` takes the place of chance: equal calls of one moment wait differently.
    """
    spread = zlib.crc32(f"{attempt} {seed}".encode()) / 0xFFFFFFFF
    return float(2**attempt) * (0.75 + spread / 2)


def doubled_s(first_s: float, times: int, longest_s: float) -> float:
    """Return `first_s`, doubled so many times, at most `longest_s`."""
    return min(first_s * (1 << min(times, 16)), longest_s)
