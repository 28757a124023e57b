"""Permissions that the installation lacks, and what does not work without each."""

from collections.abc import Iterator, Mapping

from bot.github.audits.facts import AppFacts
from service.provider.audits import Finding, error, note

ID = "app-permissions"
FINE = "The App has every permission it needs."

LEVELS = ("", "read", "write", "admin")
# GitHub's "Permissions required for GitHub Apps" by the calls that we make (app.yml).
NEEDED: Mapping[str, tuple[str, str]] = {
    "metadata": ("read", "GitHub answers no call about the repository"),
    "contents": ("write", "no test branch can be made and no pull request can land"),
    "pull_requests": ("write", "no pull request can be read, commented on or tested as a draft"),
    "checks": ("write", "check runs cannot be read, and Headgate's own check cannot be shown"),
    "statuses": ("read", "required commit statuses are never seen"),
    "actions": ("read", "workflow runs and their test reports cannot be read"),
    "issues": ("read", "comments are not delivered, so `/merge` is answered late or never"),
    "administration": ("read", "branch protection cannot be read, so nothing starts or lands"),
}


def decide(facts: AppFacts) -> Iterator[Finding]:
    """Yield an error for each permission that is missing or too low."""
    for name, (level, without) in NEEDED.items():
        if _reaches(facts.granted.get(name), level):
            continue
        shown = f"`{name.replace('_', ' ').capitalize()}: {level}`"
        if not _reaches(facts.asked.get(name), level):
            first = f"Open {facts.settings_url}, then “Permissions & events”, and set {shown}. Then"
        else:
            first = "An owner must"
        have = facts.granted.get(name) or "no access"
        yield error(
            ID,
            f"The App has {have} for `{name}` and needs {level}: {without}.",
            f"{first} accept the new permissions at {facts.installation_url}.",
        )
    if "workflows" not in facts.granted:
        yield note(
            ID,
            "The App may not write workflow files, so a pull request that changes "
            "`.github/workflows` is set aside.",
            f"To land such pull requests, open {facts.settings_url}, then “Permissions & events”, "
            f"and set `Workflows: write`. Then accept it at {facts.installation_url}.",
        )


def _reaches(have: str | None, level: str) -> bool:
    return LEVELS.index(have if have in LEVELS else "") >= LEVELS.index(level)
