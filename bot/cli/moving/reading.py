"""Files of other queues to values with their lines."""

import re
import tomllib
from collections.abc import Iterator

import orjson

from service.repofile import document
from service.repofile.document import Document, Path, Rules, Unreadable

# Other tools allow anchors, and nest deeper than our own file.
RULES = Rules(depth_max=50, has_aliases=True)
LINE_CHARS_MAX = 1000
"""A longer line is searched for no key."""
NO_JSON = "It has a number or a nesting that is too large, or a text with half a character."
TABLE = re.compile(r"\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?")
KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")
PLACE_OF_ERROR = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)")


def read(path: str, content: bytes) -> Document:
    """Return the values of a TOML, YAML or JSON file, by its name. Raises Unreadable."""
    found = _read_toml(content) if path.endswith(".toml") else document.read(content, RULES)
    try:
        orjson.dumps(found.value, default=str)
    except TypeError:
        raise Unreadable(NO_JSON) from None
    return found


def _read_toml(content: bytes) -> Document:
    if len(content) > document.BYTES_MAX:
        raise Unreadable(
            f"The file has {len(content):,} bytes; Headgate reads files that are smaller."
        )
    try:
        text = content.decode("utf-8-sig")
        value = tomllib.loads(text)
    except UnicodeDecodeError as failed:
        line = content.count(b"\n", 0, failed.start) + 1
        raise Unreadable("The file is not UTF-8 text. Save it as UTF-8.", line) from None
    except tomllib.TOMLDecodeError as failed:
        found = PLACE_OF_ERROR.search(str(failed))
        last = text.count("\n") + 1
        line = int(found[1]) if found and found[1] else last
        raise Unreadable(
            f"This is not TOML: {PLACE_OF_ERROR.sub('', str(failed))}.", line
        ) from None
    except (RecursionError, ValueError):
        # Of a nesting, and of a number with thousands of digits.
        raise Unreadable(NO_JSON) from None
    return Document(value, dict(_lines(text, value)))


def _lines(text: str, value: object) -> Iterator[tuple[Path, int]]:
    """Yield the line of each key; a line that only looks like one has no value in the file."""
    yield (), 1
    table: Path = ()
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > LINE_CHARS_MAX:
            continue
        if match := TABLE.fullmatch(line):
            table = _parts(match[1])
            yield table, number
        elif match := KEY.match(line):
            path = (*table, *_parts(match[1]))
            if _has(value, path):
                yield path, number


def _parts(dotted: str) -> Path:
    return tuple(part.strip("\"'") for part in PART.findall(dotted))


def _has(value: object, path: Path) -> bool:
    for part in path:
        if not isinstance(value, dict) or part not in value:
            return False
        value = value[part]
    return True
