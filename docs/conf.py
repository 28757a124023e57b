"""The documentation as a site: `make site`. The pages stay plain Markdown, as GitHub shows them.

The source is the root of the repository, so that links between the front page and docs/ work.
"""

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

project = "Headgate"
project_copyright = "the authors of Headgate"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["README.md", "SECURITY.md", "docs/**.md", "plugins/*/README.md"]
exclude_patterns = [".*", "bot", "service", "tests"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "Headgate"
html_copy_source = False
html_show_sphinx = False
smartquotes = False

# The front page has no list of pages, which the side bar is made of.
SIDE_BAR = """

```{{toctree}}
:hidden:
:glob:
:caption: {caption}

{pages}
```
"""
GROUPS = {
    "Documentation": "docs/README\ndocs/CHANGELOG\nSECURITY",
    "How to": "docs/how-to/*\nThe skill page for agents <docs/skill/SKILL>",
    "Reference": "docs/reference/*",
    "Plug-ins of test runners": "plugins/*/README",
    "Explanation": "docs/explanation/*",
    "Design": "docs/contributing\ndocs/design/README\ndocs/design/*",
}


def add_side_bar(_app: Sphinx, page: str, source: list[str]) -> None:
    """Append the side bar to the front page."""
    if page == root_doc:
        groups = (SIDE_BAR.format(caption=caption, pages=each) for caption, each in GROUPS.items())
        source[0] += "".join(groups)


def setup(app: Sphinx) -> None:
    """Register what the pages need beside Markdown; diagrams are shown as text."""
    app.connect("source-read", add_side_bar)
    app.add_lexer("mermaid", TextLexer)
