"""Everything the audits look at, read once: of the App, and of one repository."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from bot.github import protection, reading, refs, told_times, workflows
from bot.github.client import GitHubClient, RepositoryClient
from bot.github.protection import BranchRules, Protection, Read, Rule
from bot.github.reading import Fields
from bot.github.workflows import Workflows
from service.provider.audits import AuditSubject
from service.provider.errors import Gone, Refused, Unavailable
from service.provider.values import Repository
from service.vocabulary import Sha

DELIVERIES_MAX = 100
TEST_BRANCHES = ("headgate/merge/pr-1/probe", "headgate/temp/pr-1/probe")
FOLDERS = ("", ".github", ".mergify", ".trunk")


@dataclass(frozen=True, slots=True)
class Delivery:
    """One attempt to deliver a webhook, newest first in lists; `code` and `status` are GitHub's."""

    guid: str
    event: str
    at: datetime
    code: int
    status: str

    @property
    def is_success(self) -> bool:
        """Return whether the service has taken it."""
        return 200 <= self.code < 300


@dataclass(frozen=True, slots=True)
class AppFacts:
    """The App and one installation of it; `account` owns the installation, empty: there is none.

    `webhook_url`: the address of this service, None: unknown. `skew_s`: by how much this machine's
    clock is ahead of GitHub's. `deliveries`: the newest.
    """

    webhook_url: str | None
    asked: Mapping[str, str]
    granted: Mapping[str, str]
    events: frozenset[str]
    settings_url: str
    installation_url: str
    is_suspended: bool
    skew_s: float
    hook_url: str | None
    deliveries: tuple[Delivery, ...]
    account: str = ""

    def of_installation(self, installed: Fields) -> "AppFacts":
        """Return the facts with those of an installation, as GitHub describes it."""
        account = installed.inner_or_none("account") or Fields({})
        return replace(
            self,
            granted=_levels(installed),
            installation_url=installed.words("html_url"),
            is_suspended=installed.text_or("suspended_at", None) is not None,
            account=account.words("login"),
        )


@dataclass(frozen=True, slots=True)
class RepositoryFacts:
    """One repository and the rules of the target branch.

    `rulesets`: names by id. `test_branch_rules`: those of a ruleset that bind our test branches.
    `branches`: names that begin with `headgate`. `paths`: files at the root, and in folders where
    other tools keep their settings.
    """

    subject: AuditSubject
    slug: str
    repository: Repository
    read: Read
    rules: BranchRules
    rulesets: Mapping[str, str]
    test_branch_rules: tuple[Rule, ...]
    branches: tuple[str, ...]
    paths: frozenset[str]
    workflows: Workflows

    def place_of(self, rule: Rule | None) -> str:
        """Return where a rule is set, as people find it in the settings."""
        if rule is None or rule.ruleset is None:
            return f"the branch protection of `{self.subject.branch}`"
        return f"the ruleset `{self.rulesets.get(rule.ruleset, rule.ruleset)}`"


async def read_app(github: GitHubClient, subject: AuditSubject, now: datetime) -> AppFacts:
    """Read the App as it is installed on the owner of a repository.

    Raises NotPermitted without a working key, Gone if it is not installed.
    """
    app = await read_registration(github, subject.webhook_url, now)
    owner, name = subject.repo.owner, subject.repo.name
    installed = await github.app_call("GET", f"/repos/{owner}/{name}/installation")
    return app.of_installation(installed.fields)


async def read_registration(
    github: GitHubClient, webhook_url: str | None, now: datetime
) -> AppFacts:
    """Read the App without an installation: it counts as granted what it asks for.

    Raises NotPermitted without a working key.
    """
    addresses = github.options.addresses
    answer = await github.tokens.as_app("GET", f"{addresses.api}/app", None)
    if answer.status >= 400:
        raise github.error_of(answer, "/app")
    app = answer.fields
    listed = await github.app_call("GET", f"/app/hook/deliveries?per_page={DELIVERIES_MAX}")
    hook = (await github.app_call("GET", "/app/hook/config")).fields
    return AppFacts(
        webhook_url=webhook_url,
        asked=_levels(app),
        granted=_levels(app),
        events=frozenset(str(each) for each in app.members("events")),
        settings_url=_settings_url(app, addresses.web),
        installation_url=f"{addresses.web}/apps/{app.words('slug')}/installations/new",
        is_suspended=False,
        skew_s=told_times.skew_s(answer.headers.get("date"), now),
        hook_url=hook.text_or("url", None),
        deliveries=tuple(_delivery(each) for each in listed.objects),
    )


def _settings_url(app: Fields, web: str) -> str:
    """Return the page where the App's owner changes it; the App's public page for other owners."""
    owner = app.inner_or_none("owner") or Fields({})
    below = f"settings/apps/{app.words('slug')}"
    match owner.text_or("type", None):
        case "Organization":
            return f"{web}/organizations/{owner.words('login')}/{below}"
        case "User":
            return f"{web}/{below}"
        case _:
            return app.words("html_url")


def _levels(holder: Fields) -> Mapping[str, str]:
    granted = holder.inner_or_none("permissions") or Fields({})
    return {name: granted.words(name) for name in granted.names()}


def _delivery(each: Fields) -> Delivery:
    return Delivery(
        guid=each.text("guid"),
        event=each.words("event"),
        at=each.moment("delivered_at"),
        code=each.number("status_code"),
        status=each.words("status"),
    )


async def read_repository(
    client: RepositoryClient, protected: Protection, subject: AuditSubject
) -> RepositoryFacts:
    """Read the repository. Raises what a read raises, NotPermitted without the permission."""
    if subject.tip is None:
        raise Unavailable(f"the newest commit of {subject.branch} is unknown.", client.clock.now())
    answer = await client.get("")
    read, rules = await protected.read_whole(client, subject.branch)
    against = [
        rule
        for branch in TEST_BRANCHES
        for rule in await protection.binding_rules(client, branch)
        if rule.type in protection.AGAINST_BUILDING | {"deletion"}
    ]
    rulesets = {rule.ruleset for rule in (*read.rules, *against) if rule.ruleset is not None}
    named, _ = await client.listed("/git/matching-refs/heads/headgate")
    return RepositoryFacts(
        subject=subject,
        slug=await client.github.slug(),
        repository=reading.repository_of(answer.fields, client.github.options.host),
        read=read,
        rules=rules,
        rulesets={number: await _ruleset_name(client, number) for number in sorted(rulesets)},
        test_branch_rules=tuple(dict.fromkeys(against)),
        branches=tuple(reading.ref_of(each)[0].removeprefix(refs.HEADS) for each in named),
        paths=frozenset(await _paths(client, subject.tip)),
        workflows=await workflows.read(client, subject.branch, subject.tip),
    )


async def _ruleset_name(client: RepositoryClient, number: str) -> str:
    answer = await client.get(f"/rulesets/{number}", expects=(403, 404), is_kept=True)
    return answer.fields.words("name") if answer.status == 200 else number


async def _paths(client: RepositoryClient, commit: Sha) -> list[str]:
    found: list[str] = []
    for folder in FOLDERS:
        try:
            answer = await client.find(f"/contents/{folder}", {"ref": commit})
        except (Gone, Refused):
            continue
        if answer is not None and isinstance(answer.content, list):
            found += [each.words("path") for each in answer.objects]
    return found
