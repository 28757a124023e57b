"""The grammar of commands in comments (docs/design/comments.md 1, 2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import commands
from service.mergequeue.wording import refusals
from service.provider.signals import (
    AskCancel,
    AskDrain,
    AskHelp,
    AskPause,
    AskResume,
    AskRetry,
    AskStatus,
    AskSubmit,
    AskUnclear,
    Unclear,
)

SUBMIT = AskSubmit()

UNDERSTOOD = [
    ("/merge", SUBMIT),
    ("/merge   ", SUBMIT),
    ("/MERGE", SUBMIT),
    ("   /merge", SUBMIT),
    ("thanks!\n/merge\nbye", SUBMIT),
    ("thanks!\r\n/merge\r\nbye", SUBMIT),
    ("- /merge", SUBMIT),
    ("1. first\n2. /merge", SUBMIT),
    ("- one\n- two\n  /merge cancel", AskCancel()),
    ("/merge cancel", AskCancel()),
    ("/merge stop", AskCancel()),
    ("/merge remove", AskCancel()),
    ("/merge off", AskCancel()),
    ("/merge CanCel", AskCancel()),
    ("/merge    cancel", AskCancel()),
    ("/merge retry", AskRetry()),
    ("/merge restart", AskRetry()),
    ("/merge status", AskStatus()),
    ("/merge why", AskStatus()),
    ("/merge explain", AskStatus()),
    ("/merge help", AskHelp()),
    ("/merge --help", AskHelp()),
    ("/merge -h", AskHelp()),
    ("/merge cancel --help", AskHelp()),
    ("/merge pause --HELP", AskHelp()),
    ("/merge -p=high --help", AskHelp()),
    ("/merge pause read --help first", AskPause("read --help first")),
    ("/merge resume", AskResume()),
    ("/merge pause release freeze", AskPause("release freeze")),
    ("/merge Pause  Release Freeze!", AskPause("Release Freeze!")),
    ("/merge drain `main` is *red* ü", AskDrain("`main` is *red* ü")),
    ("/merge pause " + "x" * 200, AskPause("x" * 200)),
    ("/merge --again", AskSubmit(again=True)),
    ("/merge --Again --priority=high", AskSubmit(priority=10, again=True)),
    ("/merge --priority high", AskSubmit(priority=10)),
    ("/merge --priority=high", AskSubmit(priority=10)),
    ("/merge -p high", AskSubmit(priority=10)),
    ("/merge -p=high", AskSubmit(priority=10)),
    ("/merge -P HIGH", AskSubmit(priority=10)),
    ("/merge -p urgent", AskSubmit(priority=0)),
    ("/merge -p medium", AskSubmit(priority=100)),
    ("/merge -p low", AskSubmit(priority=200)),
    ("/merge -p lowest", AskSubmit(priority=255)),
    ("/merge -p 0", AskSubmit(priority=0)),
    ("/merge -p 255", AskSubmit(priority=255)),
    ("/merge -p 007", AskSubmit(priority=7)),
    ("/merge --no-batch", AskSubmit(no_batch=True)),
    ("/merge --batch", AskSubmit(no_batch=False)),
    ("/merge \N{EM DASH}no-batch", AskSubmit(no_batch=True)),
    ("/merge -p low \N{EN DASH}batch", AskSubmit(priority=200, no_batch=False)),
    ("/merge pause \N{EM DASH}release freeze", AskPause("\N{EM DASH}release freeze")),
    ("/merge --sha A1B2C3D", AskSubmit(sha="a1b2c3d")),
    ("/merge --sha=" + "a" * 40, AskSubmit(sha="a" * 40)),
    (
        "/merge --no-batch -p low --sha a1b2c3d",
        AskSubmit(priority=200, no_batch=True, sha="a1b2c3d"),
    ),
    ("/merge -p high -p low", AskSubmit(priority=200)),
]

UNCLEAR = [
    ("/merge cancle", AskUnclear(Unclear.UNKNOWN_WORD, "cancle", "cancel")),
    ("/merge qqqq", AskUnclear(Unclear.UNKNOWN_WORD, "qqqq")),
    ("/merge please", AskUnclear(Unclear.UNKNOWN_WORD, "please")),
    ("/merge -p high, please", AskUnclear(Unclear.BAD_PRIORITY, "high,")),
    ("/merge drian", AskUnclear(Unclear.UNKNOWN_WORD, "drian", "drain")),
    ("/merge again", AskUnclear(Unclear.UNKNOWN_WORD, "again")),
    ("/merge Pasue freeze", AskUnclear(Unclear.UNKNOWN_WORD, "Pasue", "pause")),
    ("/merge paus", AskUnclear(Unclear.UNKNOWN_WORD, "paus", "pause")),
    ("/merge resumee", AskUnclear(Unclear.UNKNOWN_WORD, "resumee", "resume")),
    ("/merge release", AskUnclear(Unclear.UNKNOWN_WORD, "release")),
    ("/merge cancel now", AskUnclear(Unclear.UNKNOWN_WORD, "cancel now", "cancel")),
    ("/merge resume now", AskUnclear(Unclear.UNKNOWN_WORD, "resume now", "resume")),
    ("/merge \N{KELVIN SIGN}ill", AskUnclear(Unclear.UNKNOWN_WORD, "\N{KELVIN SIGN}ill")),
    ("/merge -p high cancel", AskUnclear(Unclear.UNKNOWN_WORD, "cancel", "cancel")),
    ("/merge **cancel**", AskUnclear(Unclear.UNKNOWN_WORD, "**cancel**", "cancel")),
    ("/merge --prio high", AskUnclear(Unclear.UNKNOWN_OPTION, "--prio", "--priority=high")),
    ("/merge --prio=low", AskUnclear(Unclear.UNKNOWN_OPTION, "--prio", "--priority=low")),
    ("/merge --prio", AskUnclear(Unclear.UNKNOWN_OPTION, "--prio", "--priority=high")),
    ("/merge --nobatch", AskUnclear(Unclear.UNKNOWN_OPTION, "--nobatch", "--no-batch")),
    ("/merge --batch=1", AskUnclear(Unclear.UNKNOWN_OPTION, "--batch=1", "--batch")),
    ("/merge --no-batch=1", AskUnclear(Unclear.UNKNOWN_OPTION, "--no-batch=1", "--no-batch")),
    ("/merge --squash", AskUnclear(Unclear.UNKNOWN_OPTION, "--squash")),
    ("/merge --status", AskUnclear(Unclear.UNKNOWN_WORD, "--status", "status")),
    ("/merge --Cancel", AskUnclear(Unclear.UNKNOWN_WORD, "--Cancel", "cancel")),
    ("/merge --zzz", AskUnclear(Unclear.UNKNOWN_OPTION, "--zzz")),
    ("/merge -p asap", AskUnclear(Unclear.BAD_PRIORITY, "asap")),
    ("/merge -p", AskUnclear(Unclear.BAD_PRIORITY, "")),
    ("/merge -p 256", AskUnclear(Unclear.BAD_PRIORITY, "256")),
    ("/merge -p -1", AskUnclear(Unclear.BAD_PRIORITY, "-1")),
    ("/merge -p ٣", AskUnclear(Unclear.BAD_PRIORITY, "٣")),
    ("/merge --sha a1b2c3", AskUnclear(Unclear.BAD_SHA, "a1b2c3")),
    ("/merge --sha " + "a" * 41, AskUnclear(Unclear.BAD_SHA, "a" * 41)),
    ("/merge --undoes #7", AskSubmit(undoes=("#7",))),
    ("/merge --undoes 7 --undoes=#7 --undoes #12", AskSubmit(undoes=("#7", "#12"))),
    ("/merge --undoes 0123456789AB", AskSubmit(undoes=("0123456789ab",))),
    ("/merge --undoes", AskUnclear(Unclear.BAD_LANDING, "")),
    ("/merge --undoes #", AskUnclear(Unclear.BAD_LANDING, "#")),
    ("/merge --undoes #0", AskUnclear(Unclear.BAD_LANDING, "#0")),
    ("/merge --undoes a1b2c3d", AskUnclear(Unclear.BAD_LANDING, "a1b2c3d")),
    ("/merge --sha main", AskUnclear(Unclear.BAD_SHA, "main")),
    ("/merge pause", AskUnclear(Unclear.NO_REASON, "pause")),
    ("/merge drain  ", AskUnclear(Unclear.NO_REASON, "drain")),
    ("/merge pause " + "x" * 201, AskUnclear(Unclear.TOO_LONG, "pause")),
    ("/merge " + "x" * 294, AskUnclear(Unclear.TOO_LONG, "")),
    ("/merge\n/merge cancel", AskUnclear(Unclear.SEVERAL, "", count=2)),
    ("/merge\n\n- /merge\n- /merge nonsense", AskUnclear(Unclear.SEVERAL, "", count=3)),
]

NO_COMMAND = [
    "",
    "please merge",
    "see /merge",
    "/mergex",
    "/merge: now",
    "/merge\tcancel",
    "> /merge",
    "> quoted\n/merge",
    "- > /merge",
    "`/merge`",
    "```\n/merge\n```",
    "~~~\n/merge\n~~~",
    "    /merge",
    "`a\n/merge\nb`",
    "<!-- /merge -->",
    "<!--\n/merge\n-->",
    "x <!--\n/merge\n-->",
    "<div>\n/merge\n</div>",
    "# /merge",
    "/merge\n===",
    "| a | b |\n|---|---|\n| /merge | x |",
    "/merge | b\n---|---\nc | d",
    "**/merge**",
    "[/merge](https://example.org)",
    "\\/merge",
    "&#47;merge",
    "/merge\N{ZERO WIDTH SPACE}",
    "\N{ZERO WIDTH SPACE}/merge",
    "/mer\N{ZERO WIDTH JOINER}ge",
    "/merge \N{RIGHT-TO-LEFT OVERRIDE}lecnac",
    "/merge pause a\x07b",
    "/merge pause a\x00b",
    "/merge pause a\x85b",
    "/\uff4derge",
    "x" * 65_530 + "\n/merge",
]


@pytest.mark.parametrize(("body", "ask"), UNDERSTOOD)
def test_a_command_line_is_read(body, ask):
    assert commands.parse(body) == ask


@pytest.mark.parametrize(("body", "ask"), UNCLEAR)
def test_a_faulty_line_says_what_is_wrong_and_what_was_meant(body, ask):
    assert commands.parse(body) == ask


@pytest.mark.parametrize("word", refusals.MAY_FOLLOW)
def test_every_word_that_an_answer_names_is_known(word):
    ask = commands.parse(f"/merge {word}")
    unknown = (Unclear.UNKNOWN_WORD, Unclear.UNKNOWN_OPTION)
    assert not (isinstance(ask, AskUnclear) and ask.why in unknown)


@pytest.mark.parametrize("body", NO_COMMAND)
def test_what_does_not_look_like_a_command_is_none(body):
    assert commands.parse(body) is None


def test_the_longest_line_and_body_are_still_read():
    line = "/merge pause " + "x" * 200
    body = "y" * (commands.BODY_CHARS_MAX - len(line) - 2) + "\n\n" + line
    assert len(body) == commands.BODY_CHARS_MAX
    assert commands.parse(body) == AskPause("x" * 200)


def test_another_prefix_replaces_the_usual_one():
    assert commands.parse("/ship cancel", prefix="/ship") == AskCancel()
    assert commands.parse("/merge cancel", prefix="/ship") is None


PIECES = st.sampled_from(
    [
        *("/merge", " ", "\n", "\n\n", "> ", "- ", "`", "```\n", "    ", "<!--", "-->", "\\"),
        *("cancel", "pause", "-p", "--sha", "=", "high", "\x00", "\ufeff", "\ud800", "|", "---"),
        *("[", "](", "*", "&#47;", "\t", "\r"),
    ]
)


@given(st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join)))
def test_no_text_makes_the_parser_fail(body):
    commands.parse(body)


@given(st.lists(PIECES, max_size=20).map("".join))
def test_quoting_a_comment_never_commands(body):
    quoted = "\n".join("> " + line for line in body.splitlines())
    assert commands.parse(quoted) is None
