"""Audits of the branch and its rules: what keeps the queue from landing, or lets others past it."""

from collections.abc import Iterator

from bot.github import protection
from bot.github.audits.facts import RepositoryFacts
from bot.github.other_queues import FILES, TRUNK
from bot.github.rules import Rule
from service.provider import audits
from service.provider.audits import Finding, audit, error, note, warning
from service.vocabulary import BY_SETTING, CheckKind, MergeMethod, RequiredName


@audit("provider-queue", "GitHub's own merge queue is off for the branch.")
def provider_queue(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error while GitHub's queue is on."""
    if facts.rules.has_queue:
        rule = next((one for one in facts.read.binding if one.type == "merge_queue"), None)
        yield error(
            f"GitHub's own merge queue owns `{facts.subject.branch}` and refuses every other "
            "merge, so nothing of this queue can land.",
            f"In {facts.place_of(rule)}, turn off “Require merge queue”.",
        )


@audit("closed-branch", "The App may update the branch.")
def closed_branch(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error for each rule that shuts the App out."""
    branch, classic = facts.subject.branch, facts.read.classic
    for rule in facts.read.binding:
        if rule.type == "update":
            yield error(
                f"A rule restricts updates of `{branch}`, so GitHub refuses every merge of the "
                "App.",
                f"In {facts.place_of(rule)}, add the App `{facts.slug}` to the bypass list.",
            )
    if classic.is_locked:
        yield error(
            f"`{branch}` is locked: GitHub refuses every merge.",
            f"In {facts.place_of(None)}, turn off “Lock branch”.",
        )
    elif classic.pushers is not None and facts.slug not in classic.pushers:
        yield error(
            f"Only some people and Apps may push to `{branch}`, and the App is not among them, so "
            "GitHub refuses every merge of the App.",
            f"In {facts.place_of(None)}, add the App `{facts.slug}` under “Restrict who can push "
            "to matching branches”.",
        )


@audit("strict-checks", "Pull requests need not contain the newest commit of the branch.")
def strict_checks(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error for each place where strict checks are on."""
    places = [facts.place_of(rule) for rule in facts.read.binding if rule.is_strict and rule.checks]
    places += [facts.place_of(None)] * facts.read.classic.is_strict
    for place in dict.fromkeys(places):
        yield error(
            f"`{facts.subject.branch}` only takes pull requests that contain its newest commit: "
            "after each merge GitHub refuses the next one, and the queue stops.",
            f"In {place}, turn off “Require branches to be up to date before merging”. The queue "
            "tests every pull request on the newest commit itself.",
        )


@audit("status-sources", "The rules of the branch name the App of each required check.")
def status_sources(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield a finding for each check without an App, and where to choose the one that reports it.

    A warning where Headgate has to believe an account, or knows no reporter at all.
    """
    known = {one.name: one for one in facts.subject.required}
    places: list[tuple[Rule | None, tuple[RequiredName, ...]]] = [
        (rule, rule.checks) for rule in facts.read.rules
    ]
    for rule, checks in (*places, (None, facts.read.classic.checks)):
        for check in checks:
            if check.source_id is None and check.name in known:
                yield _unbound(known[check.name], facts.place_of(rule))


def _unbound(known: RequiredName, place: str) -> Finding:
    name = f"`{known.name}`"
    found = (
        f"{place[0].upper()}{place[1:]} binds {name} to no App: for GitHub, everybody with write "
        f"access can set it. {_believed(known)}"
    )
    if known.kind is CheckKind.SUITE_RUN and known.source_id is not None:
        by = "" if known.binding is None or not known.binding.by else f" ({known.binding.by})"
        return note(found, f"In {place}, choose App {known.source_id}{by} as source of {name}.")
    return warning(found, f"In {place}, choose the App that reports {name} as its source.")


def _believed(known: RequiredName) -> str:
    binding = known.binding
    if binding is None:
        return "A queue learns who reports it, and believes no other."
    if not binding.on:
        return "Headgate has seen no report of it yet, and believes the check run of any App."
    if known.kind is CheckKind.STATUS:
        who = f"commit statuses of the account `{binding.by}`"
    elif known.source_id is not None:
        who = f"check runs of App {known.source_id}"
    elif known.kind is CheckKind.SUITE_RUN:
        who = "check runs, because several Apps report it"
    else:
        return "Headgate believes every report, because `statusReporters` says so."
    if binding.on == BY_SETTING:
        return f"Headgate believes only {who}, because `statusReporters` says so."
    return f"Headgate believes only {who}, as seen on {binding.on}."


SETTING = "mergeMethod"

BOXES = {
    MergeMethod.MERGE_COMMIT: "Allow merge commits",
    MergeMethod.SQUASH: "Allow squash merging",
    MergeMethod.REBASE: "Allow rebase merging",
}


@audit("merge-method", "The repository and its rules allow the queue's merge method.")
def merge_method(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error while the method is excluded, with the rule or setting that excludes it."""
    method, ruled = facts.subject.merge_method, facts.rules.known.merge_methods
    allowed = facts.repository.merge_methods & (ruled or frozenset(MergeMethod))
    if method in allowed:
        return
    if method not in facts.repository.merge_methods:
        why = "the settings of the repository exclude it"
        other = f"turn on “{BOXES[method]}” in the settings of the repository"
    else:
        why = f"the rules of `{facts.subject.branch}` exclude it{_culprit(facts, method)}"
        other = "change that rule"
    names = [one.value for one in MergeMethod if one in allowed]
    if not names:
        mend = f"No method is left: {other}."
    else:
        repo, branch = facts.subject.repo, facts.subject.branch
        path = facts.subject.in_file.get(SETTING)
        mend = audits.how_to_set(repo, branch, SETTING, names[0], path)
        mend = f"{mend[0].upper()}{mend[1:]}, or {other}."
    yield error(f"The queue merges with {method.value}, but {why}.", mend)


def _culprit(facts: RepositoryFacts, method: MergeMethod) -> str:
    for rule in facts.read.binding:
        if rule.methods is not None and method not in rule.methods:
            return f" (allowed merge methods in {facts.place_of(rule)})"
        if rule.type == "required_linear_history" and method is MergeMethod.MERGE_COMMIT:
            return f" (“Require linear history” in {facts.place_of(rule)})"
    if facts.read.classic.is_linear and method is MergeMethod.MERGE_COMMIT:
        return f" (“Require linear history” in {facts.place_of(None)})"
    if facts.rules.needs_signatures and method is MergeMethod.REBASE:
        return " (“Require signed commits”: GitHub does not sign the commits that it rebases)"
    return ""


@audit(
    "signatures", "The branch takes unsigned commits, or GitHub signs those that the queue makes."
)
def signatures(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield a note for merge commits, whose second parents people have to sign."""
    if facts.rules.needs_signatures and facts.subject.merge_method is MergeMethod.MERGE_COMMIT:
        repo, branch = facts.subject.repo, facts.subject.branch
        path = facts.subject.in_file.get("mergeMethod")
        squash = audits.how_to_set(repo, branch, "mergeMethod", MergeMethod.SQUASH.value, path)
        yield note(
            f"`{branch}` takes only signed commits, and the queue makes merge commits: a pull "
            "request with an unsigned commit is set aside.",
            f"Let everybody sign, or {squash}: GitHub signs the commit that it makes.",
        )


@audit(
    "review-rules",
    "No rule about conversations, code owners or last pushes holds pull requests back.",
)
def review_rules(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield a note for each rule, since it makes a pull request wait in the queue."""
    rules, branch = facts.rules, facts.subject.branch
    if rules.needs_resolved_threads:
        yield note(
            f"`{branch}` wants every conversation resolved. Anybody who can read the repository "
            "can begin one, and the pull request waits until it is resolved.",
        )
    if rules.needs_code_owners:
        yield note(f"`{branch}` wants approvals of code owners; without them a pull request waits.")
    if rules.needs_last_push:
        yield note(
            f"`{branch}` wants an approval by somebody other than the last pusher; without it a "
            "pull request waits.",
        )
    if rules.dismisses_approvals:
        yield note(
            f"`{branch}` dismisses the approvals of a pull request whose base changes. Headgate "
            "has to change the base of each member of a chain when the one below has merged, so it "
            "refuses chains that are no stack on GitHub: merge the lowest one first.",
        )


@audit("unseen-rules", "The App can read the state of every rule of the branch.")
def unseen_rules(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield a warning for each such rule that binds the App."""
    for rule in facts.read.binding:
        if rule.type in facts.rules.unseen:
            yield warning(
                f"The rule `{rule.type}` is judged by GitHub on the pull request itself. The App "
                "cannot see its state: a pull request that breaks it is tested, then set aside.",
                f"Let every pull request meet it before `/merge`, or add the App `{facts.slug}` to "
                f"the bypass list of {facts.place_of(rule)} (“Exempt”).",
            )


@audit("bypass", "The App bypasses no required check.")
def bypass(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield a warning for each bypassed ruleset with required checks."""
    for rule in facts.read.rules:
        if rule.checks and rule not in facts.read.binding:
            yield warning(
                f"The App may bypass {facts.place_of(rule)}, which has required checks. The queue "
                "still waits for them on the test branch, but GitHub no longer checks it.",
                f"Keep required checks in a ruleset without a bypass for the App `{facts.slug}`.",
            )


@audit("enforcement", "Only the queue can merge, apart from people who may bypass the rules.")
def enforcement(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield a warning unless a rule leaves the branch to the App."""
    branch, pushers = facts.subject.branch, facts.read.classic.pushers
    # One without the App on its bypass list is named by the audit `closed-branch`.
    is_restricted = any(rule.type == "update" for rule in facts.read.rules)
    if is_restricted or facts.rules.known.own_required or pushers == (facts.slug,):
        return
    yield warning(
        f"Anybody who may write to the repository can merge into `{branch}` past the queue.",
        f"Make a ruleset for `{branch}` with “Restrict updates” and add the App `{facts.slug}` to "
        f"its bypass list, or require the check `{protection.own_check(branch)}`.",
    )


EXCLUDED = "headgate/**/*"


@audit("test-branch-rules", "No rule binds the queue's own branches.")
def rules_of_test_branches(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error for each ruleset under which test branches cannot be made or removed."""
    places: dict[str, list[str]] = {}
    for rule in facts.test_branch_rules:
        places.setdefault(facts.place_of(rule), []).append(rule.type)
    for place, types in places.items():
        listed = ", ".join(f"`{one}`" for one in dict.fromkeys(types))
        yield error(
            f"{place[0].upper()}{place[1:]} also applies to `headgate/**`: under {listed} test "
            "branches cannot be made or removed.",
            f"In {place}, exclude the branches `{EXCLUDED}` by pattern.",
        )


# Git keeps no branch `x/y` beside a branch `x`.
IN_THE_WAY = ("headgate", "headgate/merge", "headgate/temp")


@audit("branch-names", "No branch is in the way of the queue's own under `headgate/`.")
def branch_names(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error for each branch that keeps test branches from being made."""
    for branch in IN_THE_WAY:
        if branch in facts.branches:
            yield error(
                f"There is a branch `{branch}`, so git refuses every branch `{branch}/…`, and no "
                "test branch can be made.",
                f"Delete the branch `{branch}`, or rename it: `git push origin --delete {branch}`.",
            )


@audit("other-queues", "No settings file of another merge queue was found.")
def other_queues(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield a warning for each settings file of another tool.

    Trunk keeps the settings of its queue elsewhere, and others of its tools use its file.
    """
    branch = facts.subject.branch
    for path in sorted(FILES.keys() & facts.paths):
        if FILES[path] == TRUNK:
            yield note(
                f"`{path}` is Trunk's. If its merge queue is in use, it moves `{branch}` past this "
                "queue, and every run begins again.",
                f"Delete Trunk's queue for `{branch}`. `headgate import` takes over the file.",
            )
            continue
        yield warning(
            f"`{path}` configures {FILES[path]}. What it merges by itself moves "
            f"`{branch}` past this queue, and every run begins again.",
            f"Delete `{path}`, or take `{branch}` out of it. `headgate import` takes over its "
            "settings.",
        )
