"""Comments as HTML: Markdown without raw HTML, with checkboxes that can be pressed.

The source is escaped text in, safe markup out; of HTML only a few bare tags are let through,
because status comments fold their history with them.
"""

import re
from html import escape

from markdown_it import MarkdownIt

BARE_TAGS = ("details", "summary", "sub", "sup", "kbd")
HTML_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
BOX_LINE = re.compile(r"^(\s*[-*] )\[([ xX])\] (.*)$", re.MULTILINE)
# Private-use characters mark the place of a box; the source may not bring its own.
MARK = re.compile("\ue000(\\d+)\ue001")
MARKS = re.compile("[\ue000\ue001]")

_markdown = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(
    ["table", "strikethrough"]
)


def rendered(body: str, form: str | None = None) -> str:
    """The HTML of a comment; with `form` its boxes are buttons of the form of that id."""
    boxes: list[tuple[bool, str]] = []

    def mark(line: re.Match[str]) -> str:
        label = HTML_COMMENT.sub("", line[3]).strip()
        boxes.append((line[2] != " ", label))
        return f"{line[1]}\ue000{len(boxes) - 1}\ue001{label}"

    source = BOX_LINE.sub(mark, MARKS.sub("", body))
    # A closing tag ends the list before it; here tags are text until the end.
    source = source.replace("\n</details>", "\n\n</details>")
    html = str(_markdown.render(HTML_COMMENT.sub("", source)))
    for tag in BARE_TAGS:
        html = html.replace(f"&lt;{tag}&gt;", f"<{tag}>").replace(f"&lt;/{tag}&gt;", f"</{tag}>")
    return MARK.sub(lambda found: _box(boxes[int(found[1])], form), html)


def _box(box: tuple[bool, str], form: str | None) -> str:
    is_ticked, label = box
    sign = "☑" if is_ticked else "☐"
    if form is None:
        return f"{sign} "
    text = escape(label)
    return (
        f'<button class="box" form="{escape(form)}" name="box" value="{text}" '
        f'aria-label="{text}">{sign}</button> '
    )
