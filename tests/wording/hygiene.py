"""What Markdown of ours would do at the provider that it must not (docs/design/comments.md 6).

The text is parsed as GitHub parses it; what stands in code spans and link addresses is inert.
"""

import functools
import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

TEXTS_MAX = 10_000
"""Texts whose faults are remembered: most texts of a story are those of the step before."""

_MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])

_TAG = re.compile(r"<(?!!--)/?\s*([a-zA-Z][a-zA-Z0-9-]*)")
_ALLOWED_TAGS = {"details", "summary", "sub"}
# Also GH-12, and bare addresses, which GitHub turns into links.
_LIVE = {
    "bare number": re.compile(r"#\d|\bgh-\d", re.IGNORECASE),
    "mention": re.compile(r"@[A-Za-z0-9]"),
    "bare address": re.compile(r"https?://|\bwww\.", re.IGNORECASE),
}


def faults(text: str, mentions: tuple[str, ...] = ()) -> list[str]:
    """Everything in the text that is not inert; `mentions` are those that are meant."""
    return [*_found(text, mentions)]


def links(text: str) -> list[str]:
    """Every address that the text links to."""
    return [str(token.attrs["href"]) for token in _tokens(text) if token.type == "link_open"]


def visible(text: str) -> str:
    """What a reader sees of it, code spans included."""
    return "".join(
        token.content for token in _tokens(text) if token.type in ("text", "code_inline")
    )


@functools.lru_cache(TEXTS_MAX)
def _found(text: str, mentions: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_faults(text, mentions))


def _faults(text: str, mentions: tuple[str, ...]) -> Iterator[str]:
    for token in _tokens(text):
        if token.type in ("image", "fence", "code_block", "blockquote_open", "hr"):
            yield token.type
        elif token.type in ("html_inline", "html_block"):
            yield from (f"tag {tag}" for tag in _TAG.findall(token.content) if _is_bad(tag))
        elif token.type == "text":
            words = token.content
            for name in mentions:
                words = words.replace(f"@{name}", "")
            inside_link = token.meta.get("in_link")
            for fault, pattern in _LIVE.items():
                if pattern.search(words) and not (fault == "bare number" and inside_link):
                    yield f"{fault}: {token.content}"


def _is_bad(tag: str) -> bool:
    return tag.lower() not in _ALLOWED_TAGS


def _tokens(text: str) -> Iterator[Token]:
    for block in _MARKDOWN.parse(text):
        if block.type != "inline":
            yield block
            continue
        in_link = False
        for token in block.children or []:
            in_link = token.type == "link_open" or (in_link and token.type != "link_close")
            token.meta["in_link"] = in_link
            yield token
