"""Run all audits of GitHub's side: facts are read once, then each audit decides."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from bot.github import installations
from bot.github.audits import app, facts, rules
from bot.github.audits.facts import AppFacts, RepositoryFacts
from bot.github.client import GitHubClient, RepositoryClient
from bot.github.gitbuild.builder import GitBuilder
from bot.github.protection import Protection
from service.provider.audits import Audit, AuditSubject, Finding, error, fine, note
from service.provider.errors import Gone, NotPermitted, ProviderError

OF_APP: tuple[Audit[AppFacts], ...] = (
    app.installation,
    app.app_permissions,
    app.app_events,
    app.webhook,
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
    *(APP_KEY, *(one.id for one in OF_APP), app.clock_skew.id, app.content_budget.id),
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
    except ProviderError as failed:
        return [error(f"The App cannot be read: {failed.message}", AWAY_MEND, audit=APP_KEY)]
    found = [fine(KEY_WORKS, audit=APP_KEY)]
    found += [one for each in OF_APP for one in each.findings(of_app)]
    found += app.clock_skew.findings(of_app.skew_s)
    found += app.content_budget.findings(subject)
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


async def run_of_app(
    github: GitHubClient, webhook_url: str | None, now: datetime
) -> Sequence[Finding]:
    """Return the findings about the App and each of its installations, without a repository."""
    try:
        registered = await facts.read_registration(github, webhook_url, now)
        found = await installations.installations(github)
    except (NotPermitted, Gone) as refused:
        return [error(refused.message, KEY_MEND, audit=APP_KEY)]
    except ProviderError as failed:
        return [error(f"The App cannot be read: {failed.message}", UNREAD_MEND, audit=APP_KEY)]
    works = fine(KEY_WORKS, audit=APP_KEY)
    once = [one for each in (app.app_events, app.webhook) for one in each.findings(registered)]
    if not found:
        words = "The App is installed nowhere."
        mend = f"Install it: {registered.installation_url}."
        return [works, *once, note(words, mend, audit=app.installation.id)]
    each_of = [registered.of_installation(one) for one in found]
    of_each = [
        replace(one, found=f"{facts_of.account}: {one.found}")
        for facts_of in each_of
        for each in (app.installation, app.app_permissions)
        for one in each.findings(facts_of)
    ]
    return [works, *once, *of_each]


KEY_WORKS = "GitHub accepts the App's key."
KEY_MEND = (
    "Check HEADGATE_GITHUB_APP_ID. If it is the App's, make a new private key in the settings of "
    "the App, set HEADGATE_GITHUB_PRIVATE_KEY to it and restart the service."
)
UNREAD_MEND = "Fix what `github-access` names, then run `headgate doctor --host` again."
AWAY_MEND = "Run `headgate doctor` again later."
READING_MEND = "Fix what `app-permissions` names, then run `headgate doctor` again."


def _install(client: RepositoryClient) -> str:
    web = client.github.options.addresses.web
    slug = client.github.tokens.slug or "your App"
    return f"Install the App on the repository: {web}/apps/{slug}/installations/new."
