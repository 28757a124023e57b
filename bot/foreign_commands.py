"""Commands of other merge queues in comments: which queue they are of, and what they mean here.

Only whole lines with the forms that their own documentation has, and only those about a queue: a
bot of the same name may still do other work in the repository. Pure.
"""

import re
from collections.abc import Sequence

from service.provider.signals import (
    AskCancel,
    AskForeign,
    AskRetry,
    AskStatus,
    AskSubmit,
)

Meaning = AskSubmit | AskCancel | AskRetry | AskStatus | None
BORS, MERGIFY, TRUNK, KODIAK = "bors", "Mergify", "Trunk", "Kodiak"
SIGNS = ("bors", "@mergify", "/trunk", "@kodiakhq")
"""One of these is in every comment with such a command, in lower case."""

_BORS_WORD = (
    r"(?:r\+|(?:r|p|merge|try|delegate|d|rollup|treeclosed)=\S+|(?:delegate|d|rollup|try)\+|"
    r"(?:rollup|try|delegate)-|merge|try|rollup|squash|ping|single(?: (?:on|off))?|@\S+|\w+=\S+)"
)
"""A command of bors or an argument of one; any other word is prose."""

FORMS: Sequence[tuple[str, str, Meaning]] = (
    (r"@?bors:? (?:r\+|merge)", BORS, AskSubmit()),
    (r"@?bors:? (?:r|merge)=\S.*", BORS, AskSubmit()),
    (r"@?bors:? (?:r-|merge-|cancel)", BORS, AskCancel()),
    (r"@?bors:? retry", BORS, AskRetry()),
    (rf"@?bors:? {_BORS_WORD}(?: {_BORS_WORD})*", BORS, None),
    (r"@mergify(?:io)? (?:queue|requeue)(?: [\w-]+)?", MERGIFY, AskSubmit()),
    (r"@mergify(?:io)? (?:dequeue|unqueue)", MERGIFY, AskCancel()),
    (r"@mergify(?:io)? refresh", MERGIFY, AskStatus()),
    (r"/trunk merge", TRUNK, AskSubmit()),
    (r"/trunk merge .+", TRUNK, None),
    (r"/trunk cancel", TRUNK, AskCancel()),
    (r"@kodiakhq(?:\[bot\])? merge", KODIAK, AskSubmit()),
    (r"@kodiakhq(?:\[bot\])? help", KODIAK, None),
)
"""Form of a line, the queue, and the command of Headgate that does the same; None: none does."""

_FORMS = tuple((re.compile(form, re.IGNORECASE), queue, meant) for form, queue, meant in FORMS)


def may_have(body: str) -> bool:
    """Return whether a comment may have such a command; cheap."""
    lower = body.lower()
    return any(sign in lower for sign in SIGNS)


def read(line: str) -> AskForeign | None:
    """Return the command of a line, None if it is no other queue's."""
    for form, queue, meant in _FORMS:
        if form.fullmatch(line):
            return AskForeign(queue, line, meant)
    return None
