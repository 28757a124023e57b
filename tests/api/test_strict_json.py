"""What a body may say, and where it stops being acceptable (docs/design/limits.md 2)."""

import json
import string
from contextlib import suppress

import orjson
import pytest
from hypothesis import given
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
    json.dumps({"a": [c * n for n in range(65_533, 65_539) for c in "xé日"] * 3}).encode(),
    json.dumps({"a": ["x\n" if n % 255 == 0 else f"é{n}" for n in range(9_000)]}).encode(),
    '{"a": ["x", "日" , \n"", "y"]}'.encode() + b" " * 65_536,
]


@pytest.mark.parametrize("body", ACCEPTED, ids=range(len(ACCEPTED)))
def test_acceptable_json_reads_as_any_reader_reads_it(body):
    assert strict_json.parse(body) == json.loads(body)


BROKEN = [
    (b"", 1, 1),
    (b" \n ", 1, 1),
    (b"[]", 1, 1),
    (b'"a"', 1, 1),
    (b"null", 1, 1),
    (b"{} {}", 1, 4),
    (b'\xef\xbb\xbf{"a": 1}', 1, 1),
    (b'{"a": "\xff"}', 1, 8),
    (b'{"a":\n "\xed\xa0\x80"}', 2, 3),
    (b'{"a": True}', 1, 7),
    (b'{"a": 01}', 1, 8),
    (b'{"a": .5}', 1, 7),
    (b'{"a": +1}', 1, 7),
    (b'{"a": "\x00"}', 1, 8),
    (b'{"a": "b\nc"}', 1, 9),
    (b'{"a": "\\x"}', 1, 8),
    (b'{"a": "\\u12"}', 1, 9),
    (b'{"a": "b', 1, 7),
    (b"{'a': 1}", 1, 2),
    (b'{"a" 1}', 1, 6),
    (b'{"a": 1 "b": 2}', 1, 9),
    (b'{"a": [1 2]}', 1, 10),
    (b'{"a": /* b */ 1}', 1, 7),
    (b'{"a": [\n' + b'"abc",\n' * 20_000 + b'"\x01"]}', 20_002, 2),
]


@pytest.mark.parametrize(("body", "line", "column"), BROKEN, ids=range(len(BROKEN)))
def test_a_breach_of_the_syntax_is_named_with_its_line_and_column(body, line, column):
    with pytest.raises(InvalidJson) as refused:
        strict_json.parse(body)
    assert refused.value.code == "invalid_json"
    assert refused.value.members == {"line": line, "column": column}
    start = f"The body is not acceptable JSON: line {line}, column {column}: "
    assert refused.value.detail.startswith(start)


@pytest.mark.parametrize("body", [b'{"a": [1,]}', b'{"a": ["x",]}', b'{"a": 1,}'])
def test_a_comma_before_an_end_is_a_breach_of_the_syntax(body):
    with pytest.raises(InvalidJson) as refused:
        strict_json.parse(body)
    assert refused.value.members["line"] == 1


REFUSED = [
    (b'{"a": 1,\n "a": 2}', 'the key "a" occurs twice'),
    (b'{"a": 1, "\\u0061": 2}', 'the key "a" occurs twice'),
    (b'{"x": {"a:": 1, "a:": 2}}', 'the key "a:" occurs twice'),
    (b'{"a": NaN}', "NaN is not allowed"),
    (b'{"a": -Infinity}', "-Infinity is not allowed"),
    (b'{"a": 9223372036854775808}', 'an integer at the key "a" does not fit into 64 bits'),
    (b'{"a": -9223372036854775809}', 'an integer at the key "a" does not fit into 64 bits'),
    (b'{"a": {"b": [9223372036854775808]}}', 'an integer at the key "b" does not fit into 64 bits'),
    (
        b'{"a": 0.123456789012345678901}',
        "the number 0.123456789012345678901 has more than 20 digits",
    ),
    (
        b'{"a": 0.000123456789012345678901}',
        "the number 0.000123456789012345678901 has more than 20 digits",
    ),
    (
        b'{"a": 0.' + b"0" * 400 + b"1}",
        f"the number 0.{'0' * 38} has more than 20 digits",
    ),
    (
        b'{"a": 1e' + b"0" * 20 + b"1}",
        f"the number 1e{'0' * 20}1 has more than 20 digits",
    ),
    (b'{"a": 1' + b"0" * 5_000 + b"}", f"the number 1{'0' * 39} has more than 20 digits"),
    (b'{"a": [' + b"1," * 100_000 + b"1]}", "more than 100000 values and keys"),
    (b'{"a": [' + b"{}," * 100_000 + b"1]}", "more than 100000 values and keys"),
    (b'{"a": [' + b"null," * 100_000 + b"1]}", "more than 100000 values and keys"),
    (b'{"a": 1e999}', "the number 1e999 is too large"),
    (b'{"a": "\\ud800"}', 'a string at the key "a" contains a lone surrogate'),
    (b'{"\\ud800": 1}', 'a string at the key "\\ud800" contains a lone surrogate'),
    (b'{"a": ["\\u0000"]}', 'a string at the key "a" contains NUL'),
    (b'{"\\u0000": 1}', 'a string at the key "\\u0000" contains NUL'),
    (b'{"a":' * 33 + b"1" + b"}" * 33, "nested deeper than 32 levels"),
    (b'{"a": ' + b"[" * 50_000, "nested deeper than 32 levels"),
    (b'{"a": ' + b"[" * 200_000, "more than 100000 values and keys"),
    (b'{"a": "' + b"x" * 1_048_577 + b'"}', 'a string at the key "a" is longer than 1 MiB'),
    (
        b'{"a": ["' + "é".encode() * 524_289 + b'", 1]}',
        'a string at the key "a" is longer than 1 MiB',
    ),
]


@pytest.mark.parametrize(("body", "what"), REFUSED, ids=range(len(REFUSED)))
def test_every_breach_of_a_bound_is_named(body, what):
    with pytest.raises(InvalidJson) as refused:
        strict_json.parse(body)
    assert refused.value.detail == f"The body is not acceptable JSON: {what}."
    assert refused.value.members == {}


def test_brackets_in_strings_are_no_values():
    names = [f"//a[{n}]" for n in range(strict_json.VALUES_MAX + 1)]
    assert strict_json.parse(json.dumps({"a": names}).encode()) == {"a": names}


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(texts, values, max_size=4)


@given(objects)
def test_a_value_is_read_the_same_whatever_its_spelling(value):
    for body in (orjson.dumps(value), json.dumps(value, indent=2).encode()):
        assert strict_json.parse(body) == value


@given(st.text(string.printable, max_size=30))
def test_nothing_but_a_refusal_comes_of_any_text(text):
    with suppress(InvalidJson):
        strict_json.parse(text.encode())
