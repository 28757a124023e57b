"""Make `github-client.jsonl.xz` from answers that a client library for Java recorded.

`python -m tests.recorded.make_client REPOSITORY`, a git repository of hub4j/github-api: README.md
beside this file says what is taken. Each stub of its tests (WireMock) is one call.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from tests.recorded import make

MADE = Path(__file__).with_name("github-client.jsonl.xz")
FOLDER = "src/test/resources/org/kohsuke/github"
TAKEN = re.compile(
    r"/graphql|/repos/[^/]+/[^/]+/("
    r"check-runs|commits/\w+/check-runs|rules/|branches/\w+/protection"
    r"|actions/runs|pulls/\d+/(merge|update-branch)|merges).*"
)
REFUSED = re.compile(r"/repos/[^/]+/[^/]+(/(pulls|merges|collaborators|contents|actions|git)/?.*)?")


def main() -> None:
    """Write the file; the same source gives the same bytes."""
    make.write(MADE, calls(Path(sys.argv[1])), ("0", "no-app"))


def calls(repository: Path) -> Iterator[dict[str, Any]]:
    """Yield the calls that are taken, test by test in their order."""
    listed = git(repository, "ls-tree", "-r", "--name-only", "HEAD", FOLDER).splitlines()
    stubs = [PurePosixPath(each) for each in listed if "/mappings/" in each]
    tests = {test: place for place, test in enumerate(sorted({each.parent for each in stubs}))}
    for stub in sorted(stubs, key=lambda each: (each.parent, number_of(each))):
        call = call_of(repository, stub)
        if call is not None:
            case = {"case": f"case-{tests[stub.parent] + 1}", "order": number_of(stub)}
            yield {**case, **call}


def number_of(stub: PurePosixPath) -> int:
    """The place of a stub in its test."""
    found = re.search(r"^(\d+)-|-(\d+)$", stub.stem)
    return int(found[1] or found[2]) if found else 0


def call_of(repository: Path, stub: PurePosixPath) -> dict[str, Any] | None:
    """One call with its answer; None if it is not taken."""
    read = json.loads(git(repository, "show", f"HEAD:{stub}"))
    asked, given = read["request"], read["response"]
    url, status = str(asked.get("url", "")), int(given.get("status", 0))
    is_by_hand = "Date" not in given.get("headers", {})
    if is_by_hand or not (TAKEN.fullmatch(url) or (status >= 400 and REFUSED.fullmatch(url))):
        return None
    body = str(given.get("body", ""))
    if "bodyFileName" in given:
        body = git(repository, "show", f"HEAD:{stub.parents[1]}/__files/{given['bodyFileName']}")
    is_json = body.strip().startswith(("{", "["))
    return {
        "method": asked["method"],
        "url": url,
        "request": None,
        "status": status,
        "headers": {name.lower(): value for name, value in given.get("headers", {}).items()},
        "answer": make.without_addresses(json.loads(body)) if is_json else None,
    }


def git(repository: Path, *arguments: str) -> str:
    """What git prints."""
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
