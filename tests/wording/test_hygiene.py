"""The rule by which texts are judged catches what it has to, and every golden text keeps it."""

from pathlib import Path

import pytest

from tests.wording import hygiene

GOLDEN = Path(__file__).parent / "golden"

MEANT = ("alice", "bob", "mallory")


@pytest.mark.parametrize(
    "text",
    [
        "fixes #478",
        "see GH-12",
        "thanks @octo",
        "![x](https://github.com/x.png)",
        "<img src=x>",
        "a <b>bold</b> word",
        "https://evil.example/",
        "www.evil.example",
        "> quoted",
        "    indented",
    ],
)
def test_what_must_not_be_written_is_found(text):
    assert hygiene.faults(text)


@pytest.mark.parametrize(
    "text",
    [
        "`#478` and `@octo`",
        "[#478](https://queue.example.org/octo/widgets/main/pull/478)",
        "<!-- headgate:status v=1 queue=main -->",
        "<details><summary>History</summary>\n\n- a\n</details>",
        "<sub>Headgate 0.1.0</sub>",
    ],
)
def test_what_is_inert_passes(text):
    assert hygiene.faults(text) == []


def test_every_golden_text_is_clean():
    # The first line of a check run's text is its title, which is no Markdown.
    found = {
        golden.name: faults
        for golden in sorted(GOLDEN.glob("*.txt"))
        if (faults := hygiene.faults(_markdown_of(golden), mentions=MEANT))
    }
    assert found == {}
    assert len(list(GOLDEN.glob("*.txt"))) > 50


def _markdown_of(golden: Path) -> str:
    lines = [line.removeprefix("    ") for line in golden.read_text("utf-8").splitlines()]
    return "\n".join(lines[1:] if golden.name.startswith("check-") else lines)
