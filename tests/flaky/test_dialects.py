"""Every producer's way of writing JUnit XML gives the cases that it means."""

import xml.etree.ElementTree as ET

import pytest

from service.testhealth.reports import reports
from service.testhealth.reports.reading import ReadOptions
from service.testhealth.reports.results import CaseKind, FileStatus, Format, Outcome
from tests.flaky.dialects import DIALECTS, lines, shown


@pytest.mark.parametrize("name", DIALECTS)
def test_a_dialect_gives_its_cases(name):
    xml, expected = DIALECTS[name]
    report = reports.read(xml.encode(), None, ReadOptions())
    assert (report.status, report.format) == (FileStatus.ACCEPTED, Format.JUNIT)
    assert shown(report.cases) == lines(expected)


@pytest.mark.parametrize("name", DIALECTS)
def test_another_counter_finds_as_many(name):
    tree = ET.fromstring(DIALECTS[name][0])
    cases = list(tree.iter("testcase"))
    red = [case for case in cases if {"failure", "error"} & {child.tag for child in case}]
    report = reports.read(DIALECTS[name][0].encode(), None, ReadOptions())
    tests = [case for case in report.cases if case.kind is not CaseKind.SYNTHETIC]
    assert len(tests) == len(cases)
    assert sum(case.outcome is Outcome.FAILED for case in tests) == len(red)


@pytest.mark.parametrize("name", DIALECTS)
def test_prefixes_change_nothing(name):
    xml, expected = DIALECTS[name]
    tree = ET.fromstring(xml)
    for element in tree.iter():
        element.tag = f"{{urn:reports}}{element.tag}"
    prefixed = ET.tostring(tree, encoding="unicode")
    assert "<ns0:test" in prefixed
    report = reports.read(prefixed.encode(), None, ReadOptions())
    assert shown(report.cases) == lines(expected)


def test_there_are_more_than_twenty_dialects():
    assert len(DIALECTS) >= 20
