"""Make `github-2022.jsonl.xz` from deliveries and answers as another merge queue recorded them.

`python -m tests.recorded.make FOLDER`, where the folder has `deliveries.jsonl.gz` and
`answers.jsonl.gz`: see README.md beside this file. Addresses that no one reads are left out, which
makes the recording three times smaller in memory.
"""

import gzip
import json
import lzma
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bot.github import recording

MADE = Path(__file__).with_name("github-2022.jsonl.xz")
OWN_APP = ("214863", "queuebot-user09")


READ = {"html_url", "issue_url", "details_url", "target_url", "documentation_url"}


def is_address(name: str) -> bool:
    """Return whether a field has an address that is left out."""
    return (name.endswith("url") and name not in READ) or name in ("_links", "href")


def without_addresses(value: Any) -> Any:
    """Return a message without those addresses."""
    if isinstance(value, list):
        return [without_addresses(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: without_addresses(each) for name, each in value.items() if not is_address(name)}


def read(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield calls and deliveries, case by case in their order, each case by a number."""
    entries: list[dict[str, Any]] = []
    for name in ("deliveries", "answers"):
        with gzip.open(folder / f"{name}.jsonl.gz", "rt") as lines:
            entries += map(json.loads, lines)
    cases = {case: place for place, case in enumerate(sorted({each["case"] for each in entries}))}
    entries.sort(key=lambda each: (cases[each["case"]], each["order"]))
    for entry in entries:
        whole = {"case": f"case-{cases[entry['case']] + 1}"}
        for name in ("payload", "answer"):
            if name in entry:
                whole[name] = without_addresses(entry[name])
        yield {**entry, **whole}


def main() -> None:
    """Write the file; the same source gives the same bytes."""
    write(MADE, read(Path(sys.argv[1])), OWN_APP)


def write(path: Path, entries: Iterable[dict[str, Any]], app: tuple[str, str]) -> None:
    """Write a recording without names."""
    lines = recording.anonymized(entries, "github.com", app)
    path.write_bytes(lzma.compress("".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main()
