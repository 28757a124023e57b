"""Audits of the required checks: who reports them, and where."""

import shlex
from collections.abc import Iterator

from service.mergequeue.operations.doctor.facts import QueueFacts
from service.provenance import Proof
from service.provider import audits
from service.provider.audits import Finding, audit, error, note, warning
from service.vocabulary import Check, CheckOutcome, RequiredName, RequiredSource


@audit("required-statuses", "The required statuses of the branch are known.")
def required_statuses(facts: QueueFacts) -> Iterator[Finding]:
    """Yield an error for unreadable rules, and for a branch that requires nothing."""
    branch = facts.branch
    in_file = facts.in_file.get("requiredStatuses")
    if facts.resolved.owned:
        return  # the audit of GitHub's own merge queue says what to do
    if facts.resolved.error is not None:
        yield error(
            f"The required statuses of `{branch}` cannot be read: {facts.resolved.error}",
            "Grant the App `Administration: read`"
            # The file adds to the rules, so it cannot replace them.
            + ("." if in_file else f", or name them yourself: {_update(facts)}."),
        )
    elif not facts.required and facts.config.required_statuses is None:
        yield error(
            f"`{branch}` requires no status, so a test run has nothing to wait for.",
            f"Require checks in the branch protection or a ruleset of `{branch}`, name them in "
            f"`.github/headgate.yml`, or run {_update(facts)}.",
        )
    elif not facts.required:
        yield warning(
            "The queue's own setting requires no status: pull requests land untested.",
            f"Name statuses in `{in_file}` on `{branch}`."
            if in_file
            else f"Name statuses: {_update(facts)}.",
        )


def _update(facts: QueueFacts) -> str:
    names = ("--set", "requiredStatuses=NAME,NAME")
    return audits.command("update", facts.repo, facts.branch, *names)


@audit(
    "checks-on-test-branches",
    "Every required check has run on a recent test branch, or on one that landed lately.",
)
def checks_on_test_branches(facts: QueueFacts) -> Iterator[Finding]:
    """Yield an error for each such check, a note before the first test branch."""
    if not facts.on_tests.commits:
        words = ("headgate", "doctor", facts.repo.slug, "--branch", facts.branch, "--dry-test")
        dry_test = f"`{shlex.join(words)}`"
        yield note(
            "No test branch of this queue has been tested yet.",
            f"Run {dry_test} to see which required checks report on one.",
        )
        return
    for check in facts.required:
        if facts.on_tests.lacks(check):
            yield error(
                f"The required check `{check.name}` has not reported on the last "
                f"{facts.on_tests.commits} test branches. Reported there: "
                f"{facts.on_tests.names()}.",
                f"Let the CI that reports `{check.name}` also start on {facts.trigger}. If no CI "
                "reports that name, correct it in the required checks.",
            )
        elif facts.on_tests.skips(check):
            yield from _skipped(facts, check.name)


def _skipped(facts: QueueFacts, name: str) -> Iterator[Finding]:
    """Yield a finding for a check of which the newest test branches have skips alone."""
    found = f"The required check `{name}` was skipped on the last {facts.on_tests.commits} test "
    found += "branches."
    history = None if facts.queue is None else facts.queue.check_history
    if name in facts.config.optional_statuses:
        yield note(f"{found} `optionalStatuses` names it, so pull requests land without it.")
    elif history is None or name not in history.ran_lately(facts.now):
        setting = "optionalStatuses"
        optional = audits.how_to_set(
            facts.repo, facts.branch, setting, name, facts.in_file.get(setting)
        )
        yield error(
            f"{found} A check that ran nowhere is no evidence, so nothing lands.",
            f"Let its job run on {facts.trigger}, or, if it may be skipped, {optional}.",
        )


@audit("checks-on-pull-requests", "No required check is missing on all of the open pull requests.")
def checks_on_pull_requests(facts: QueueFacts) -> Iterator[Finding]:
    """Yield an error for each check that the provider wants there and nothing reports."""
    source = facts.resolved.required.source
    if not facts.on_pulls.commits or source is not RequiredSource.BRANCH_PROTECTION:
        return
    for check in facts.required:
        if facts.on_pulls.lacks(check):
            yield error(
                f"The required check `{check.name}` has not reported on the heads of the last "
                f"{facts.on_pulls.commits} open pull requests, and a pull request only merges with "
                f"it. Reported there: {facts.on_pulls.names()}.",
                f"Let the CI that reports `{check.name}` also start on pull requests. If no CI "
                "reports that name, correct it in the required checks.",
            )


COMMITS_MIN = 2
"""Test branches and heads that must agree."""


@audit(
    "checks-of-heads",
    "No required check passes on all pull requests and fails on all test branches.",
)
def checks_of_heads(facts: QueueFacts) -> Iterator[Finding]:
    """Yield a warning for each check that is green on every head and red on every test branch."""
    if min(facts.on_tests.commits, facts.on_pulls.commits) < COMMITS_MIN:
        return
    for check in facts.required:
        on_tests = _outcomes(facts.on_tests.checks, check)
        on_heads = _outcomes(facts.on_pulls.checks, check)
        if on_tests == {CheckOutcome.FAILED} and on_heads == {CheckOutcome.PASSED}:
            in_file = facts.in_file.get("headOnlyStatuses")
            names = ",".join((*facts.config.head_only_statuses, check.name))
            how = audits.how_to_set(facts.repo, facts.branch, "headOnlyStatuses", names, in_file)
            yield warning(
                f"`{check.name}` passed on the heads of the last {facts.on_pulls.commits} open "
                f"pull requests and failed on the last {facts.on_tests.commits} test branches. It "
                "seems to judge the pull request (title, labels, reviews), and those of the queue "
                "differ.",
                f"To ask it of the heads only, {how}.",
            )


def _outcomes(checks: tuple[Check, ...], required: RequiredName) -> set[CheckOutcome]:
    return {check.outcome for check in checks if audits.is_report_of(required, check)}


@audit("checks-on-target", "No required check fails on the newest commit of the branch.")
def checks_on_target(facts: QueueFacts) -> Iterator[Finding]:
    """Yield a note for each check that is missing or fails there; the queue does not need it."""
    for check in facts.required:
        if facts.on_target.lacks(check):
            yield note(
                f"`{check.name}` has no report on the newest commit of `{facts.branch}`. The queue "
                "does not need one.",
            )
    failed = {one.name for one in facts.on_target.checks if one.outcome is CheckOutcome.FAILED}
    for check in facts.required:
        if check.name in failed:
            yield note(
                f"`{check.name}` fails on the newest commit of `{facts.branch}`, so it will fail "
                "for every pull request.",
                f"Fix `{facts.branch}` first.",
            )


AUTHORS = {
    Proof.RUN: "every job of a CI run, or who writes its artifacts,",
    Proof.TOKEN: "every job or person with an API token of any role that uploads",
}


@audit("proof-of-reports", "Only the report of a failed check's own CI job can excuse its failure.")
def proof_of_reports(facts: QueueFacts) -> Iterator[Finding]:
    """Yield a warning if a weaker proof than the job's own token is enough."""
    if facts.excuse_proof is Proof.JOB:
        return
    yield warning(
        f"`excuse_proof` is `{facts.excuse_proof.name}`: {AUTHORS[facts.excuse_proof]} can excuse"
        " the failure of another job, so a failed required check can land.",
        "Give the jobs that report tests `permissions: id-token: write`, on test branches and on"
        f" `{facts.branch}`, run their tests by `headgate test`, then run `headgate tests settings"
        f" --repo {facts.repo.slug} --set excuse_proof=JOB`.",
    )
