"""Audits of the App: installation, permissions, events, deliveries, clock, limits, way to build."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus

from bot.github import pacing
from bot.github import webhook as receiver
from bot.github.audits.facts import AppFacts, Delivery
from bot.github.gitbuild.builder import BLOBLESS_KIB_MAX, BuilderState, Failure
from bot.github.gitbuild.command import VERSION_MIN
from bot.github.gitbuild.mirror import Reason
from bot.github.options import BuildMethod
from bot.github.pacing import Priority
from service.provider import audits
from service.provider.audits import AuditSubject, Finding, audit, error, note, warning

_GIB = 1 << 30
_MIN = ".".join(map(str, VERSION_MIN))
_BY_REST = "so GitHub's REST API builds them, with one call or more for each pull request of a run"
_OR_REST = "or set HEADGATE_BUILD_METHOD=rest"

# What failed, and its mend.
_FAILURES = {
    Reason.NOT_MADE: (
        "The mirror of the repository could not be made",
        "Let the machine of the service reach the repository by git over HTTPS",
    ),
    Reason.PUSH_RULE: (
        "A rule of the repository refused a push of test branches",
        "Exclude the branches `headgate/**/*` from that rule by pattern, or let the App bypass it",
    ),
    Reason.PUSH_HOOK: (
        "A pre-receive hook of the server declined a push of test branches",
        "Let the hook accept branches under `headgate/`",
    ),
    Reason.PUSH_DENIED: (
        "GitHub did not let the App push test branches",
        "Give the installation of the App the permission `contents: write`",
    ),
}
_OTHERWISE = (
    "Git failed to build a test branch",
    "Fix what git said; the log event `test_branch_method` names the run",
)


@audit("installation", "The App is installed on the repository.")
def installation(facts: AppFacts) -> Iterator[Finding]:
    """Yield an error for a suspended installation."""
    if facts.is_suspended:
        yield error(
            "The installation of the App is suspended, so GitHub refuses every call.",
            f"An owner must unsuspend it at {facts.installation_url}.",
        )


LEVELS = ("", "read", "write", "admin")
# GitHub's "Permissions required for GitHub Apps" by the calls that we make (app.yml).
PERMISSIONS: Mapping[str, tuple[str, str]] = {
    "metadata": ("read", "GitHub answers no call about the repository"),
    "contents": ("write", "no test branch can be made and no pull request can land"),
    "pull_requests": ("write", "no pull request can be read, commented on or tested as a draft"),
    "checks": ("write", "check runs cannot be read, and Headgate's own check cannot be shown"),
    "statuses": ("read", "required commit statuses are never seen"),
    "actions": ("read", "workflow runs and their test reports cannot be read"),
    "issues": ("read", "comments are not delivered, so `/merge` is answered late or never"),
    "administration": ("read", "branch protection cannot be read, so nothing starts or lands"),
}


@audit("app-permissions", "The App has every permission it needs.")
def app_permissions(facts: AppFacts) -> Iterator[Finding]:
    """Yield an error for each permission that is missing or too low.

    A permission counts once the App asks for it and an owner has approved it:
    https://docs.github.com/en/apps/using-github-apps/approving-updated-permissions-for-a-github-app
    """
    for name, (level, without) in PERMISSIONS.items():
        if _reaches(facts.granted.get(name), level):
            continue
        if _reaches(facts.asked.get(name), level):
            have = facts.granted.get(name) or "no access"
            yield error(
                f"The App asks for `{name}: {level}`, but this installation grants {have}, because "
                f"its owner has not accepted the change: {without}.",
                f"An owner must accept the new permissions at {facts.installation_url}.",
            )
        else:
            have = facts.asked.get(name) or "no access"
            yield error(
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
            "The App asks for `workflows: write`, but this installation's owner has not accepted "
            f"it, so {words}",
            f"An owner can accept the new permission at {facts.installation_url}.",
        )
        return
    yield note(
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


# The events of app.yml. Headgate learns what a missing event reports from a sweep, or never.
EVENTS: Mapping[str, str] = {
    "pull_request": "pushes, labels and closed pull requests are noticed late",
    "pull_request_review": "approvals are noticed late",
    "pull_request_review_thread": "resolved conversations are noticed late",
    "issue_comment": "`/merge` in a comment is answered minutes later",
    "push": "a moved target branch is noticed late",
    "check_run": "a finished check is noticed up to a minute late",
    "check_suite": "a finished check is noticed up to a minute late",
    "status": "a commit status is noticed up to a minute late",
    "workflow_run": "test reports of finished CI runs are read late",
    "repository": "a renamed or archived repository is noticed late",
    "repository_ruleset": "changed rules are noticed up to five minutes late",
    "branch_protection_rule": "changed branch protection is noticed up to five minutes late",
}
COMMANDS = frozenset({"issue_comment", "pull_request"})


@audit("app-events", "The App receives every event it reads.")
def app_events(facts: AppFacts) -> Iterator[Finding]:
    """Yield a finding for each event that is not subscribed."""
    for event, without in EVENTS.items():
        if event not in facts.events:
            severity = error if event in COMMANDS else warning
            yield severity(
                f"The App does not subscribe to `{event}`: {without}.",
                f"Open {facts.settings_url}, then “Permissions & events”, and subscribe to "
                f"`{event}`.",
            )


NOT_TAKEN = (
    "Mend first what `service` and `database` name here. If they name nothing, look at the proxy "
    "in front of the service. GitHub is asked to deliver again what was lost."
)
"""The remedy where the webhook's address answered 503, as the service does in trouble."""


@audit("webhook", "GitHub's recent deliveries reached the service.")
def webhook(facts: AppFacts) -> Iterator[Finding]:
    """Yield what is wrong with the address, then with the deliveries."""
    public, hook = facts.webhook_url, facts.hook_url
    wanted = f"{public}{receiver.PATH}" if public else None
    there = f"Open {facts.settings_url}, then “General”, and set the webhook URL to"
    own = wanted or f"the address of this service as GitHub reaches it, with `{receiver.PATH}`"
    if not hook:
        yield error("The App has no webhook URL.", f"{there} {own}.")
    elif wanted is not None and hook.rstrip("/") != wanted:
        yield error(
            f"The App's webhook URL is {hook}, but this service receives at {wanted}.",
            f"{there} {wanted}, or correct HEADGATE_PUBLIC_URL.",
        )
    if not facts.deliveries:
        yield note("GitHub has delivered nothing in the last days.")
        return
    newest = facts.deliveries[0]
    lost = _lost(facts.deliveries)
    if not newest.is_success:
        yield error(
            f"The newest delivery (`{newest.event}`) failed: {newest.status}. "
            f"Of the last {len(facts.deliveries)}, {len(lost)} did not arrive.",
            NOT_TAKEN
            if newest.code == HTTPStatus.SERVICE_UNAVAILABLE
            else f"Let GitHub reach the service: {there[0].lower()}{there[1:]} "
            f"{own}, with the same secret as "
            "HEADGATE_GITHUB_WEBHOOK_SECRET.",
        )
    elif lost:
        yield warning(
            f"Of the last {len(facts.deliveries)} deliveries, {len(lost)} did not arrive, for "
            f"example `{lost[0].event}`: {lost[0].status}. The newest one did.",
            "Nothing, if the service was down: it has GitHub deliver them again. Otherwise look "
            "at the proxy in front of it.",
        )


def _lost(deliveries: tuple[Delivery, ...]) -> list[Delivery]:
    arrived = {one.guid for one in deliveries if one.is_success}
    return [one for one in deliveries if one.guid not in arrived]


SKEW_WARNED_S = 30
SKEW_GRAVE_S = 60
CLOCK_MEND = "Synchronize the clock, for example with `timedatectl set-ntp true`."


@audit("clock-skew", "This machine's clock and GitHub's agree.")
def clock_skew(skew_s: float) -> Iterator[Finding]:
    """Yield a finding above 30 s; `skew_s`: by how much this machine's clock is ahead."""
    if abs(skew_s) >= SKEW_WARNED_S:
        severity = error if abs(skew_s) >= SKEW_GRAVE_S else warning
        way = "ahead of" if skew_s > 0 else "behind"
        yield severity(
            f"This machine's clock is {round(abs(skew_s))} s {way} GitHub's. Tokens are made by "
            "GitHub's clock, but waits for its rate limits and times that people see are wrong.",
            CLOCK_MEND,
        )


# Comment, draft pull request and merge (docs/design/limits.md 8). Builds wait first.
PER_LANDING = 3
BUILD_SHARE = pacing.CONTENT_SHARES[Priority.BUILD]
LANDINGS_MAX = int(pacing.CONTENT_HOUR_MAX * BUILD_SHARE) // PER_LANDING


@audit(
    "content-budget",
    f"GitHub's content limits leave room for about {LANDINGS_MAX} landings an hour.",
)
def content_budget(subject: AuditSubject) -> Iterator[Finding]:
    """Yield a finding where the busiest hour came near the limit."""
    busiest = subject.landings_hour_max
    found = (
        f"In the busiest hour of the last weeks {busiest} pull requests landed. GitHub lets an "
        f"installation create content 80 times a minute and 500 times an hour, which is enough "
        f"for about {LANDINGS_MAX} landings."
    )
    silent = audits.command(
        "update", subject.repo, subject.branch, "--set", "commentsEnabled=false"
    )
    mend = (
        f"Let queues write less: {silent}, or the same with `createPrsForTestingBranches=false` if "
        "CI runs on pushes to `headgate/merge/**`."
    )
    if busiest >= LANDINGS_MAX:
        yield warning(found, mend)
    elif busiest * 2 >= LANDINGS_MAX:
        yield note(found, mend)


@audit("git-builds", "Test branches can be built as `HEADGATE_BUILD_METHOD` says.")
def git_builds(facts: BuilderState) -> Iterator[Finding]:
    """Yield what keeps git from building; nothing if the setting itself chooses the REST API."""
    if facts.method is BuildMethod.REST:
        return
    if facts.version < VERSION_MIN:
        has = "has no git"
        if facts.version != (0, 0):
            has = f"has git {'.'.join(map(str, facts.version))}, and test branches need {_MIN}"
        mend = (
            f"Install git {_MIN} or newer there and restart the service, or set "
            "HEADGATE_BUILD_METHOD=rest."
        )
        yield warning(f"The machine of the service {has}, {_BY_REST}.", mend)
        return
    if facts.size_kib > BLOBLESS_KIB_MAX and facts.method is BuildMethod.AUTO:
        size = f"The repository has {facts.size_kib >> 20} GiB, {_BY_REST}."
        mend = "If a mirror without file contents is not too large, set HEADGATE_BUILD_METHOD=git."
        yield note(size, mend)
    elif not facts.has_room:
        used = (
            f"The mirror of the repository needs about {_gib(facts.needed)} GiB. The mirrors take "
            f"{_gib(facts.used)} of {_gib(facts.bytes_max)} GiB, and the disk has "
            f"{_gib(facts.free)} GiB left, {_BY_REST}."
        )
        yield warning(used, "Make room on the disk, or raise HEADGATE_MIRRORS_MAX_GB.")
    if facts.is_being_made:
        found = "The mirror of the repository is being made; until it is there, GitHub's REST API"
        yield note(f"{found} builds test branches.")
    if facts.failure is not None:
        yield _failed(facts.failure, is_resting=facts.is_resting)
    if facts.disagreed:
        found = f"Git found three conflicts in a day that GitHub does not have, {_BY_REST}."
        mend = "The log event `build_disagreement` names the runs; git is tried again in a day."
        yield note(found, mend)


def _failed(failure: Failure, *, is_resting: bool) -> Finding:
    what, mend = _FAILURES.get(failure.reason, _OTHERWISE)
    tried = "twice in the last hour" if is_resting else "in the last hour"
    said = f" It said: {failure.words.rstrip('.')}." if failure.words else ""
    again = "Git is tried again within an hour." if is_resting else "Git is tried again each time."
    return warning(f"{what} {tried}, {_BY_REST}.{said}", f"{mend}, {_OR_REST}. {again}")


def _gib(size: int) -> str:
    return f"{size / _GIB:.1f}"
