"""The pages of docs/design: short, numbered, complete; and what cites them."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from service.mergequeue.engine.config import QueueConfig
from service.settings import definitions
from service.testhealth.reports.results import Format
from service.testhealth.settings import TestSettings
from tests.tidy import tree

DESIGN = tree.ROOT / "docs/design"
OVERVIEW = DESIGN / "README.md"
PAGES = sorted(DESIGN.glob("*.md"))
RULES = [page for page in PAGES if page != OVERVIEW]
PAGE_LINES_MAX = 300

HEADING = re.compile(r"^(#{2,3}) (\d+(?:\.\d+)?)\.? (\S.*)$", re.MULTILINE)
ANY_HEADING = re.compile(r"^#{2,} .*$", re.MULTILINE)
# A page, and the sections that follow it: `docs/design/engine.md 3.2 and 4`.
CITED = re.compile(r"docs/design/([\w-]+\.md)((?:,? (?:and |to )?\d+(?:\.\d+)*)*)")
LINKED = re.compile(r"\[[^\]]*?(\d+(?:\.\d+)*)\]\(([\w-]+\.md)\)")
OTHER_PAGE = re.compile(r"\bdocs/(?:reference|how-to|explanation)/[\w-]+\.md\b")
NUMBER = re.compile(r"\d+(?:\.\d+)*")

CITING = ("bot", "service", "tests", "docs/contributing.md")
"""What cites pages: folders and files below the root."""


def sections_of(text: str) -> list[str]:
    """The numbers of a page's sections, in order."""
    return [number for _, number, _ in HEADING.findall(text)]


SECTIONS = {page.name: set(sections_of(page.read_text("utf-8"))) for page in PAGES}


def missing_from(texts: Iterable[tuple[str, str]]) -> list[str]:
    """Citations of a page or of a section that does not exist, as `path: page section`."""
    missing = []
    for path, text in texts:
        # A citation may go on in the next line of a docstring, a comment or a paragraph.
        joined = re.sub(r"\s*\n\s*(?:# )?", " ", text)
        for name, numbers in CITED.findall(joined):
            known = SECTIONS.get(name)
            if known is None:
                missing.append(f"{path}: {name}")
                continue
            missing += [f"{path}: {name} {n}" for n in NUMBER.findall(numbers) if n not in known]
        others = OTHER_PAGE.findall(text)
        missing += [f"{path}: {page}" for page in others if not (tree.ROOT / page).is_file()]
    return missing


def citing() -> list[tuple[str, str]]:
    """Every file that may cite a page, but for this one."""
    own = Path(__file__).relative_to(tree.ROOT).as_posix()
    return [
        (path, text) for path, text in tree.texts() if tree.is_in(path, *CITING) and path != own
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_short(page):
    assert len(page.read_text("utf-8").splitlines()) <= PAGE_LINES_MAX


@pytest.mark.parametrize("page", RULES, ids=lambda page: page.name)
def test_the_sections_of_a_page_are_numbered_in_order(page):
    text = page.read_text("utf-8")
    numbers = sections_of(text)
    assert len(numbers) == len(ANY_HEADING.findall(text))
    whole = [int(number) for number in numbers if "." not in number]
    assert whole == list(range(1, len(whole) + 1))
    for number in numbers:
        above, _, last = number.rpartition(".")
        if above:
            before = numbers[numbers.index(number) - 1]
            assert before == (above if last == "1" else f"{above}.{int(last) - 1}"), number


@pytest.mark.parametrize("page", RULES, ids=lambda page: page.name)
def test_the_overview_links_every_page(page):
    assert f"]({page.name})" in OVERVIEW.read_text("utf-8")


def test_the_overview_shows_every_package():
    words = set(re.findall(r"\w+", OVERVIEW.read_text("utf-8").split("## 2. Entry points")[0]))
    packages = {path.parent.name for path in (tree.ROOT / "service").glob("*/__init__.py")}
    assert packages <= words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_section_that_a_page_links_to_exists(page):
    links = LINKED.findall(page.read_text("utf-8"))
    assert not [(name, number) for number, name in links if number not in SECTIONS[name]]


def test_every_page_and_section_that_is_cited_exists():
    assert missing_from(citing()) == []


def test_a_citation_that_leads_nowhere_is_found():
    text = '"""Land (docs/design/landing.md 3,\n    99; docs/design/gone.md 1)."""\n'
    text += "# docs/reference/none.md"
    found = ["x.py: landing.md 99", "x.py: gone.md", "x.py: docs/reference/none.md"]
    assert missing_from([("x.py", text)]) == found


def camel_of(name: str) -> str:
    """A field's name in the API of queues."""
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


@pytest.mark.parametrize(
    ("settings", "named"),
    [(QueueConfig, camel_of), (TestSettings, str)],
    ids=["queue", "tests"],
)
def test_the_rule_of_every_setting_is_in_the_design(
    settings: type[QueueConfig | TestSettings], named: Callable[[str], str]
) -> None:
    """By its name in code style; one that has no effect has no rule."""
    pages = "\n".join(page.read_text("utf-8") for page in RULES)
    described = definitions(settings).items()
    rules = [name for name, each in described if not each.meaning.startswith("no effect")]
    assert [name for name in rules if not re.search(rf"`{named(name)}\b", pages)] == []


FORMAT_NAMES = {
    Format.JUNIT: "JUnit",
    Format.GO_JSON: "Go",
    Format.CTRF: "CTRF",
    Format.TRX: "TRX",
    Format.NUNIT: "NUnit",
    Format.XUNIT: "xUnit.net",
}


def test_every_report_format_is_in_the_design_with_its_bounds() -> None:
    """In the sentence of reports.md 6, and in one row of the parsers of security.md 8."""
    assert set(FORMAT_NAMES) == set(Format)
    reports = (DESIGN / "reports.md").read_text("utf-8")
    _, _, others = reports.partition("## 6. Other formats\n")
    sentence, _, _ = others.partition(" are recognized by content")
    rest = {name for form, name in FORMAT_NAMES.items() if form is not Format.JUNIT}
    assert [name for name in sorted(rest) if name not in sentence] == []
    parsers = (DESIGN / "security.md").read_text("utf-8")
    rows = re.findall(r"^\| test reports: ([^|]+) \|", parsers, re.MULTILINE)
    assert sorted(", ".join(rows).split(", ")) == sorted(FORMAT_NAMES.values())
