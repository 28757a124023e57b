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
    """Yield an error for each permission that is missing or too low.

    A permission counts once the App asks for it and an owner has approved it:
    https://docs.github.com/en/apps/using-github-apps/approving-updated-permissions-for-a-github-app
    """
    for name, (level, without) in NEEDED.items():
        if _reaches(facts.granted.get(name), level):
            continue
        if _reaches(facts.asked.get(name), level):
            have = facts.granted.get(name) or "no access"
            yield error(
                ID,
                f"The App asks for `{name}: {level}`, but this installation grants {have}, because "
                f"its owner has not accepted the change: {without}.",
                f"An owner must accept the new permissions at {facts.installation_url}.",
            )
        else:
            have = facts.asked.get(name) or "no access"
            yield error(
                ID,
                f"The App's registration asks for {have} to `{name}` and needs {level}: {without}.",
                f"{_set(facts, name, level)} {_accept(facts)}",
            )
    yield from _workflows(facts)


def _workflows(facts: AppFacts) -> Iterator[Finding]:
    """Yield a note if the optional permission for workflow files is missing."""
    if "workflows" in facts.granted:
        return
    words = "a pull request that changes `.github/workflows` is set aside."
    if facts.asked.get("workflows") == "write":
        yield note(
            ID,
            "The App asks for `workflows: write`, but this installation's owner has not accepted "
            f"it, so {words}",
            f"An owner can accept the new permission at {facts.installation_url}.",
        )
        return
    yield note(
        ID,
        f"The App may not write workflow files, so {words}",
        f"Only if you want to land such pull requests: {_set(facts, 'workflows', 'write')} "
        f"{_accept(facts)}",
    )


def _set(facts: AppFacts, name: str, level: str) -> str:
    shown = f"{name.replace('_', ' ').capitalize()}: {level}"
    return f"Open {facts.settings_url}, then “Permissions & events”, set `{shown}`, and save."


def _accept(facts: AppFacts) -> str:
    return f"Then an owner accepts it at {facts.installation_url}."


def _reaches(have: str | None, level: str) -> bool:
    return LEVELS.index(have if have in LEVELS else "") >= LEVELS.index(level)
