"""Title and body of landed commits from the queue's templates (docs/design/landing.md 9). Pure.

Text of a pull request can add neither a trailer nor a mention nor a marker that skips CI, and
cannot push what the template says after it out of the text.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from service.mergequeue.engine.config import CO_AUTHORS
from service.mergequeue.operations import naming
from service.provider.values import CommitAuthor, PullRequest
from service.settings import PLACEHOLDER

TITLE_MAX = 256
BODY_MAX = 65_536
"""In characters."""
CO_AUTHORS_MAX = 100
"""So that the trailers of the co-authors take at most a part of the body."""
_TRAILER = re.compile(r"[ \t]*[A-Za-z0-9-]+[ \t]*:")
_FOLDED = re.compile(r"[ \t]+\S")
_BRACKET = re.compile(r"[<>]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BIDIRECTIONAL = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_MENTION = re.compile(r"(?<!\w)@(?=\w|$)", flags=re.MULTILINE)
# Code is matched first, so that a comment in it stays. Each part matches up to the end of the
# text, if need be, and gives nothing back: one pass, whatever the text is.
_COMMENT_END = "-->"
_COMMENT = r"<!--(?:-?>|.*?(?:-->|\Z))"
_HIDDEN = re.compile(
    rf"(?P<code>^ {{0,3}}(?P<fence>`{{3,}}+|~{{3,}}+).*?(?:^ {{0,3}}(?P=fence)|\Z)"
    rf"|(?<!`)`++[^`\n]*+`++)|^[ \t]*+{_COMMENT}(?:[ \t]*+\n)*+|{_COMMENT}",
    flags=re.MULTILINE | re.DOTALL,
)


def values_of(
    pull: PullRequest,
    target: str,
    run: str,
    page: str | None,
    authors: Sequence[CommitAuthor] = (),
) -> Mapping[str, str]:
    """Return the text for each placeholder of `COMMIT_PLACEHOLDERS`.

    `page` is the address of the run's page; without one the run's id stands for it. `authors` are
    those of the pull request's commits.
    """
    text = "\n".join(pull.body.splitlines())
    texts = {
        "number": f"{pull.number}",
        "title": inert_line(pull.title),
        "author": inert_line(pull.author),
        "reviewers": inert_line(", ".join(pull.approved_by)),
        "head_branch": inert_line(pull.head_branch),
        "target": target,
        "run_id": run,
        "run_url": page or run,
        "body": _inert(without_comments(text)).strip(),
        CO_AUTHORS: "\n".join(_co_authors(pull.author, authors)),
    }
    return {name: _MENTION.sub("@ ", text) for name, text in texts.items()}


def title(template: str, values: Mapping[str, str]) -> str:
    """Return the title of a commit: one line. A value gives way, never what follows it."""
    return _fitted(_title, template, values, TITLE_MAX)


def body(template: str, values: Mapping[str, str]) -> str:
    """Return the body of a commit. A line that only a value makes a trailer is quoted by `> `."""
    return _fitted(_body, template, values, BODY_MAX)


def inert_line(text: str) -> str:
    """Return foreign text as one line without control characters, bidi marks and mentions."""
    return _MENTION.sub("@ ", " ".join(_inert(text).split()))


def without_comments(text: str) -> str:
    """Return Markdown without its HTML comments, which templates of pull requests are full of.

    What is not closed is shown by the provider, and stays.
    """
    before, end, after = text.rpartition(_COMMENT_END)
    shown = after.lstrip()
    hidden = before + end + after[: len(after) - len(shown)]
    return _HIDDEN.sub(lambda found: found["code"] or "", hidden) + shown


def _title(template: str, values: Mapping[str, str]) -> str:
    return _defused(template, _filled(template, values)).strip()


def _body(template: str, values: Mapping[str, str]) -> str:
    lines = [line for part in template.split("\n") for line in _lines(part, values)]
    return _defused(template, "\n".join(lines)).strip()


def _fitted(
    made: Callable[[str, Mapping[str, str]], str],
    template: str,
    values: Mapping[str, str],
    characters_max: int,
) -> str:
    """Return what the template makes, with its longest values cut until it fits."""
    text = made(template, values)
    times = Counter(PLACEHOLDER.findall(template))
    used = {name: values[name] for name in times}
    for name in sorted(used, key=lambda name: -len(used[name])):
        over = len(text) - characters_max
        if over <= 0:
            break
        used[name] = _cut(name, used[name], len(used[name]) - math.ceil(over / times[name]))
        text = made(template, used)
    return text[:characters_max].strip()


def _cut(name: str, text: str, characters_max: int) -> str:
    """Return the beginning of a value; of a list of trailers whole lines."""
    kept = text[: max(0, characters_max)]
    return kept.rpartition("\n")[0] if name == CO_AUTHORS else kept.rstrip()


def names_co_authors(template: str | None) -> bool:
    """Return whether a template has the placeholder of the co-authors."""
    return template is not None and CO_AUTHORS in PLACEHOLDER.findall(template)


def ends_in_trailers(message: str) -> bool:
    """Return whether the last paragraph consists of trailers; the title is never one."""
    _, has_body, last = message.rpartition("\n\n")
    lines = last.split("\n")
    is_block = all(_TRAILER.match(line) or _FOLDED.match(line) for line in lines)
    return bool(has_body) and is_block and _TRAILER.match(lines[0]) is not None


def _lines(part: str, values: Mapping[str, str]) -> list[str]:
    """Return the lines that one line of a template becomes."""
    first = PLACEHOLDER.search(part)
    if first is None:
        return [part]
    if first[1] == CO_AUTHORS:
        return values[CO_AUTHORS].splitlines()
    is_trailer = _TRAILER.match(part[: first.start()]) is not None
    return [
        line if is_trailer and place == 0 else _quoted(line)
        for place, line in enumerate(_filled(part, values).split("\n"))
    ]


def _co_authors(author: str, authors: Sequence[CommitAuthor]) -> Iterator[str]:
    """Yield a trailer for each author of commits but the author of the pull request."""
    others = (one for one in authors if not _is_by(author, one))
    for one in itertools.islice(others, CO_AUTHORS_MAX):
        name, email = (inert_line(_BRACKET.sub("", text)) for text in (one.name, one.email))
        yield f"Co-authored-by: {name or email} <{email.replace(' ', '')}>"


def _is_by(login: str, author: CommitAuthor) -> bool:
    """Return whether an account is the author; a bot is known by its name, `renovate[bot]`."""
    return author.login == login if author.login else author.name == f"{login}[bot]"


def _filled(part: str, values: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda found: values[found[1]], part)


def _quoted(line: str) -> str:
    return f"> {line}" if _TRAILER.match(line) else line


def _inert(text: str) -> str:
    return _CONTROL.sub(" ", _BIDIRECTIONAL.sub("", text))


def _defused(template: str, text: str) -> str:
    """Defuse markers that skip CI, unless the template itself has one."""
    return text if naming.SKIP.search(template) else naming.without_skips(text)
