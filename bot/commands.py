"""Parse the command in a comment: Markdown in, one command or none out.

Only text is read here; `service/mergequeue/operations/comments.py` checks rights and answers.

See docs/design/comments.md 1, 2.
"""

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from markdown_it import MarkdownIt
from markdown_it.token import Token

from bot import foreign_commands, quotations
from bot.quotations import Line
from service.provider.signals import (
    Ask,
    AskCancel,
    AskDrain,
    AskForeign,
    AskHelp,
    AskPause,
    AskResume,
    AskRetry,
    AskStatus,
    AskSubmit,
    AskUnclear,
    Unclear,
)

PREFIX = "/merge"
BODY_CHARS_MAX = 65_536  # GitHub's own limit of a comment
LINE_CHARS_MAX = 300
REASON_CHARS_MAX = 200
UNDOES_MAX = 20
COMMIT_CHARS_MIN = 10
SUGGESTION_CUTOFF = 0.6  # docs/design/comments.md 4

PLAIN: dict[str, type[AskCancel | AskRetry | AskStatus | AskResume | AskHelp]] = {
    "cancel": AskCancel,
    "stop": AskCancel,
    "remove": AskCancel,
    "off": AskCancel,
    "retry": AskRetry,
    "restart": AskRetry,
    "status": AskStatus,
    "why": AskStatus,
    "explain": AskStatus,
    "resume": AskResume,
    "help": AskHelp,
}
WITH_REASON: dict[str, type[AskPause | AskDrain]] = {"pause": AskPause, "drain": AskDrain}
WORDS = (*PLAIN, *WITH_REASON)
OF_WHOLE_QUEUE = ("pause", "drain", "resume")

PRIORITIES = {"urgent": 0, "high": 10, "medium": 100, "low": 200, "lowest": 255}
PRIORITY_MAX = 255
HEX = re.compile(r"[0-9a-fA-F]{7,40}")
LANDING = re.compile(r"#?[1-9][0-9]{0,8}|[0-9a-fA-F]{10,40}")
# What stands behind each option in a suggestion when nobody gave a value.
OPTIONS = {
    "--priority": "high",
    "--no-batch": "",
    "--batch": "",
    "--sha": "a1b2c3d",
    "--undoes": "#7",
    "--again": "",
}
FLAGS: Mapping[str, Callable[[AskSubmit], AskSubmit]] = {
    "--no-batch": lambda ask: replace(ask, no_batch=True),
    "--batch": lambda ask: replace(ask, no_batch=False),
    "--again": lambda ask: replace(ask, again=True),
}
SHORT = {"-p": "--priority"}
HELP = ("--help", "-h")

# Control, zero-width and bidirectional characters, surrogates, line and paragraph separators,
# and what the Markdown parser makes of NUL: such a line may show other words than it holds.
HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
REPLACEMENT = "\ufffd"

# A command inside of one of these is quoted, struck out or not seen at once.
QUOTING_ELEMENTS = frozenset(
    {"blockquote", "code", "del", "details", "kbd", "pre", "q", "s", "samp", "strike", "table"}
)
FOOTNOTE = "[^"
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*)(?=[\s/>])")
_HTML_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)

# Tables are not CommonMark, but GitHub renders them; without text_join an escaped character
# stays apart from plain text, so that `\/merge` is none.
_MARKDOWN = MarkdownIt("commonmark").enable("table").disable("text_join")


def parse(body: str, prefix: str = PREFIX) -> Ask | None:
    """Return the command of a comment; None if it has no command line (docs/design/comments.md 1).

    A line that cannot be run, and several of them, are `AskUnclear`. Without one of ours, the first
    command of another queue counts, or the first that cancels. Never raises.
    """
    is_ours, is_foreign = prefix.lower() in body.lower(), foreign_commands.may_have(body)
    if len(body) > BODY_CHARS_MAX or not (is_ours or is_foreign):
        return None
    own = quotations.own_lines(tuple(_lines_outside_quotes(body)))
    lines = [line for line in own if _is_command(line, prefix)]
    if not lines:
        found = [each for each in map(_foreign, own) if each is not None]
        cancels = (each for each in found if isinstance(each.meant, AskCancel))
        return next(cancels, found[0] if found else None)
    if len(lines) > 1:
        return AskUnclear(Unclear.SEVERAL, given="", count=len(lines))
    if len(lines[0]) > LINE_CHARS_MAX:
        return AskUnclear(Unclear.TOO_LONG, given="")
    return _wish(lines[0][len(prefix) :].strip(" "))


def _foreign(line: str) -> AskForeign | None:
    """Return the command of another queue in a line that shows what it holds."""
    is_plain = len(line) <= LINE_CHARS_MAX and not any(map(_is_hidden, line))
    return foreign_commands.read(line) if is_plain else None


def _lines_outside_quotes(body: str) -> Iterator[Line]:
    """Yield the lines outside of quotations, hidden parts and HTML.

    CommonMark ends a block of HTML at an empty line; GitHub shows what follows inside the elements
    that are still open.
    """
    quotes = 0
    before = ""
    last: Line | None = None
    elements: Counter[str] = Counter()
    for token in _MARKDOWN.parse(body):
        if token.type == "blockquote_open":
            if last is not None and not quotes:
                yield replace(last, before_quote=True)
                last = None
            quotes += 1
        elif token.type == "blockquote_close":
            quotes -= 1
        elif token.type == "html_block" and not quotes:
            _note_elements(elements, token.content)
        elif token.type == "inline" and not quotes:
            is_paragraph = before == "paragraph_open" and not token.content.startswith(FOOTNOTE)
            for line in _lines_of(token.children or [], elements):
                if last is not None:
                    yield last
                last = replace(line, is_plain=line.is_plain and is_paragraph)
        before = token.type
    if last is not None:
        yield last


def _lines_of(children: Sequence[Token], elements: Counter[str]) -> Iterator[Line]:
    line: list[Token] = []
    is_outside = not elements.total()
    for token in [*children, Token("softbreak", "br", 0)]:
        if token.type not in ("softbreak", "hardbreak"):
            line.append(token)
            if token.type == "html_inline":
                _note_elements(elements, token.content)
            continue
        is_plain = bool(line) and line[0].type == "text" and is_outside
        yield Line("".join(_text_of(each) for each in line).rstrip(" "), is_plain)
        line, is_outside = [], not elements.total()


def _note_elements(elements: Counter[str], html: str) -> None:
    """Count the elements that are open after this HTML, of those that quote or hide text."""
    for slash, given in _TAG.findall(_HTML_COMMENT.sub("", html)):
        name = given.lower()
        if name in QUOTING_ELEMENTS:
            elements[name] = max(0, elements[name] + (-1 if slash else 1))


def _text_of(token: Token) -> str:
    if token.type == "code_inline":
        return f"{token.markup}{token.content}{token.markup}"
    if token.type in ("text", "text_special", "html_inline"):
        return token.content
    if token.type == "image":
        return token.content
    return "" if token.type.startswith("link_") else token.markup


def _is_command(line: str, prefix: str) -> bool:
    head, rest = line[: len(prefix)], line[len(prefix) :]
    if not head.isascii() or head.lower() != prefix.lower():
        return False
    if rest and not rest.startswith(" "):
        return False
    return not any(_is_hidden(char) for char in line)


def _is_hidden(char: str) -> bool:
    return char == REPLACEMENT or unicodedata.category(char) in HIDDEN_CATEGORIES


def _wish(text: str) -> Ask:
    """Parse the words after the prefix."""
    first, _, rest = text.partition(" ")
    word, rest = _lower(first), rest.strip(" ")
    words = [_with_hyphens(each) for each in text.split()]
    # A reason may contain the word, but does not consist of it.
    if words and len(words) <= 2 and _lower(words[-1]) in HELP:
        return AskHelp()
    if not words or words[0].startswith("-"):
        return _submit(words)
    if word in WITH_REASON:
        return _with_reason(word, rest)
    if word not in PLAIN:
        return AskUnclear(Unclear.UNKNOWN_WORD, first, _near_command(word))
    if rest:
        return AskUnclear(Unclear.UNKNOWN_WORD, text, word)
    return PLAIN[word]()


def _with_hyphens(word: str) -> str:
    """Return an option with two hyphens, also if a phone has turned them into a dash."""
    return re.sub("^[\N{EN DASH}\N{EM DASH}]", "--", word)


def _with_reason(word: str, reason: str) -> Ask:
    if not reason:
        return AskUnclear(Unclear.NO_REASON, word)
    if len(reason) > REASON_CHARS_MAX:
        return AskUnclear(Unclear.TOO_LONG, word)
    return WITH_REASON[word](reason)


def _submit(words: list[str]) -> Ask:
    """Parse the options, in any order; the last of repeated ones counts, and all of `--undoes`."""
    asked = AskSubmit()
    left = list(words)
    while left:
        given = left.pop(0)
        if not given.startswith("-"):
            return AskUnclear(Unclear.UNKNOWN_WORD, given, _near_command(_lower(given)))
        name, equals, value = given.partition("=")
        option = SHORT.get(_lower(name), _lower(name))
        if option in FLAGS and equals:
            return AskUnclear(Unclear.UNKNOWN_OPTION, given, option)
        if option not in OPTIONS:
            return _unknown_option(name, value or _next_value(left))
        if option in FLAGS:
            asked = FLAGS[option](asked)
            continue
        if not equals:
            value = left.pop(0) if left else ""
        with_value = _with_value(asked, option, value)
        if isinstance(with_value, AskUnclear):
            return with_value
        asked = with_value
    return asked


def _with_value(asked: AskSubmit, option: str, value: str) -> AskSubmit | AskUnclear:
    """Return what is asked for with one more option that has a value."""
    if option == "--priority":
        priority = priority_of(value)
        if priority is None:
            return AskUnclear(Unclear.BAD_PRIORITY, value)
        return replace(asked, priority=priority)
    if option == "--undoes":
        if not LANDING.fullmatch(value):
            return AskUnclear(Unclear.BAD_LANDING, value)
        undoes = dict.fromkeys((*asked.undoes, _landing_of(value)))
        return replace(asked, undoes=tuple(undoes)[:UNDOES_MAX])
    if not HEX.fullmatch(value):
        return AskUnclear(Unclear.BAD_SHA, value)
    return replace(asked, sha=value.lower())


def _landing_of(word: str) -> str:
    """Return how a landing is named that a command names: `#7`, or the beginning of a commit."""
    number = word.removeprefix("#")
    is_number = number.isdecimal() and len(number) < COMMIT_CHARS_MIN
    return f"#{number}" if is_number else word.lower()


def priority_of(text: str) -> int | None:
    """Return the number of a named or numeric priority, None for anything else."""
    if re.fullmatch("[0-9]{1,3}", text):
        return int(text) if int(text) <= PRIORITY_MAX else None
    return PRIORITIES.get(_lower(text))


def _unknown_option(name: str, value: str) -> AskUnclear:
    word = _lower(name).lstrip("-")
    if word in WORDS:
        return AskUnclear(Unclear.UNKNOWN_WORD, name, word)
    # The hyphens are in every option, so they would make every word similar.
    near = _near(word, [each.removeprefix("--") for each in OPTIONS])
    near = f"--{near}" if near else ""
    if near and OPTIONS[near]:
        near = f"{near}={value or OPTIONS[near]}"
    return AskUnclear(Unclear.UNKNOWN_OPTION, name, near)


def _next_value(left: Sequence[str]) -> str:
    return left[0] if left and not left[0].startswith("-") else ""


def _near_command(word: str) -> str:
    """Return the command that was probably meant; empty if none is near.

    A command that changes the whole queue is only suggested for a typing error in one place.
    """
    known = [each for each in WORDS if each not in OF_WHOLE_QUEUE or _is_one_error_off(word, each)]
    return _near(word, known)


def _is_one_error_off(word: str, known: str) -> bool:
    """Return whether one letter is missing, added or another one, or two are swapped."""
    if len(word) != len(known):
        short, long = sorted((word, known), key=len)
        return short in (long[:place] + long[place + 1 :] for place in range(len(long)))
    wrong = [place for place, letter in enumerate(word) if letter != known[place]]
    if len(wrong) != 2:
        return len(wrong) < 2
    part = slice(wrong[0], wrong[1] + 1)
    return word[part] == known[part][::-1]


def _near(word: str, known: Sequence[str]) -> str:
    found = difflib.get_close_matches(word, known, n=1, cutoff=SUGGESTION_CUTOFF)
    return found[0] if found else ""


def _lower(word: str) -> str:
    """Lower ASCII letters alone: a letter that only looks like one must not become one."""
    return word.lower() if word.isascii() else word
