"""What a body may say, and where it stops being acceptable (API.md 1.2)."""

import json
import string

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.http import strict_json
from service.http.strict_json import InvalidJson

ACCEPTED = [
    b"{}",
    b' \r\n\t{"a" : [1 , -2.5e3, true,false , null, {}, []] }\n',
    b'{"a": 9223372036854775807, "b": -9223372036854775808}',
    b'{"a": 1.2345678901234567890, "b": 0.0, "c": -0, "d": 1E+2}',
    b'{"a": 0.00019999999999999998, "b": -0.000001234567890123456, "c": 2.2250738585072014e-308}',
    b'{"a": 0.' + b"0" * 323 + b"5}",
    rb'{"a": "\ud83d\ude00 \n \/ \" \\ \u00e9"}',
    '{"ä": "日本", "a:b": ":"}'.encode(),
    b'{"a": {"a": 1}, "b": {"a": 1}}',
    b'{"a":' * 31 + b"[]" + b"}" * 31,
    b'{"a": "' + b"x" * strict_json.STRING_BYTES_MAX + b'"}',
    b'{"a": ["x", "y" , "z\\n", 1, "u"]}',
    b'{"a": [' + b'"x",' * 200_000 + b"1]}",
    b'{"a": [' + b'"\\n",' * 200_000 + b"1]}",
    b'{"a": [' + b"1," * 99_990 + b"1]}",
    # Lists are read many strings at a time, but for long ones and those with escapes.
    json.dumps({"a": [c * n for n in range(65_533, 65_539) for c in "xé日"] * 3}).encode(),
    json.dumps({"a": ["x\n" if n % 255 == 0 else f"é{n}" for n in range(9_000)]}).encode(),
    '{"a": ["x", "日" , \n"", "y"]}'.encode() + b" " * strict_json.FAST_BYTES_MAX,
]


@pytest.mark.parametrize("body", ACCEPTED, ids=range(len(ACCEPTED)))
def test_acceptable_json_reads_as_any_reader_reads_it(body):
    assert strict_json.parse(body) == json.loads(body)


REFUSED = [
    (b"", 1, 1, "the body is empty"),
    (b" \n ", 2, 2, "the body is empty"),
    (b"[]", 1, 1, "one object is expected"),
    (b'"a"', 1, 1, "one object is expected"),
    (b"null", 1, 1, "one object is expected"),
    (b"{} {}", 1, 4, "something follows the object"),
    (b'\xef\xbb\xbf{"a": 1}', 1, 1, "a byte order mark is not allowed"),
    (b'{"a": "\xff"}', 1, 8, "not UTF-8"),
    (b'{"a":\n "\xed\xa0\x80"}', 2, 3, "not UTF-8"),
    (b'{"a": 1,\n "a": 2}', 2, 2, 'the key "a" comes twice'),
    (b'{"a": 1, "\\u0061": 2}', 1, 10, 'the key "a" comes twice'),
    (b'{"x": {"a:": 1, "a:": 2}}', 1, 17, 'the key "a:" comes twice'),
    (b'{"a": NaN}', 1, 7, "a value is expected"),
    (b'{"a": -Infinity}', 1, 7, "a value is expected"),
    (b'{"a": True}', 1, 7, "a value is expected"),
    (b'{"a": 01}', 1, 8, "a comma or } is expected"),
    (b'{"a": .5}', 1, 7, "a value is expected"),
    (b'{"a": +1}', 1, 7, "a value is expected"),
    (b'{"a": 9223372036854775808}', 1, 7, "an integer does not fit into 64 bits"),
    (b'{"a": -9223372036854775809}', 1, 7, "an integer does not fit into 64 bits"),
    (b'{"a": 0.123456789012345678901}', 1, 7, "a number has more than 20 digits"),
    (b'{"a": 0.000123456789012345678901}', 1, 7, "a number has more than 20 digits"),
    (b'{"a": 0.' + b"0" * 400 + b"1}", 1, 7, "a number has more than 20 digits"),
    (b'{"a": 1e' + b"0" * 20 + b"1}", 1, 7, "a number has more than 20 digits"),
    (b'{"a": [' + b"1," * 100_000 + b"1]}", 1, 200_004, "more than 100000 values and keys"),
    (b'{"a": [' + b"{}," * 100_000 + b"1]}", 1, 300_002, "more than 100000 values and keys"),
    (b'{"a": 1e999}', 1, 7, "a number is too large"),
    (b'{"a": "\\ud800"}', 1, 7, "a lone surrogate in a string"),
    (b'{"a": "\\u0000"}', 1, 7, "NUL in a string"),
    (b'{"\\u0000": 1}', 1, 2, "NUL in a string"),
    (b'{"a": "\x00"}', 1, 8, "a control character in a string"),
    (b'{"a": "b\nc"}', 1, 9, "a control character in a string"),
    (b'{"a": "\\x"}', 1, 8, "no such escape in a string"),
    (b'{"a": "\\u12"}', 1, 8, "no such escape in a string"),
    (b'{"a": "b', 1, 9, "a string does not end"),
    (b"{'a': 1}", 1, 2, "a key in double quotes is expected"),
    (b'{"a" 1}', 1, 6, "a colon is expected"),
    (b'{"a": 1 "b": 2}', 1, 9, "a comma or } is expected"),
    (b'{"a": [1 2]}', 1, 10, "a comma or ] is expected"),
    (b'{"a": [1,]}', 1, 10, "a value is expected"),
    (b'{"a": ["x",]}', 1, 12, "a value is expected"),
    (b'{"a": 1,}', 1, 9, "a key in double quotes is expected"),
    (b'{"a": /* b */ 1}', 1, 7, "a value is expected"),
    (b'{"a":' * 33 + b"1" + b"}" * 33, 1, 161, "nested deeper than 32 levels"),
    (b'{"a": ' + b"[" * 100_000, 1, 38, "nested deeper than 32 levels"),
    (b'{"a": "' + b"x" * 1_048_577 + b'"}', 1, 7, "a string is longer than 1 MiB"),
    (
        b'{"a": [\n' + b'"abc",\n' * 20_000 + b'"\x01"]}',
        20_002,
        2,
        "a control character in a string",
    ),
    (
        b'{"a": ["' + "é".encode() * 524_289 + b'", 1]}',
        1,
        8,
        "a string is longer than 1 MiB",
    ),
]


@pytest.mark.parametrize(("body", "line", "column", "what"), REFUSED, ids=range(len(REFUSED)))
def test_every_breach_is_named_with_its_line_and_column(body, line, column, what):
    with pytest.raises(InvalidJson) as refused:
        strict_json.parse(body)
    assert refused.value.code == "invalid_json"
    assert refused.value.members == {"line": line, "column": column}
    assert refused.value.detail == (
        f"The body is not acceptable JSON: line {line}, column {column}: {what}."
    )


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(texts, values, max_size=4)


@given(objects)
def test_both_ways_read_the_same_whatever_the_spelling(value):
    for body in (orjson.dumps(value), json.dumps(value, indent=2).encode()):
        assert strict_json.parse(body) == value
        # Padding takes the same body past the size up to which the fast way is tried.
        assert strict_json.parse(body + b" " * strict_json.FAST_BYTES_MAX) == value


pieces = st.sampled_from(
    [
        '"a"',
        '"b"',
        ":",
        ",",
        "{",
        "}",
        "[",
        "]",
        "1",
        "-",
        "0.5",
        "1e5",
        "true",
        "null",
        " ",
        "\n",
        '"\\u0000"',
        '"\\ud800"',
        '"',
        "\\",
        "NaN",
        "9223372036854775808",
        '"a":1',
        "\x00",
    ]
)


@example('{"a":1,"a":1}')
@given(st.lists(pieces, max_size=12).map(lambda parts: "{" + "".join(parts) + "}"))
def test_what_the_fast_way_accepts_the_slow_way_accepts_as_the_same(text):
    short, long = text.encode(), text.encode() + b" " * strict_json.FAST_BYTES_MAX
    assert outcome(short) == outcome(long)


def outcome(body: bytes) -> object:
    """The value read, None for a refusal."""
    try:
        return strict_json.parse(body)
    except InvalidJson:
        return None


@given(st.text(string.printable, max_size=30))
def test_nothing_but_a_refusal_comes_of_any_text(text):
    outcome(text.encode())
