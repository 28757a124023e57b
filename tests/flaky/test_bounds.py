"""No file costs more than it may, and no cut loses a whole case or raises."""

import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.testhealth.reports import reading, reports, text, xml
from service.testhealth.reports.formats import go_json
from service.testhealth.reports.junit import JUnitElements
from service.testhealth.reports.reading import Reading, ReadOptions
from service.testhealth.reports.results import Fault, FileStatus, Format, WarningCode
from tests.flaky.dialects import DIALECTS, shown

NO_DOCTYPE = "A document type declaration is not allowed."


def read(content, wanted=None):
    return reports.read(
        content.encode() if isinstance(content, str) else content, wanted, ReadOptions()
    )


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
CASE = '<testsuite><testcase name="&x;"/></testsuite>'

ATTACKS = {
    "external entity": f'<!DOCTYPE t [<!ENTITY x SYSTEM "file:///etc/passwd">]>{CASE}',
    "parameter entity": f'<!DOCTYPE t [<!ENTITY % x SYSTEM "http://127.0.0.1/">%x;]>{CASE}',
    "external subset": f'<!DOCTYPE t SYSTEM "http://127.0.0.1/t.dtd">{CASE}',
    "billion laughs": f'<!DOCTYPE t [<!ENTITY l0 "ha">{LAUGHS}]>{CASE}',
    "quadratic blow-up": f'<!DOCTYPE t [<!ENTITY x "{"a" * 100_000}">]><t>{"&x;" * 10_000}</t>',
    "harmless": f"<!DOCTYPE testsuite>{CASE}",
    "behind a declaration": f'<?xml version="1.0"?>\n<!DOCTYPE testsuite>{CASE}',
    "behind text": f"text <!DOCTYPE testsuite>{CASE}",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_document_type_is_refused_whatever_it_declares(name):
    report = read(ATTACKS[name])
    assert (report.status, report.cases) == (FileStatus.REFUSED, ())
    assert report.fault
    assert report.fault.message == NO_DOCTYPE


def test_the_place_of_a_refusal_is_told():
    report = read('<?xml version="1.0"?>\n <!DOCTYPE testsuite>\n<testsuite/>')
    assert report.fault == Fault(NO_DOCTYPE, 2, 21)


def test_an_entity_without_declaration_is_malformed():
    report = read('<testsuite><testcase name="a"/><testcase name="&nbsp;"/></testsuite>')
    assert (report.status, len(report.cases)) == (FileStatus.PARTIAL, 1)


def elements(count):
    names = "".join(f"<e{n}/>" for n in range(count))
    return f'<testsuite><testcase name="n"/>{names}</testsuite>'


def nested(depth):
    return "<testsuite>" * depth + '<testcase name="n"/>' + "</testsuite>" * depth


def attributes(count):
    return " ".join(f'a{n}="x"' for n in range(count))


@pytest.mark.parametrize(
    ("within", "beyond", "message"),
    [
        (nested(63), nested(64), "Elements are nested deeper than 64."),
        (nested(63), nested(100_000), "Elements are nested deeper than 64."),
        (
            f'<testsuite><testcase name="n" {attributes(63)}/></testsuite>',
            f'<testsuite><testcase name="n" {attributes(64)}/></testsuite>',
            "An element has more than 64 attributes.",
        ),
        (
            f'<testsuite><testcase name="{"n" * 65_536}"/></testsuite>',
            f'<testsuite><testcase name="{"n" * 65_537}"/></testsuite>',
            "An attribute is longer than 64 KiB.",
        ),
        (
            f'<testsuite><testcase name="n"/><{"e" * 255}/></testsuite>',
            f'<testsuite><testcase name="n"/><{"e" * 256}/></testsuite>',
            "The name of an element is longer than 255 characters.",
        ),
        (
            f'<testsuite><testcase name="n"/><!--{"c" * 1_000_000}--></testsuite>',
            f'<testsuite><testcase name="n"/><!--{"c" * 9_000_000}--></testsuite>',
            "A piece of markup is longer than 1 MiB.",
        ),
        (
            elements(9_000),
            elements(90_000),
            "More than 10,000 different names of elements and attributes.",
        ),
    ],
)
def test_a_bound_of_xml(within, beyond, message):
    accepted = read(within)
    assert (accepted.status, len(accepted.cases)) == (FileStatus.ACCEPTED, 1)
    report = read(beyond)
    assert (report.status, report.cases) == (FileStatus.REFUSED, ())
    assert report.fault
    assert report.fault.message == message


def test_json_of_many_values_is_refused_before_it_is_read():
    report = read('{"results":{"tests":[' + "{}," * 3_000_000 + "{}]}}")
    assert report.fault
    assert report.fault.message.startswith("A CTRF file may have 22 MiB")


def test_a_go_run_of_too_many_names_is_refused_while_it_is_read(monkeypatch):
    monkeypatch.setattr(go_json, "CASES_MAX", 2)
    names = "".join(f'{{"Action":"output","Package":"p","Test":"T{n}"}}\n' for n in range(3))
    assert read(names).status is FileStatus.REFUSED


def test_fifty_megabytes_of_output_are_not_kept():
    start = "<testsuite><testcase name='n'><failure>f</failure><system-out>"
    content = f"{start}{'noise ' * 8_500_000}end</system-out></testcase></testsuite>".encode()
    tracemalloc.start()
    report = read(content)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert report.cases[0].output.endswith("noise end")
    assert len(report.cases[0].output) == 4_000
    assert peak_bytes < 20 * 1024 * 1024


WHOLE = re.compile(r"<testcase\b[^>]*?(?:/>|>(?:(?!<testcase).)*?</testcase>)", re.DOTALL)
SAMPLES = {
    **{
        name: xml
        for name, (xml, _) in DIALECTS.items()
        if name in ("surefire with retries", "phpunit")
    },
    "mixed": (
        '<?xml version="1.0"?>\n<a:testsuites xmlns:a="u"><!-- c --><testsuite name="s&amp;ü">'
        '<testcase name="1"/><testcase name="2€"><failure><![CDATA[a ]] b]]></failure></testcase>'
        "<error/><testcase name='3'><system-out>\U0001f600&#x1b;[1m</system-out></testcase>"
        '<testcase name="4"/></testsuite></a:testsuites>\n'
    ),
}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
def test_a_cut_at_any_byte_keeps_every_whole_case_and_never_raises(name, codec):
    content = SAMPLES[name].encode(codec)
    everything = shown(read(content).cases).split("\n")
    for end in range(len(content)):
        report = read(content[:end])
        whole = len(WHOLE.findall(content[:end].decode(codec, "ignore")))
        tests = [line for line in shown(report.cases).split("\n") if line and "(suite)" not in line]
        assert len(tests) == whole, (end, content[:end])
        assert tests == [line for line in everything if "(suite)" not in line][:whole]
        if report.cases and report.fault:
            assert report.status is FileStatus.PARTIAL
            assert report.fault.line
            assert WarningCode.MALFORMED in [warned.code for warned in report.warnings]


def test_a_malformed_file_gives_its_whole_cases_with_place_and_cause():
    report = read('<testsuite>\n<testcase name="a"/>\n<testcase name="b"><\n</testsuite>')
    assert [case.name for case in report.cases] == ["a"]
    assert report.fault == Fault(
        "The XML is not well-formed: not well-formed (invalid token).", 3, 21
    )
    assert report.warnings[0].text == (
        "Whole tests read before the fault: 1. "
        "The XML is not well-formed: not well-formed (invalid token)."
    )


def test_a_malformed_file_without_a_whole_case_is_refused():
    report = read('<testsuite>\n<testcase name="a"')
    assert report.status is FileStatus.REFUSED
    assert report.fault == Fault("The XML is not well-formed: unclosed token.", 2, 1)


@given(st.binary(max_size=300), st.sampled_from([None, *Format]))
def test_no_bytes_raise(content, wanted):
    assert reports.read(content, wanted, ReadOptions()).status in FileStatus


ALPHABET = st.sampled_from(
    [
        *("<testsuite>", "</testsuite>", '<testcase name="a">', "</testcase>", "<failure>", "x"),
        *("</failure>", "<error/>", "<system-out>", "</system-out>", '<testcase name="b"/>'),
        *("<rerunFailure>", "</rerunFailure>", "<stackTrace>", "</stackTrace>", "<![CDATA[", "]]>"),
        *("<!--", "-->", "&#0;", "&amp;", "\x00", "<?xml version='1.0'?>", "<a:b>", "</a:b>"),
    ]
)


# No piece is shorter than the root element, which is looked for in the first.
@given(st.lists(ALPHABET, max_size=30), st.sampled_from([16, 17, 31, 64]))
def test_no_markup_raises_and_the_size_of_pieces_changes_nothing(parts, piece_bytes):
    content = ("<testsuites>" + "".join(parts)).encode()
    whole = read(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "PIECE_BYTES", piece_bytes)
        assert read(content) == whole


def test_pieces_are_as_long_as_what_is_searched_in_the_first():
    assert text.PIECE_BYTES >= 2 * text.HEAD_BYTES
    assert xml.MARKUP_BYTES_MAX >= text.PIECE_BYTES


def test_a_text_without_any_element_is_no_xml():
    with pytest.raises(xml.Stopped) as stopped:
        xml.read_xml(text.text_of(b"plain"), JUnitElements(Reading(Format.JUNIT, ReadOptions())))
    assert stopped.value.fault == Fault("Not a known report format.")


MIB = 1024 * 1024
DENSE = {
    "empty elements": ("<testsuite>", "<a/>", "</testsuite>", xml.TOO_DENSE),
    "nested": ("<testsuite>", "<a><b><c></c></b></a>", "</testsuite>", xml.TOO_DENSE),
    "text between": ("<a><testcase name='a'><failure>", "a<b/>", "", xml.TOO_DENSE),
    "retries": ("<a><testcase name='a'>", "<rerunFailure  />", "", reading.TOO_MANY_FAILURES),
    "build output": ('{"Action":"pass","Test":"T"}\n', "x\n", "", go_json.TOO_MANY_LINES),
    "empty lines": ('{"Action":"pass","Test":"T"}\n', "\n", "", go_json.TOO_MANY_LINES),
}


@pytest.mark.parametrize("name", DENSE)
def test_what_is_denser_than_any_report_is_refused_early(name):
    start, unit, end, message = DENSE[name]
    report = read(start + unit * (9 * MIB // len(unit)) + end)
    assert (report.status, report.cases) == (FileStatus.REFUSED, ())
    assert report.fault
    assert report.fault.message == message


def test_the_shortest_cases_of_a_large_report_are_not_too_dense():
    case = '<testcase name="1"><skipped/></testcase>'
    assert len(read(f"<testsuite>{case * 110_000}</testsuite>").cases) == 110_000
