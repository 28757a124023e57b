"""Read request bodies as JSON, refusing what readers of JSON differ on (docs/design/limits.md 2).

A body is UTF-8 without a byte order mark and one object: depth 32, strings of 1 MiB, numbers of
20 digits, integers in signed 64 bits, no more values than any request needs. Duplicate keys, `NaN`,
`Infinity`, lone surrogates and NUL are refused.
"""

import json
import re
from collections import Counter
from itertools import repeat
from typing import Any

from service import errors

DEPTH_MAX = 32
STRING_BYTES_MAX = 1_048_576
NUMBER_DIGITS_MAX = 20
# The smallest double has so many zeros before its first other digit, written without exponent.
LEADING_ZEROS_MAX = 324
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1

# Bounds the time and memory of a body of 20 MiB. No request has a third of so many; strings in
# lists, as targets are, do not count.
VALUES_MAX = 100_000

SHOWN_CHARACTERS_MAX = 40
"""Characters of a key or number in an error."""

_LONG_STRING = re.compile(rf'"[^"]{{{STRING_BYTES_MAX // 4}}}')
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)


class InvalidJson(errors.Malformed):
    """The body is not acceptable JSON; `line` and `column`, from 1, are those of a syntax error."""

    code = "invalid_json"

    def __init__(self, what: str, line: int | None = None, column: int | None = None) -> None:
        place = "" if line is None else f"line {line}, column {column}: "
        super().__init__(f"The body is not acceptable JSON: {place}{what}.")
        self.members = {} if line is None else {"line": line, "column": column}


def parse(body: bytes) -> dict[str, Any]:
    """Return the one object that the body contains. Raises InvalidJson."""
    text = _decoded(body)
    if _containers(body) > VALUES_MAX and _containers(_STRING.sub(b"", body)) > VALUES_MAX:
        raise _too_many()
    bounds = _Bounds()
    try:
        document = json.loads(
            text,
            object_pairs_hook=bounds.object,
            parse_int=bounds.integer,
            parse_float=bounds.number,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        raise InvalidJson(error.msg[0].lower() + error.msg[1:], error.lineno, error.colno) from None
    except RecursionError:
        raise _too_deep() from None
    if not isinstance(document, dict):
        raise InvalidJson("one object is expected", 1, 1)
    # Without an escape no string contains NUL or a lone surrogate.
    are_strings_safe = "\\" not in text and _LONG_STRING.search(text) is None
    bounds.check(document, are_strings_safe=are_strings_safe)
    return document


def _decoded(body: bytes) -> str:
    if body.startswith(b"\xef\xbb\xbf"):
        raise InvalidJson("a byte order mark is not allowed", 1, 1)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        before = body[: error.start].decode("utf-8")
        line, start = before.count("\n") + 1, before.rfind("\n") + 1
        raise InvalidJson("not UTF-8", line, len(before) - start + 1) from None
    if not text.strip(" \t\r\n"):
        raise InvalidJson("the body is empty", 1, 1)
    return text


def _containers(body: bytes) -> int:
    return body.count(b"[") + body.count(b"{")


class _Bounds:
    """Hooks of one reading, and the check of its result; counts keys and values."""

    def __init__(self) -> None:
        self._values = 0

    def object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        self._count(len(pairs))
        members = dict(pairs)
        if len(members) < len(pairs):
            times = Counter(key for key, _ in pairs)
            raise InvalidJson(f"the key {_quoted(times.most_common(1)[0][0])} occurs twice")
        return members

    def integer(self, literal: str) -> int:
        self._count(1)
        _check_digits(literal)
        return int(literal)

    def number(self, literal: str) -> float:
        self._count(1)
        _check_digits(literal)
        value = float(literal)
        if value in (float("inf"), float("-inf")):
            raise InvalidJson(f"the number {literal[:SHOWN_CHARACTERS_MAX]} is too large")
        return value

    def check(self, document: dict[str, Any], *, are_strings_safe: bool) -> None:
        """Check depth, strings, integers, and the number of values that have no hook."""
        waiting: list[tuple[Any, str, int]] = [(document, "", 1)]
        for container, name, depth in waiting:
            if depth > DEPTH_MAX:
                raise _too_deep()
            is_object = type(container) is dict
            if is_object and not are_strings_safe:
                _check_keys(container)
            for key, value in container.items() if is_object else zip(repeat(name), container):
                kind = type(value)
                if kind is str:
                    if not are_strings_safe:
                        _check_string(value, key)
                elif kind is dict or kind is list:
                    self._count(1)
                    waiting.append((value, key, depth + 1))
                elif kind is int:
                    _check_integer(value, key)
                elif value is None or kind is bool:
                    self._count(1)

    def _count(self, values: int) -> None:
        self._values += values
        if self._values > VALUES_MAX:
            raise _too_many()


def _check_keys(members: dict[str, Any]) -> None:
    for key in members:
        _check_string(key, key)


def _check_string(text: str, key: str) -> None:
    place = f"a string at the key {_quoted(key)}"
    if "\x00" in text:
        raise InvalidJson(f"{place} contains NUL")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidJson(f"{place} contains a lone surrogate") from None
    if size > STRING_BYTES_MAX:
        raise InvalidJson(f"{place} is longer than 1 MiB")


def _check_integer(value: int, key: str) -> None:
    if not INTEGER_MIN <= value <= INTEGER_MAX:
        raise InvalidJson(f"an integer at the key {_quoted(key)} does not fit into 64 bits")


def _check_digits(literal: str) -> None:
    """Refuse a number with too many digits; zeros before the others only give its size."""
    if len(literal) <= NUMBER_DIGITS_MAX:
        return
    bare = literal.replace(".", "", 1).lstrip("-")
    significant = bare.lstrip("0")
    zeros = max(0, len(bare) - len(significant) - LEADING_ZEROS_MAX)
    if zeros + sum(map(str.isdigit, significant)) > NUMBER_DIGITS_MAX:
        shown = literal[:SHOWN_CHARACTERS_MAX]
        raise InvalidJson(f"the number {shown} has more than {NUMBER_DIGITS_MAX} digits")


def _refuse_constant(word: str) -> None:
    raise InvalidJson(f"{word} is not allowed")


def _quoted(key: str) -> str:
    """Return the key as text of an error, without what cannot be sent."""
    return json.dumps(key[:SHOWN_CHARACTERS_MAX])


def _too_many() -> InvalidJson:
    return InvalidJson(f"more than {VALUES_MAX} values and keys")


def _too_deep() -> InvalidJson:
    return InvalidJson(f"nested deeper than {DEPTH_MAX} levels")
