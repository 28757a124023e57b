"""Title and body of landed commits from the queue's templates (docs/design/landing.md 9). Pure.

Text of a pull request can add neither a trailer nor a mention nor a marker that skips CI.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

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
_MENTION = re.compile(r"(?<!\w)@(?=\w|$)", flags=re.MULTILINE)


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
    texts = {
        "number": f"{pull.number}",
        "title": _line(pull.title),
        "author": _line(pull.author),
        "reviewers": _line(", ".join(pull.approved_by)),
        "head_branch": _line(pull.head_branch),
        "target": target,
        "run_id": run,
        "run_url": page or run,
        "body": "\n".join(_CONTROL.sub(" ", line) for line in pull.body.splitlines()).strip(),
        CO_AUTHORS: "\n".join(_co_authors(pull.author, authors)),
    }
    return {name: _MENTION.sub("@ ", text) for name, text in texts.items()}


def title(template: str, values: Mapping[str, str]) -> str:
    """Return the title of a commit: one line."""
    return _defused(template, _filled(template, values))[:TITLE_MAX].strip()


def body(template: str, values: Mapping[str, str]) -> str:
    """Return the body of a commit. A line that only a value makes a trailer is quoted by `> `."""
    lines = [line for part in template.split("\n") for line in _lines(part, values)]
    return _defused(template, "\n".join(lines))[:BODY_MAX].strip()


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
        name, email = (_line(_BRACKET.sub("", text)) for text in (one.name, one.email))
        yield f"Co-authored-by: {name or email} <{email.replace(' ', '')}>"


def _is_by(login: str, author: CommitAuthor) -> bool:
    """Return whether an account is the author; a bot is known by its name, `renovate[bot]`."""
    return author.login == login if author.login else author.name == f"{login}[bot]"


def _filled(part: str, values: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda found: values[found[1]], part)


def _quoted(line: str) -> str:
    return f"> {line}" if _TRAILER.match(line) else line


def _line(text: str) -> str:
    return " ".join(_CONTROL.sub(" ", text).split())


def _defused(template: str, text: str) -> str:
    """Defuse markers that skip CI, unless the template itself has one."""
    return text if naming.SKIP.search(template) else naming.without_skips(text)
