"""Another merge queue or merge bot on the same branch."""

from collections.abc import Iterator, Mapping

from bot.github.audits.facts import RepositoryFacts
from service.provider.audits import Finding, warning

ID = "other-queues"
FINE = "No settings file of another merge queue was found."

# Where these tools read their settings, by their own documentation.
FILES: Mapping[str, str] = {
    ".mergify.yml": "Mergify",
    ".mergify/config.yml": "Mergify",
    ".github/mergify.yml": "Mergify",
    "bors.toml": "bors",
    ".github/bors.toml": "bors",
    ".kodiak.toml": "Kodiak",
    ".github/.kodiak.toml": "Kodiak",
    ".bulldozer.yml": "Bulldozer",
    ".github/bulldozer.yml": "Bulldozer",
}


def decide(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield a warning for each settings file of another tool."""
    for path in sorted(FILES.keys() & facts.paths):
        yield warning(
            ID,
            f"`{path}` configures {FILES[path]}. What it merges by itself moves "
            f"`{facts.subject.branch}` past this queue, and every run begins again.",
            f"Delete `{path}`, or take `{facts.subject.branch}` out of it.",
        )
