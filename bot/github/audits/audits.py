"""Run all audits of GitHub's side: facts are read once, then each audit decides."""

from collections.abc import Sequence

from bot.github.audits import app, facts, rules
from bot.github.audits.facts import AppFacts, RepositoryFacts
from bot.github.client import RepositoryClient
from bot.github.gitbuild.builder import GitBuilder
from bot.github.protection import Protection
from service.provider.audits import Audit, AuditSubject, Finding, error, fine
from service.provider.errors import Gone, NotPermitted, ProviderError

OF_APP: tuple[Audit[AppFacts], ...] = (
    app.installation,
    app.app_permissions,
    app.app_events,
    app.webhook,
    app.clock_skew,
    app.content_budget,
)
OF_REPOSITORY: tuple[Audit[RepositoryFacts], ...] = (
    rules.provider_queue,
    rules.closed_branch,
    rules.strict_checks,
    rules.status_sources,
    rules.merge_method,
    rules.signatures,
    rules.review_rules,
    rules.unseen_rules,
    rules.bypass,
    rules.enforcement,
    rules.rules_of_test_branches,
    rules.branch_names,
    rules.other_queues,
    rules.workflow_triggers,
    rules.workflow_conditions,
    rules.workflow_drafts,
    rules.workflow_concurrency,
    rules.workflow_paths,
)
APP_KEY = "app-key"
READING = "repository-reading"
IDS = (
    *(APP_KEY, *(one.id for one in OF_APP)),
    *(READING, *(one.id for one in OF_REPOSITORY)),
    app.git_builds.id,
)
"""Every audit, in the order of docs/reference/doctor.md."""


async def run(
    client: RepositoryClient, protected: Protection, builder: GitBuilder, subject: AuditSubject
) -> Sequence[Finding]:
    """Return the findings of all audits; what cannot be read ends them with a finding."""
    github = client.github
    try:
        of_app = await facts.read_app(github, subject, client.clock.now())
    except NotPermitted as refused:
        return [error(refused.message, KEY_MEND, audit=APP_KEY)]
    except Gone as gone:
        works = fine(KEY_WORKS, audit=APP_KEY)
        return [works, error(gone.message, _install(client), audit=app.installation.id)]
    found = [fine(KEY_WORKS, audit=APP_KEY)]
    found += [one for each in OF_APP for one in each.findings(of_app)]
    if of_app.is_suspended:
        return found
    github.tokens.drop(subject.repo)  # the next token has the rights of now
    try:
        read = await facts.read_repository(client, protected, subject)
        state = await builder.state(client)
    except ProviderError as failed:
        words = f"The repository cannot be read: {failed.message}"
        return [*found, error(words, READING_MEND, audit=READING)]
    found.append(fine("The repository can be read.", audit=READING))
    found += [one for each in OF_REPOSITORY for one in each.findings(read)]
    return [*found, *app.git_builds.findings(state)]


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
