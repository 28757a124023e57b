"""Texts of others are inert wherever they stand."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text import markdown, phrases
from service.text.markdown import Links
from service.text.phrases import Code, Page, Phrase, Pull, phrase
from tests.wording import hygiene

LINKS = Links("https://github.com", "https://queue.example.org")
WITH_PAGES = Links(
    "https://github.com",
    "https://queue.example.org",
    "https://queue.example.org/octo/widgets/main",
)

TRICKS = (
    "`", "``", "```", "@alice", "#478", "GH-12", "octo/widgets#1", "<img src=x>", "<script>",
    "![x](https://evil.example/x.png)", "[x](javascript:alert(1))", "https://evil.example/",
    "|", "\\", "\n\n# heading\n", "\r", "\t", "\x00", "\x1b[31m", "\u200b", "\u200d", "\u202e",
    "\u2066", "\ufeff", "\u3164", "\U000e0041", "\ud800", "-->", "</details>", "**", "~~~", "$$",
    "{}", "&lt;", ":tada:", "é", "名", "🧪",
)  # fmt: skip

foreign = st.lists(st.sampled_from(TRICKS) | st.text(max_size=20), max_size=8).map("".join)


@given(foreign)
def test_a_code_span_holds_any_text(text):
    shown = markdown.code(text)
    assert hygiene.faults(f"before {shown} after") == []
    assert "\n" not in shown
    inside = markdown.cleaned(text) or "(empty)"
    assert hygiene.visible(f"before {shown} after") == f"before {inside} after"


@given(foreign, foreign)
def test_two_code_spans_do_not_run_into_each_other(first, second):
    text = markdown.markdown(phrase("{} and {}.", first, second), LINKS)
    both = [markdown.cleaned(each) or "(empty)" for each in (first, second)]
    assert hygiene.visible(text) == f"{both[0]} and {both[1]}."


@given(foreign)
def test_a_cell_keeps_its_text_and_its_row(text):
    table = markdown.table(("Check", "Result"), [(markdown.code(text), "passed")])
    rows = [line for line in table.splitlines() if line.endswith("| passed |")]
    assert len(rows) == 1
    assert hygiene.faults(table) == []
    shown = markdown.cleaned(text).replace("\\", "") or "(empty)"
    assert shown in hygiene.visible(table).replace("\\", "")


@given(foreign)
def test_cleaned_text_is_short_and_shows_all_it_holds(text):
    shown = markdown.cleaned(text)
    assert len(shown) <= markdown.FOREIGN_CHARACTERS_MAX
    assert shown == " ".join(shown.split())
    hidden = {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}
    assert not [each for each in shown if unicodedata.category(each) in hidden]


def test_a_long_text_is_cut_where_one_sees_it():
    assert markdown.cleaned("x" * 300) == "x" * 199 + "…"
    assert markdown.cleaned("x" * 200) == "x" * 200


def test_what_seems_empty_is_called_so():
    assert markdown.code("\u200b \u3164\u2800") == "(empty)"


def test_a_text_that_is_put_into_a_sentence_is_foreign_unless_it_says_otherwise():
    assert markdown.markdown(phrase("{} failed", "@all #1"), LINKS) == "`@all #1` failed"
    assert markdown.plain(phrase("{} failed", "a\u202eb")) == "ab failed"


@pytest.mark.parametrize(
    ("url", "linked"),
    [
        ("https://github.com/octo/widgets/runs/12?x=1#step:3", True),
        ("https://queue.example.org/octo/widgets/main", True),
        ("https://GitHub.com/octo/widgets/runs/12", True),
        ("http://github.com/octo/widgets/runs/12", False),
        ("https://github.com.evil.example/", False),
        ("https://evil.example/@github.com", False),
        ("https://github.com@evil.example/", False),
        ("https://user@github.com/octo", False),
        ("https://github.com:8443/octo", False),
        ("javascript:alert(1)", False),
        ("//github.com/octo", False),
        ("https://[::1", False),
        ("https://github.com:port/", False),
        ("https://github.com/octo/widgets/pull/12/checks", False),
        ("https://github.com/octo/widgets/%70ull/12", False),
        ("https://github.com/octo/widgets/issues/12", False),
        ("https://github.com/" + "x" * 1000, False),
        ("", False),
    ],
)
def test_only_pages_of_the_provider_and_ours_are_linked(url, linked):
    assert (markdown.linkable(url, LINKS) is not None) == linked


def test_on_the_own_machine_plain_http_is_linked():
    local = Links("http://127.0.0.1:8643", "http://github.localhost:8642")
    assert markdown.linkable("http://127.0.0.1:8643/octo/widgets/runs/1", local)
    assert markdown.linkable("http://github.localhost:8642/x", local)
    assert not markdown.linkable("http://127.0.0.1:9999/x", local)
    assert not markdown.linkable("http://10.0.0.1/x", Links("http://10.0.0.1"))


@given(foreign)
def test_an_address_cannot_break_out_of_its_link(text):
    url = f"https://github.com/octo/{text}"
    shown = markdown.page(Code("log"), url, LINKS)
    assert hygiene.faults(shown) == []
    assert hygiene.visible(shown) == "log"
    assert all(each.startswith("https://github.com/octo/") for each in hygiene.links(shown))


def test_a_log_elsewhere_is_shown_instead_of_linked():
    assert markdown.log("https://ci.example.org/7", LINKS) == " (log: `https://ci.example.org/7`)"
    assert markdown.log("https://github.com/o/r/runs/7", LINKS) == (
        " ([log](https://github.com/o/r/runs/7))"
    )
    assert markdown.log("", LINKS) == ""


def test_a_pull_request_is_never_a_bare_number():
    pull = Phrase((Pull(478),))
    assert markdown.markdown(pull, LINKS) == "`#478`"
    assert markdown.markdown(pull, WITH_PAGES) == (
        "[#478](https://queue.example.org/octo/widgets/main/pull/478)"
    )
    assert hygiene.faults(markdown.markdown(pull, WITH_PAGES)) == []
    assert markdown.plain(pull) == "#478"


@given(foreign)
def test_a_login_is_spoken_of_without_calling_anybody(text):
    shown = markdown.markdown(phrases.login(text), LINKS)
    assert hygiene.faults(f"queued by {shown}") == []


@given(foreign)
def test_a_mention_calls_one_account_or_nobody(text):
    shown = markdown.markdown(phrases.mention(text), LINKS)
    assert hygiene.faults(f"{shown} you need write access", mentions=(text,)) == []


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("alice", "alice"),
        ("alice_corp", "alice_corp"),
        ("GH-12", "`GH-12`"),
        ("dependabot[bot]", "`dependabot[bot]`"),
        ("octo/team", "`octo/team`"),
        ("_it_", "`_it_`"),
    ],
)
def test_only_what_can_be_a_login_stands_bare(name, shown):
    assert markdown.markdown(phrases.login(name), LINKS) == shown


def test_long_lists_are_counted():
    assert markdown.plain(phrases.names([])) == ""
    assert markdown.plain(phrases.names(["a", "b"])) == "a and b"
    assert markdown.plain(phrases.names(list("abcdefgh"))) == "a, b, c, d, e and 3 more"
    assert markdown.plain(phrases.pulls(range(1, 24))).endswith("#20 and 3 more")


def test_a_page_that_may_not_be_linked_is_its_name():
    page = Phrase((Page(Code("test"), "https://ci.example.org/7"),))
    assert markdown.markdown(page, LINKS) == "`test`"
    assert markdown.plain(page) == "test"


def test_words_that_end_in_line_breaks_lose_their_full_stop():
    assert phrases.quoted("Commits must be signed.\n\n").text == "Commits must be signed"
