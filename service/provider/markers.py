"""The hidden first line by which what we have written at a provider is found again.

Only as the first: texts of ours quote strangers, and a stranger may write what a marker says.
"""


def is_marked(text: str, marker: str) -> bool:
    """Return whether the text is the one that the marker stands for."""
    return text.startswith(marker)


def marked(text: str, marker: str, characters_max: int) -> str:
    """The text behind its marker, cut."""
    whole = text if is_marked(text, marker) else f"{marker}\n{text}"
    return whole[:characters_max]
