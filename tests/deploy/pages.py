"""The blocks of code of a page."""

import re
import textwrap

BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)


def blocks(page: str) -> list[tuple[str, str]]:
    """The kind and the text of each block, also of those in lists."""
    return [(kind, textwrap.dedent(text)) for _, kind, text in BLOCK.findall(page)]
