"""Parts of the sentences that say what a report lacks."""

NAME_MAX = 200
NO_NAME = "(no job)"


def code(text: str) -> str:
    """Return a name of a stranger's, which no comment takes for anything but a name."""
    plain = " ".join(text.replace("`", "'").split())
    return f"`{plain[:NAME_MAX] or NO_NAME}`"


def counted(number: int, what: str) -> str:
    """Return `1 test`, `3 tests`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
