"""The title and the icon of a browser's tab: they show a state, with the glyph of the page."""

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from service.dashboard.marks import Mark

_GLYPHS = Path(__file__).with_name("templates") / "_glyphs.html"
_DRAWN: Mapping[str, str] = dict(
    re.findall(r'<symbol id="(\w+)" viewBox="0 0 16 16">(.*)</symbol>', _GLYPHS.read_text("utf-8"))
)
_COLORS: Mapping[str, str] = {
    "wait": "#7a8391",
    "test": "#3f83e0",
    "good": "#1f9a68",
    "bad": "#d9483b",
    "odd": "#b07a14",
    "done": "#8f63cc",
}
"""Colors that stand out from a light and from a dark bar of tabs."""

_SIGNS: Mapping[str, str] = {"merged": "✓ ", "failed": "✕ "}

_SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="none" color="{color}" '
    'stroke="{color}" stroke-width="2" stroke-linecap="round" stroke-linejoin="round">{drawn}</svg>'
)
_GATE = (
    '<path d="M3 2v12M13 2v12M3 5h10"/>'
    '<path d="M8 8v5.5M5.8 11.6 8 13.8l2.2-2.2" stroke="#8f63cc"/>'
)


def words(mark: Mark) -> str:
    """Return the state as a title begins with it: `✓ merged`."""
    return f"{_SIGNS.get(mark.glyph, '')}{mark.word[:1].lower()}{mark.word[1:]}"


def icon(mark: Mark) -> str:
    """Return the address of the icon, which contains it."""
    return _address(_DRAWN[mark.glyph], _COLORS[mark.color])


def _address(drawn: str, color: str) -> str:
    svg = _SVG.format(color=color, drawn=drawn.replace("var(--card)", "#fff"))
    return f"data:image/svg+xml,{quote(svg, safe=' /:=')}"


BRAND = _address(_GATE, _COLORS["wait"])
