"""GitHub's refusals as a corpus (refusals.toml): entries by the call that answers them.

To add one: copy the sentence exactly, with `{placeholders}`, and give call, status, cause, a
source and the date; then say in test_corpus.py what the adapter makes of it. A test fails until
that is said.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).parent / "refusals.toml"
FILLED = {"name": "unit", "n": "1", "m": "2", "k": "1", "l": "1", "path": ".github/workflows/x.yml"}
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Entry:
    """One refusal; `text` with its placeholders filled."""

    id: str
    call: str
    status: int
    text: str
    concerns: str


def entries() -> tuple[Entry, ...]:
    """Every refusal of the corpus."""
    listed = tomllib.loads(CORPUS.read_text("utf-8"))["refusal"]
    return tuple(
        Entry(one["id"], one["call"], one["status"], _filled(one["text"]), one["concerns"])
        for one in listed
    )


def _filled(text: str) -> str:
    def fill(found: re.Match[str]) -> str:
        name = found[1].partition("|")[0]
        return FILLED.get(name, name)

    return _PLACEHOLDER.sub(fill, text)
