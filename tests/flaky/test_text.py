"""Bytes become text: containers, encodings, what stands around the root, escapes."""

import gzip
import random
import zlib

import pytest

from service.testhealth.reports import reports, text
from service.testhealth.reports.reading import ReadOptions
from service.testhealth.reports.results import Fault, FileStatus, WarningCode

XML = '<testsuite name="sü"><testcase name="tä€"><failure>größer</failure></testcase></testsuite>'
REPLACED = [WarningCode.ENCODING_REPLACED]


def read(content):
    return reports.read(content, None, ReadOptions())


def codes(report):
    return [warned.code for warned in report.warnings]


@pytest.mark.parametrize(
    "content",
    [
        XML.encode(),
        b"\xef\xbb\xbf" + XML.encode(),
        XML.encode("utf-16"),
        b"\xff\xfe" + XML.encode("utf-16-le"),
        b"\xfe\xff" + XML.encode("utf-16-be"),
        XML.encode("utf-16-le"),
        XML.encode("utf-16-be"),
        b'<?xml version="1.0" encoding="UTF-8"?>' + XML.encode(),
        b"<?xml version='1.1' encoding='utf8'?>" + XML.encode(),
        f'<?xml version="1.0" encoding="windows-1252"?>{XML}'.encode("cp1252"),
        f'<?xml version="1.0" encoding="ISO-8859-15" standalone="yes"?>\n{XML}'.encode("latin9"),
        f'\ufeff<?xml version="1.0" encoding="latin-1"?>{XML}'.encode(),
    ],
)
def test_an_encoding_is_found(content):
    for packed in (content, gzip.compress(content)):
        report = read(packed)
        assert codes(report) == []
        (case,) = report.cases
        assert (case.parent, case.name, case.attempts[0].stack) == ("sü", "tä€", "größer")


@pytest.mark.parametrize("name", ["utf-16", "hex", "idna", "no-such", "unicode_escape", "ascii"])
def test_a_false_declaration_does_no_harm(name):
    report = read(f'<?xml version="1.0" encoding="{name}"?>{XML}'.encode())
    assert codes(report) == REPLACED
    assert report.cases[0].name == "tä€"


@pytest.mark.parametrize(
    "content",
    [
        XML.replace("tä€", "t?x").encode().replace(b"?", b"\xe4"),
        XML.replace("tä€", "t?x").encode().replace(b"?", b"\xed\xa0\x80"),
        b"\xff\xfe" + XML.replace("tä€", "t?x").encode("utf-16-le").replace(b"?\0", b"\x00\xd8"),
    ],
)
def test_bytes_that_mean_nothing_are_replaced(content):
    report = read(content)
    assert codes(report) == REPLACED
    assert report.cases[0].name.replace("\ufffd", "") == "tx"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "", []),
        ("  \n", "  \n<!-- end -->", []),
        ("<!-- a --><?style b?>", "", []),
        ("npm warn old\n", "", [WarningCode.LEADING_TEXT]),
        ('\n<?xml version="1.0"?>', "", [WarningCode.LEADING_TEXT]),
        ('<!-- a --><?xml version="1.0"?>', "", [WarningCode.LEADING_TEXT]),
        ("", "Done in 3 s", [WarningCode.TRAILING_TEXT]),
        ("", '<?xml version="1.0"?><testsuite/>', [WarningCode.TRAILING_TEXT]),
        ("", "<testcase name='x'/>", [WarningCode.TRAILING_TEXT]),
        ("", "<!DOCTYPE x>", [WarningCode.TRAILING_TEXT]),
    ],
)
def test_what_stands_around_the_root_is_left_out(before, after, expected):
    report = read(f"{before}{XML}{after}".encode())
    assert codes(report) == expected
    assert len(report.cases) == 1


def test_too_much_text_before_the_first_element_is_no_report():
    assert read(b" " * 65_535 + XML.encode()).status is FileStatus.ACCEPTED
    report = read(b"x" * 65_536 + XML.encode())
    assert report.fault == Fault("Not a known report format.")


@pytest.mark.parametrize(
    "forbidden",
    [
        *("\x00", "\x08", "\x0b", "\x1b", "\x1f", "\ufffe", "\uffff"),
        *("&#0;", "&#x1B;", "&#27;", "&#xD800;", "&#55357;", "&#xFFFF;", "&#1114112;", "&#x0000b;"),
    ],
)
def test_a_character_that_xml_forbids_is_replaced(forbidden):
    (case,) = read(f'<testsuite><testcase name="a{forbidden}b"/></testsuite>'.encode()).cases
    assert case.name == "a\ufffdb"


@pytest.mark.parametrize("allowed", ["&#9;", "&#10;", "&#x20;", "&#x1F600;", "&#xFFFD;", "&#128;"])
def test_a_character_that_xml_allows_stays(allowed):
    (case,) = read(f'<testsuite><testcase name="a{allowed}b"/></testsuite>'.encode()).cases
    assert case.name == f"a{chr(int(allowed[2:-1].replace('x', '0x'), 0))}b"


def test_references_are_seen_across_the_pieces_of_a_file(monkeypatch):
    monkeypatch.setattr(text, "PIECE_BYTES", 7)
    xml = '<testsuite><testcase name="a&#x1b;b&amp;c\x01ü"/></testsuite>'
    report = read(b"\n" + xml.encode())
    assert [case.name for case in report.cases] == ["a\ufffdb&c\ufffdü"]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("&#27;[1;31mred&#x1B;[m", "red"),
        ("#x1B[31mred#x1B[0m", "red"),
        ("&amp;#27;[31mred&amp;amp#27;[0m", "red"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b[2K\x1b[1Gdone", "done"),
        ("10 != [1;31m11[0m", "10 != 11"),
        ("array[31m]", "array[31m]"),
        ("a[17] in 3m", "a[17] in 3m"),
        ("&lt;b&gt;bold&lt;/b&gt;", "<b>bold</b>"),
    ],
)
def test_escapes_of_a_terminal_are_removed_from_captured_text(said, kept):
    xml = (
        f'<testsuite><testcase name="n"><failure message="{said}">{said}</failure>'
        f"<system-out>{said}</system-out></testcase></testsuite>"
    )
    (case,) = read(xml.encode()).cases
    (attempt,) = case.attempts
    assert (attempt.message, attempt.stack, case.output) == (kept, kept, kept)


def test_members_of_gzip_in_a_row_are_one_file():
    half = len(XML) // 2
    content = gzip.compress(XML[:half].encode()) + gzip.compress(XML[half:].encode())
    assert read(content).status is FileStatus.ACCEPTED


def test_a_second_layer_of_gzip_is_no_report():
    report = read(gzip.compress(gzip.compress(XML.encode())))
    assert report.fault == Fault("Not a known report format.")


@pytest.mark.parametrize(
    "content", [b"PK\x03\x04" + b"\0" * 99, b"\x28\xb5\x2f\xfd", b"hello", b"\0"]
)
def test_other_containers_and_texts_are_no_reports(content):
    assert read(content).fault == Fault("Not a known report format.")


@pytest.mark.parametrize("content", [b"", b" \r\n", gzip.compress(b"", mtime=0)])
def test_an_empty_file_is_refused(content):
    assert read(content).fault == Fault("The file is empty.")


def test_a_bomb_is_refused_before_it_is_large():
    bomb = gzip.compress(b"\0" * 200_000_000)
    assert isinstance(text.unpacked(bomb), Fault)


def test_a_file_that_says_one_thing_again_and_again_may_expand_to_8_mib():
    line = b"retrying in 5 ms\n"
    chatty = gzip.compress(line * 400_000)
    assert len(chatty) * text.EXPANSION_RATIO_MAX < len(line) * 400_000
    assert not isinstance(text.unpacked(chatty), Fault)
    assert isinstance(text.unpacked(gzip.compress(line * 500_000)), Fault)


def test_a_large_file_may_expand_to_200_times_its_size(monkeypatch):
    monkeypatch.setattr(text, "EXPANSION_FREE_BYTES", 0)
    packed = gzip.compress(b" " * 500_000)
    padded = packed + gzip.compress(random.Random(7).randbytes(3_000))
    assert len(packed) * 200 < 500_000 < len(padded) * 200
    assert isinstance(text.unpacked(packed), Fault)
    assert not isinstance(text.unpacked(padded), Fault)


def test_an_expanded_file_may_have_100_mib(monkeypatch):
    monkeypatch.setattr(text, "EXPANDED_BYTES_MAX", 10_000)
    noise = random.Random(1).randbytes(9_000)
    assert not isinstance(text.unpacked(gzip.compress(noise)), Fault)
    assert isinstance(text.unpacked(gzip.compress(noise + noise)), Fault)


def test_a_damaged_gzip_stream_gives_its_whole_cases():
    cases = "".join(f'<testcase name="{n * n * 7919}"/>' for n in range(3_000))
    packed = gzip.compress(f"<testsuite>{cases}</testsuite>".encode())
    cut = read(packed[: len(packed) // 2])
    assert cut.status is FileStatus.PARTIAL
    assert 0 < len(cut.cases) < 3_000
    unfinished = read(packed[:-4])
    assert (unfinished.status, len(unfinished.cases)) == (FileStatus.PARTIAL, 3_000)
    assert unfinished.fault == Fault("The gzip stream is damaged or ends early.")
    assert read(packed[:11]).status is FileStatus.REFUSED
    raw = zlib.compress(XML.encode())
    assert read(b"\x1f\x8b" + raw).status is FileStatus.REFUSED


@pytest.mark.parametrize("codec", ["cp037", "cp500", "utf-7"])
def test_a_declared_encoding_in_which_the_declaration_reads_otherwise_is_untrue(codec):
    report = read(f'<?xml version="1.0" encoding="{codec}"?>{XML}'.encode())
    assert codes(report) == REPLACED
    assert len(report.cases) == 1


def test_what_is_packed_twice_is_no_report_whatever_its_bytes():
    inner = gzip.compress(XML.encode(), mtime=int.from_bytes(b"<<<<", "little"))
    assert read(gzip.compress(inner)).fault == Fault("Not a known report format.")
