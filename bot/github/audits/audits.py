"""Run all audits of GitHub's side: facts are read once, then each audit decides."""

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from bot.github.audits import (
    app_events,
    app_permissions,
    branch_names,
    bypass,
    clock_skew,
    closed_branch,
    content_budget,
    enforcement,
    facts,
    git_builds,
    installation,
    merge_method,
    other_queues,
    provider_queue,
    review_rules,
    rules_of_test_branches,
    signatures,
    status_sources,
    strict_checks,
    unseen_rules,
    webhook,
    workflow_concurrency,
    workflow_conditions,
    workflow_drafts,
    workflow_paths,
    workflow_triggers,
)
from bot.github.audits.facts import AppFacts, RepositoryFacts
from bot.github.client import RepositoryClient
from bot.github.gitbuild.builder import BuilderState, GitBuilder
from bot.github.protection import Protection
from service.provider.audits import AuditSubject, Finding, error, fine
from service.provider.errors import Gone, NotPermitted, ProviderError

Facts = TypeVar("Facts")
Facts_contra = TypeVar("Facts_contra", contravariant=True)


class Audit(Protocol[Facts_contra]):
    """A module with one audit."""

    ID: str
    FINE: str

    def decide(self, facts: Facts_contra, /) -> Iterator[Finding]:
        """Yield what is wrong."""
        ...


OF_APP: tuple[Audit[AppFacts], ...] = (
    installation,
    app_permissions,
    app_events,
    webhook,
    clock_skew,
    content_budget,
)
OF_REPOSITORY: tuple[Audit[RepositoryFacts], ...] = (
    provider_queue,
    closed_branch,
    strict_checks,
    status_sources,
    merge_method,
    signatures,
    review_rules,
    unseen_rules,
    bypass,
    enforcement,
    rules_of_test_branches,
    branch_names,
    other_queues,
    workflow_triggers,
    workflow_conditions,
    workflow_drafts,
    workflow_concurrency,
    workflow_paths,
)
OF_BUILDS: tuple[Audit[BuilderState], ...] = (git_builds,)
APP_KEY = "app-key"
READING = "repository-reading"
IDS = (
    *(APP_KEY, *(one.ID for one in OF_APP)),
    *(READING, *(one.ID for one in OF_REPOSITORY)),
    *(one.ID for one in OF_BUILDS),
)
"""Every audit, in the order of docs/reference/doctor.md."""


async def run(
    client: RepositoryClient, protected: Protection, builder: GitBuilder, subject: AuditSubject
) -> Sequence[Finding]:
    """Return the findings of all audits; what cannot be read ends them with a finding."""
    github = client.github
    try:
        app = await facts.read_app(github, subject, client.clock.now())
    except NotPermitted as refused:
        return [error(APP_KEY, refused.message, KEY_MEND)]
    except Gone as gone:
        works = fine(APP_KEY, KEY_WORKS)
        return [works, error(installation.ID, gone.message, _install(client))]
    found = [fine(APP_KEY, KEY_WORKS), *_decided(OF_APP, app)]
    if app.is_suspended:
        return found
    github.tokens.drop(subject.repo)  # the next token has the rights of now
    try:
        read = await facts.read_repository(client, protected, subject)
        builds = await builder.state(client)
    except ProviderError as failed:
        words = f"The repository cannot be read: {failed.message}"
        return [*found, error(READING, words, READING_MEND)]
    found.append(fine(READING, "The repository can be read."))
    return [*found, *_decided(OF_REPOSITORY, read), *_decided(OF_BUILDS, builds)]


KEY_WORKS = "GitHub accepts the App's key."
KEY_MEND = (
    "Make a new private key in the settings of the App, set HEADGATE_GITHUB_PRIVATE_KEY to it and "
    "restart the service. If the clock is off, synchronize it instead."
)
READING_MEND = "Fix what `app-permissions` names, then run `headgate doctor` again."


def _install(client: RepositoryClient) -> str:
    web = client.github.options.addresses.web
    slug = client.github.tokens.slug or "your App"
    return f"Install the App on the repository: {web}/apps/{slug}/installations/new."


def _decided(audits: Sequence[Audit[Facts]], read: Facts) -> list[Finding]:
    found: list[Finding] = []
    for audit in audits:
        found += list(audit.decide(read)) or [fine(audit.ID, audit.FINE)]
    return found
