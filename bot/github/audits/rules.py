"""Audits of the branch and its rules: what keeps the queue from landing, or lets others past it.

Those of workflow files say which required checks run on test branches, and how.
"""

from collections.abc import Iterator

from bot.github import protection, workflows
from bot.github.audits.facts import RepositoryFacts
from bot.github.other_queues import FILES, TRUNK
from bot.github.protection import Rule
from bot.github.workflow_files import Workflow, WorkflowJob
from service.provider import audits
from service.provider.audits import Finding, audit, error, note, warning
from service.provider.values import Vehicle
from service.vocabulary import BY_SETTING, ELSEWHERE, CheckKind, MergeMethod, RequiredName

_SETTING = "optionalStatuses"

CONDITIONS = {
    Vehicle.PUSH: "startsWith(github.ref, 'refs/heads/headgate/merge/')",
    Vehicle.DRAFT_PR: "startsWith(github.head_ref, 'headgate/merge/')",
}


# Expressions of GitHub's "Contexts" that differ between test branches, by how CI sees them.
ALWAYS = ("github.ref", "github.sha", "github.run_id", "github.run_number")
_ON_PULLS = ("github.head_ref", "pull_request.number", "github.event.number")


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


@audit(
    "workflow-triggers",
    "The workflows of required checks start on test branches, as far as files tell.",
)
def workflow_triggers(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error for each required check that no starting workflow reports.

    A file that cannot be read may report any check, so beside one nothing is an error. Where the
    workflows need the other kind of test branch, the audit `test-branch-kind` says how to
    choose it, and nothing here asks for another trigger.
    """
    if facts.workflows.trouble:
        yield note(facts.workflows.trouble)
    for each in facts.workflows.unread:
        yield note(
            f"Headgate cannot read `{each.name}` and cannot tell whether its checks start on test "
            f"branches. {each.why}",
        )
    if workflows.advice_of(facts.workflows).vehicle not in (None, facts.subject.vehicle):
        return
    for check in facts.subject.required:
        those = [each for each in facts.workflows.found if each.reports(check.name)]
        if not those or facts.workflows.unread or any(_starts(facts, one) for one in those):
            continue
        if check.name in facts.subject.ran:
            continue  # seen there, so another CI reports it
        if any(workflow_drafts.find(facts)):
            continue  # said there, with the way out
        name = those[0].name
        place = those[0].elsewhere
        other = f" It starts on `{place}`, which is another queue's." if place else ""
        yield error(
            f"The required check `{check.name}` never reports on a test branch: `{name}` does not "
            f"start there.{other}",
            f"In `{workflows.FOLDER}/{name}`, add {_trigger_of(facts)} under `on:`.",
        )


def _trigger_of(facts: RepositoryFacts) -> str:
    """Return the trigger that starts a workflow on the queue's kind of test branch."""
    if facts.subject.vehicle is Vehicle.PUSH:
        return f'`push: {{branches: ["{workflows.PATTERN}"]}}`'
    return f"`pull_request: {{branches: [{facts.subject.branch}]}}`"


def _starts(facts: RepositoryFacts, workflow: Workflow) -> bool:
    """Return whether a workflow starts on the queue's kind of test branch."""
    return bool(workflows.events_of(workflow, facts.subject.vehicle))


@audit(
    "workflow-conditions",
    "No condition keeps a required check from running on test branches, as far as files tell.",
)
def workflow_conditions(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield a finding for each required check that cannot run, or that tests nothing, there.

    What was seen wins over what files tell: a check that ran on a test branch can run. A file that
    cannot be read may report any check, so beside one nothing is said.
    """
    if facts.workflows.unread:
        return
    for name in dict.fromkeys(one.name for one in facts.subject.required):
        jobs = workflows.jobs_on(facts.workflows.found, facts.subject.vehicle, name)
        if jobs and all(events <= job.left_out for _, job, events in jobs):
            if name not in facts.subject.ran:
                yield _left_out(facts, name, *jobs[0][:2])
            continue
        running = [each for each in jobs if not each[2] <= each[1].left_out]
        if running and all(events - job.left_out <= job.empty for _, job, events in running):
            yield _empty(facts, name, *running[0][:2])
        elif running:
            yield from _stand_ins(facts, name, [(one, job) for one, job, _ in running])


def _left_out(facts: RepositoryFacts, name: str, workflow: Workflow, job: WorkflowJob) -> Finding:
    found = f"The required check `{name}` is skipped on every test branch: {_why(workflow, job)}."
    if name in facts.subject.optional:
        return note(f"{found} `{_SETTING}` names it, so pull requests land without it.")
    return error(
        f"{found} A check that ran nowhere is no evidence, so nothing lands.",
        f"{_let_run(facts, workflow)}, or, if it may be skipped, {_optional(facts, name)}.",
    )


def _empty(facts: RepositoryFacts, name: str, workflow: Workflow, job: WorkflowJob) -> Finding:
    where = "on other branches" if job.place in ("", ELSEWHERE) else f"on `{job.place}`"
    return error(
        f"The required check `{name}` passes on test branches without testing anything: the steps "
        f"of its job in `{workflow.name}` that do something run only {where}.",
        _let_run(facts, workflow, "the `if:` of these steps") + ".",
    )


def _stand_ins(
    facts: RepositoryFacts, name: str, running: list[tuple[Workflow, WorkflowJob]]
) -> Iterator[Finding]:
    """Yield a finding if another job of this name runs only in another queue."""
    others = [
        (workflow, job.place or workflow.elsewhere)
        for workflow in facts.workflows.found
        for job in workflow.each_job
        if job.name == name and _is_of_another_queue(facts, workflow, job)
    ]
    if not others:
        return
    (workflow, place), (dummy, job) = others[0], running[0]
    severity = error if all(one.is_dummy for _, one in running) else warning
    what = "does nothing" if job.is_dummy else "may be a stand-in for it"
    yield severity(
        f"On test branches `{dummy.name}` reports the required check `{name}`. The job of that "
        f"name in `{workflow.name}` runs only on `{place}`, and the one that runs here {what}.",
        f"{_let_run(facts, workflow)}, and remove the stand-in.",
    )


def _is_of_another_queue(facts: RepositoryFacts, workflow: Workflow, job: WorkflowJob) -> bool:
    events = workflows.events_of(workflow, facts.subject.vehicle)
    if not events:
        return bool(workflow.elsewhere)
    return events <= job.left_out and job.place not in ("", ELSEWHERE)


def _why(workflow: Workflow, job: WorkflowJob) -> str:
    if job.place == ELSEWHERE:
        return f"the condition of its job in `{workflow.name}` excludes test branches"
    return f"its job in `{workflow.name}` runs only on `{job.place}`"


def _let_run(facts: RepositoryFacts, workflow: Workflow, what: str = "the job's `if:`") -> str:
    path, condition = f"`{workflows.FOLDER}/{workflow.name}`", CONDITIONS[facts.subject.vehicle]
    if not _starts(facts, workflow):
        return f"In {path}, add {_trigger_of(facts)} under `on:`"
    return f"In {path}, add `|| {condition}` to {what}"


def _optional(facts: RepositoryFacts, name: str) -> str:
    names = ",".join(sorted({*facts.subject.optional, name}))
    path = facts.subject.in_file.get(_SETTING)
    if path is not None:
        names = f"[{names}]"
    return audits.how_to_set(facts.subject.repo, facts.subject.branch, _SETTING, names, path)


@audit("workflow-drafts", "No workflow skips the queue's test branches because they are drafts.")
def workflow_drafts(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error for each workflow that skips drafts, where test branches are drafts."""
    subject, setting = facts.subject, "createPrsForTestingBranches"
    if subject.vehicle is not Vehicle.DRAFT_PR:
        return
    path = subject.in_file.get(setting)
    pushes = audits.how_to_set(subject.repo, subject.branch, setting, "false", path)
    for each in facts.workflows.found:
        if each.on_push or not (each.guarded or each.wrong_types):
            continue
        names = ", ".join(f"`{job}`" for job in each.guarded)
        why = f"its jobs {names} skip drafts" if names else "its `types` leave out `opened`"
        yield error(
            f"`{each.name}` does not test the queue's draft pull requests: {why}. A skipped "
            "check is no evidence, so nothing lands.",
            f"In `{workflows.FOLDER}/{each.name}`, add `push: {{branches: "
            f'["{workflows.PATTERN}"]}}` under `on:`, then {pushes}.',
        )


@audit("workflow-concurrency", "No concurrency group holds several test branches.")
def workflow_concurrency(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error for each group that does not name the branch."""
    for each in facts.workflows.found:
        if not _starts(facts, each):
            continue
        is_push = facts.subject.vehicle is Vehicle.PUSH or each.on_push
        parts = ALWAYS if is_push else (*ALWAYS, *_ON_PULLS)
        for group in each.groups:
            if any(part in group for part in parts):
                continue
            yield error(
                f"`{each.name}` puts all test branches into the concurrency group `{group}`, in "
                "which a newer run cancels an older one: checks of the queue are cancelled.",
                f"In `{workflows.FOLDER}/{each.name}`, set the group to "
                "`${{ github.workflow }}-${{ github.ref }}`.",
            )


@audit("workflow-paths", "No path filter keeps the workflow of a required check from starting.")
def workflow_paths(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error for each workflow of a required check with a path filter."""
    for each in facts.workflows.found:
        names = [one.name for one in facts.subject.required if each.reports(one.name)]
        events = [event for event in _events(facts, each) if event in each.filtered]
        if not names or not events:
            continue
        checks = ", ".join(f"`{name}`" for name in names)
        yield error(
            f"`{each.name}` has a path filter on `{', '.join(events)}`. Where no changed file "
            f"matches, {checks} never reports, and the queue waits until it gives up.",
            f"In `{workflows.FOLDER}/{each.name}`, remove `paths` and `paths-ignore` from "
            f"`{', '.join(events)}` and skip its jobs with `if:` instead: a skipped job reports.",
        )


def _events(facts: RepositoryFacts, workflow: Workflow) -> tuple[str, ...]:
    """Return the events by which a workflow reports on test branches and pull requests."""
    if not _starts(facts, workflow):
        return ("pull_request",) if workflow.on_draft else ()
    pushed = ("push",) if workflow.on_push else ()
    is_push = facts.subject.vehicle is Vehicle.PUSH
    return (*pushed, "pull_request") if workflow.on_draft or not is_push else pushed
