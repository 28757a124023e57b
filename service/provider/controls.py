"""Boxes in the status comment and buttons on the check run: their keys and their commands.

See docs/design/comments.md 7.
"""

import re
from enum import StrEnum

from service.provider.signals import Ask, AskCancel, AskRetry, AskSubmit

SOONER = 10
"""The priority `high`, which needs no more access than a submission."""


class Control(StrEnum):
    """The actions that a person can take with a box or a button."""

    CANCEL = "cancel"
    RETRY = "retry"
    REQUEUE = "requeue"
    SOONER = "sooner"


_BOX = re.compile(
    r"^- \[(?P<mark>[ xX])\] [^\n]*<!-- headgate:box=(?P<key>[a-z]{1,20}) -->[ \t]*\r?$",
    re.MULTILINE,
)


def box(control: Control, label: str) -> str:
    """Return the line of an empty box."""
    return f"- [ ] {label} <!-- headgate:box={control.value} -->"


def ticked(before: str, after: str) -> Control | None:
    """Return the one box that an edit ticked; None for no box, several, or an unknown one."""
    new = _ticks(after) - _ticks(before)
    return named(new.pop()) if len(new) == 1 else None


def named(key: str) -> Control | None:
    """Return the control of a key; None for an unknown one."""
    return Control(key) if key in set(Control) else None


def ask_of(control: Control, head: str | None = None) -> Ask:
    """Return the command of a control; `head`: the commit that it was shown on, if known."""
    match control:
        case Control.CANCEL:
            return AskCancel()
        case Control.RETRY:
            return AskRetry()
        case Control.REQUEUE:
            return AskSubmit(sha=head)
        case Control.SOONER:
            return AskSubmit(priority=SOONER, sha=head)


def _ticks(body: str) -> set[str]:
    return {found["key"] for found in _BOX.finditer(body) if found["mark"] != " "}
