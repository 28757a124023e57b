"""Bytes of a request body to JSON values, refusing what readers of JSON differ on.

API.md 1.2: UTF-8 without BOM, one object, depth 32, strings of 1 MiB, numbers of 20 digits,
integers in signed 64 bits; no duplicate keys, `NaN`, `Infinity`, lone surrogates, NUL. And no
more values than any request has.

Two ways to one result. Small, plain bodies take the fast way: orjson reads them and a count
shows that nothing was dropped or bent. Whatever the count cannot vouch for, and every error,
goes the slow way, which reads character by character and knows line and column.
"""

import re
from typing import Any

import orjson

from service import errors

DEPTH_MAX = 32
STRING_BYTES_MAX = 1_048_576
NUMBER_DIGITS_MAX = 20
# So many stand before the first other digit of the smallest double, written without exponent.
LEADING_ZEROS_MAX = 324
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1

# Each costs microseconds: a body of 20 MiB that is a list of digits would take minutes. No
# request has a third of so many; strings in lists, as targets are, do not count.
VALUES_MAX = 100_000

# Above this the body is mostly one long list, where the slow way costs little more, and may
# leave the loop to others because it runs in Python.
FAST_BYTES_MAX = 65_536

_SPACE = re.compile(r"[ \t\n\r]*+")
_PLAIN = re.compile(r'"([^"\\\x00-\x1f]*+)"')
# Strings without escapes, each with its comma, of a length that no bound forbids.
_ITEMS = re.compile(r'(?:[ \t\n\r]*+"[^"\\\x00-\x1f]{0,65535}+"[ \t\n\r]*+,){1,256}')
# Not possessive around the group: Python 3.11.2 then forgets where the group began.
_ESCAPED = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(\.[0-9]++)?([eE][+-]?[0-9]++)?")
_WORDS = (("true", True), ("false", False), ("null", None))


class InvalidJson(errors.Malformed):
    """The body is no acceptable JSON; `line` and `column` are 1-based, in characters."""

    code = "invalid_json"

    def __init__(self, what: str, line: int, column: int) -> None:
        super().__init__(f"The body is not acceptable JSON: line {line}, column {column}: {what}.")
        self.members = {"line": line, "column": column}


def parse(body: bytes) -> dict[str, Any]:
    """The one object that the body holds. Raises InvalidJson."""
    if len(body) <= FAST_BYTES_MAX:
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError:
            return _Slow(_decoded(body)).document()
        if _is_plain(value, body):
            return value  # type: ignore[no-any-return]
    return _Slow(_decoded(body)).document()


def _is_plain(value: Any, body: bytes) -> bool:
    """Whether orjson's reading is surely ours: every key kept, every number exact.

    Each key has its colon, so as many colons as kept keys mean that no key came twice; a
    colon inside a string only sends the body the slow way.
    """
    if type(value) is not dict or body.count(b"{") + body.count(b"[") > DEPTH_MAX:
        return False
    keys = 0
    waiting: list[Any] = [value]
    for each in waiting:
        is_object = type(each) is dict
        keys += len(each) if is_object else 0
        for member in each.values() if is_object else each:
            kind = type(member)
            if kind is dict or kind is list:
                waiting.append(member)
            elif kind is float or (kind is int and not INTEGER_MIN <= member <= INTEGER_MAX):
                return False
    return keys == body.count(b":") and b"\\u0000" not in body


def _decoded(body: bytes) -> str:
    """The body as text."""
    if body.startswith(b"\xef\xbb\xbf"):
        raise InvalidJson("a byte order mark is not allowed", 1, 1)
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        before = body[: error.start].decode("utf-8")
        raise _at(before, len(before), "not UTF-8") from None


def _at(text: str, index: int, what: str) -> InvalidJson:
    """The error at one place of the text."""
    line = text.count("\n", 0, index) + 1
    return InvalidJson(what, line, index - (text.rfind("\n", 0, index) + 1) + 1)


class _Slow:
    """A reader over one text; every method takes the index where its part begins."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._values = 0

    def document(self) -> dict[str, Any]:
        """The whole text as one object."""
        start = self._after_space(0)
        if start == len(self._text):
            raise self._wrong(start, "the body is empty")
        if self._text[start] != "{":
            raise self._wrong(start, "one object is expected")
        value, index = self._object(start, 1)
        index = self._after_space(index)
        if index != len(self._text):
            raise self._wrong(index, "something follows the object")
        return value

    def _value(self, index: int, depth: int) -> tuple[Any, int]:
        first = self._text[index : index + 1]
        if first == '"':
            return self._string(index)
        self._count(index)
        if first in ("{", "["):
            if depth >= DEPTH_MAX:
                raise self._wrong(index, f"nested deeper than {DEPTH_MAX} levels")
            inside = self._object if first == "{" else self._array
            return inside(index, depth + 1)
        for word, value in _WORDS:
            if self._text.startswith(word, index):
                return value, index + len(word)
        return self._number(index)

    def _object(self, index: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        index = self._after_space(index + 1)
        if self._text[index : index + 1] == "}":
            return found, index + 1
        while True:
            if self._text[index : index + 1] != '"':
                raise self._wrong(index, "a key in double quotes is expected")
            begin = index
            self._count(index)
            key, index = self._string(index)
            if key in found:
                raise self._wrong(begin, f"the key {self._quoted(key)} comes twice")
            index = self._after_space(index)
            if self._text[index : index + 1] != ":":
                raise self._wrong(index, "a colon is expected")
            found[key], index = self._value(self._after_space(index + 1), depth)
            index = self._after_space(index)
            follows = self._text[index : index + 1]
            if follows == "}":
                return found, index + 1
            if follows != ",":
                raise self._wrong(index, "a comma or } is expected")
            index = self._after_space(index + 1)

    def _array(self, index: int, depth: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        index = self._after_space(index + 1)
        if self._text[index : index + 1] == "]":
            return found, index + 1
        while True:
            index = self._plain_items(index, found)
            value, index = self._value(self._after_space(index), depth)
            found.append(value)
            index = self._after_space(index)
            follows = self._text[index : index + 1]
            if follows == "]":
                return found, index + 1
            if follows != ",":
                raise self._wrong(index, "a comma or ] is expected")
            index += 1

    def _plain_items(self, index: int, found: list[Any]) -> int:
        """Take strings without escapes, each with its comma; where the first other begins."""
        while (match := _ITEMS.match(self._text, index)) is not None:
            found += orjson.loads(f"[{match[0][:-1]}]")
            index = match.end()
        return index

    def _string(self, index: int) -> tuple[str, int]:
        match = _PLAIN.match(self._text, index)
        if match is not None:
            return self._bounded(match[1], index), match.end()
        match = _ESCAPED.match(self._text, index)
        if match is None:
            raise self._broken_string(index)
        try:
            word = orjson.loads(match[0])
        except orjson.JSONDecodeError:
            raise self._wrong(index, "a lone surrogate in a string") from None
        if "\x00" in word:
            raise self._wrong(index, "NUL in a string")
        return self._bounded(word, index), match.end()

    def _bounded(self, word: str, index: int) -> str:
        if len(word) * 4 > STRING_BYTES_MAX and len(word.encode()) > STRING_BYTES_MAX:
            raise self._wrong(index, "a string is longer than 1 MiB")
        return word

    def _broken_string(self, index: int) -> InvalidJson:
        """The error where the string that begins at `index` stops being one."""
        good = re.compile(_ESCAPED.pattern.removesuffix('"')).match(self._text, index)
        end = good.end() if good is not None else index
        following = self._text[end : end + 1]
        if following == "":
            return self._wrong(end, "a string does not end")
        if following == "\\":
            return self._wrong(end, "no such escape in a string")
        return self._wrong(end, "a control character in a string")

    def _number(self, index: int) -> tuple[int | float, int]:
        match = _NUMBER.match(self._text, index)
        if match is None:
            raise self._wrong(index, "a value is expected")
        literal = match[0]
        if len(literal) > NUMBER_DIGITS_MAX and _digits(literal) > NUMBER_DIGITS_MAX:
            raise self._wrong(index, f"a number has more than {NUMBER_DIGITS_MAX} digits")
        if match[1] is None and match[2] is None:
            whole = int(literal)
            if not INTEGER_MIN <= whole <= INTEGER_MAX:
                raise self._wrong(index, "an integer does not fit into 64 bits")
            return whole, match.end()
        number = float(literal)
        if number in (float("inf"), float("-inf")):
            raise self._wrong(index, "a number is too large")
        return number, match.end()

    def _count(self, index: int) -> None:
        """One value more that is no string of a list."""
        self._values += 1
        if self._values > VALUES_MAX:
            raise self._wrong(index, f"more than {VALUES_MAX} values and keys")

    def _after_space(self, index: int) -> int:
        match = _SPACE.match(self._text, index)
        return match.end() if match is not None else index

    def _quoted(self, key: str) -> str:
        """The key as text of an error, cut where it would fill a page."""
        return f'"{key[:40]}"'

    def _wrong(self, index: int, what: str) -> InvalidJson:
        return _at(self._text, index, what)


def _digits(literal: str) -> int:
    """Digits of a number that say something; zeros before them are only its size."""
    bare = literal.replace(".", "", 1).lstrip("-")
    told = bare.lstrip("0")
    zeros = max(0, len(bare) - len(told) - LEADING_ZEROS_MAX)
    return zeros + sum(character.isdigit() for character in told)
