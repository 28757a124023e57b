"""The needs of an entry before it may be tested, in the order in which conditions are shown."""

from service.mergequeue.reasons.record import (
    ASK,
    AUTHOR,
    FIX,
    MAINTAINER,
    OPERATOR,
    REBASE,
    RESUBMIT,
    WAIT,
    Aside,
    Blame,
    Ending,
    Grace,
    Listed,
    Need,
    Record,
    Refusal,
)
from service.vocabulary import BlockerCode

RECORDS = (
    Record(
        "facts_unknown",
        next=WAIT,
        need=Need(
            goal="GitHub has answered about this PR",
            brief="GitHub's answer",
            step="GitHub answers about this PR",
            listed=Listed.OPEN,
        ),
    ),
    Record(
        "draft",
        next=FIX,
        who=AUTHOR,
        need=Need(
            goal="the PR is marked ready for review",
            brief="ready for review",
            blocker=BlockerCode.DRAFT,
            listed=Listed.ALWAYS,
            grace=Grace.NONE,
        ),
    ),
    Record(
        "base_mismatch",
        next=FIX,
        who=AUTHOR,
        need=Need(
            goal="the base branch is {target}[ (now {name})]",
            brief="base branch {target}",
            step="the base branch is changed[ from {name}] to {target}",
        ),
    ),
    Record(
        "conflict_target",
        next=REBASE,
        who=AUTHOR,
        word="START_TEST_RUN_MERGE_CONFLICT",
        blame=Blame.CONFLICT,
        need=Need(
            goal="there is no conflict with {target}"
            "[ (the PR below it landed as new commits: run {rebase} and push)]",
            brief="no conflict with {target}",
            step="the conflict with {target} is resolved"
            "[ (the PR below it landed as new commits: run {rebase} and push)]",
            blocker=BlockerCode.CONFLICT,
            listed=Listed.ALWAYS,
            grace=Grace.IN_A_RUN,
        ),
        failed=Ending(
            clause="conflict with {target}",
            label="conflict with the target branch",
            next="[In conflict: {paths}. ][The PR below it landed as new commits. Run {rebase}"
            "|Rebase or merge {target}], push, then comment {merge} again.",
        ),
    ),
    Record(
        "mergeability_unknown",
        next=WAIT,
        need=Need(
            goal="GitHub has computed whether it merges cleanly",
            brief="GitHub's merge check",
            step="GitHub computes whether it merges cleanly",
        ),
    ),
    Record(
        "review_required",
        next=ASK,
        who=MAINTAINER,
        need=Need(
            goal="the required reviews approve it[ ({approver} must approve it)]"
            "[ (its base was changed from {state} to {target}, and a rule that dismisses stale "
            "approvals dismisses them then: approve it again)]",
            brief="review",
            blocker=BlockerCode.REVIEW_REQUIRED,
            is_named=True,
            listed=Listed.ALWAYS,
            grace=Grace.NONE,
        ),
    ),
    Record(
        "changes_requested",
        next=FIX,
        who=AUTHOR,
        need=Need(
            goal="no reviewer requests changes",
            brief="requested changes",
            step="the reviewers who asked for changes approve it, or their reviews are dismissed",
            blocker=BlockerCode.CHANGES_REQUESTED,
            grace=Grace.NONE,
        ),
    ),
    Record(
        "conversations_unresolved",
        next=ASK,
        who=MAINTAINER,
        need=Need(
            goal="all conversations are resolved",
            brief="open conversations",
            blocker=BlockerCode.CONVERSATIONS_UNRESOLVED,
            grace=Grace.NONE,
            follows_rules=True,
        ),
    ),
    Record(
        "check_pending",
        next=WAIT,
        need=Need(
            goal="[check {name} passes (running)"
            "|the required checks of the PR itself have finished]",
            brief="[check {name}|checks of the PR]",
            step="[check {name} passes|the required checks of the PR itself finish]",
            blocker=BlockerCode.CHECK_PENDING,
            is_named=True,
            listed=Listed.ALWAYS,
            follows_rules=True,
        ),
    ),
    Record(
        "check_failing",
        next=FIX,
        who=AUTHOR,
        need=Need(
            goal="[check {name} of the PR itself passes (it failed; the author fixes the cause and "
            "pushes, or runs it again)"
            "|no required check of the PR itself fails (the author fixes those that do)]",
            brief="[failed check {name}|failed checks of the PR]",
            step="[check {name} passes after a fix or another run"
            "|the failed checks of the PR itself pass]",
            met="no required check of the PR itself fails",
            blocker=BlockerCode.CHECK_FAILING,
            is_named=True,
            listed=Listed.ALWAYS,
            follows_rules=True,
        ),
    ),
    Record(
        "check_missing",
        next=FIX,
        who=AUTHOR,
        need=Need(
            goal="{name|every required check} has run on the PR itself, which GitHub requires "
            "before a merge (the author runs CI there)",
            brief="[check {name}|checks of the PR]",
            met="the required checks have reported on the PR itself",
            blocker=BlockerCode.CHECK_MISSING,
            is_named=True,
            listed=Listed.OPEN,
            follows_rules=True,
        ),
    ),
    Record(
        "stacked",
        next=RESUBMIT,
        who=AUTHOR,
        need=Need(
            goal="[{below}, which {below_are} below it in its stack, {below_have} been merged"
            "|the PRs below it in its stack on GitHub have been merged]"
            "[ ({absent} {absent_are} not in the queue: comment {merge} here again to submit the "
            "stack)]",
            brief="[{below} of its stack|its stack]",
            step="[{below} of its stack {below_are} merged"
            "|the PRs below it in its stack on GitHub are merged]",
            met="every PR below it in its stack has been merged",
            blocker=BlockerCode.STACKED,
            is_named=True,
            listed=Listed.OPEN,
            grace=Grace.IN_A_RUN,
        ),
    ),
    Record(
        "depends_on",
        next=WAIT,
        need=Need(
            goal="[{below}, on which it depends, {below_have} been merged"
            "|the PRs on which it depends have been merged]",
            brief="[the merge of {below}|the PRs on which it depends]",
            step="[{below}, on which it depends, {below_are} merged"
            "|the PRs on which it depends are merged]",
            met="every PR on which it depends has been merged",
            blocker=BlockerCode.DEPENDS_ON,
            is_named=True,
            listed=Listed.OPEN,
            grace=Grace.NONE,
            is_patient=True,
        ),
    ),
    Record(
        "dependency_lost",
        next=FIX,
        who=AUTHOR,
        need=Need(
            goal="the line `Depends-On` of its description names PRs that can be merged first"
            "[ ({dependency}: the author removes or corrects the line)]",
            brief="a valid line `Depends-On`",
            step="the author removes or corrects the line `Depends-On` of its description"
            "[ ({dependency})]",
            blocker=BlockerCode.DEPENDENCY_LOST,
            is_named=True,
            listed=Listed.OPEN,
            grace=Grace.NONE,
        ),
    ),
    Record(
        "not_before",
        next=WAIT,
        need=Need(
            goal="[it is {until}, before which its description lets no merge happen"
            "|the time has come before which its description lets no merge happen]",
            brief="[{until}|the time in its description]",
            step="[it is {until}|the time in its description comes]",
            met="its description names no time that is yet to come",
            listed=Listed.OPEN,
            grace=Grace.NONE,
            is_patient=True,
        ),
    ),
    Record(
        "not_before_unreadable",
        next=FIX,
        who=AUTHOR,
        need=Need(
            goal="the line `Not-Before` of its description can be read[ ({cause} cannot: the "
            "author writes a time such as `2026-12-01T09:00+01:00`)]",
            brief="a valid line `Not-Before`",
            step="the author corrects the line `Not-Before` of its description, for example to "
            "`2026-12-01T09:00+01:00`",
            blocker=BlockerCode.NOT_BEFORE_UNREADABLE,
            is_named=True,
            listed=Listed.OPEN,
            grace=Grace.NONE,
        ),
    ),
    Record(
        "undoes_landed_work",
        next=FIX,
        who=AUTHOR,
        need=Need(
            goal="its merge takes back no merged work, or says so[ (it would take back {undone}: "
            "the author rebases it onto {target} and pushes, or comments {declare} if that is "
            "meant)]",
            brief="merged work[: it would take back {undone}]",
            step="the author rebases it, so that it does not take back {undone|merged work}"
            "[, or comments {declare} if that is meant]",
            met="[whether it takes back merged work was not judged: {cause}"
            "|its merge takes back no merged work]",
            listed=Listed.OPEN,
            grace=Grace.NONE,
        ),
    ),
    Record(
        "waits_for_rule",
        next=ASK,
        who=MAINTAINER,
        need=Need(
            goal="[rule {rule}|each rule of the queue] lets it go on[ (it waits for {awaited})]",
            brief="[{awaited}|the rules of the queue]",
            met="no rule of the queue makes it wait",
            listed=Listed.OPEN,
        ),
    ),
    Record(
        "provider_queued",
        next=ASK,
        who=MAINTAINER,
        need=Need(
            goal="a maintainer removes the PR from GitHub's own merge queue, or lets that queue "
            "merge it",
            brief="GitHub's own merge queue",
            met="GitHub's own merge queue does not contain the PR",
            blocker=BlockerCode.PROVIDER_QUEUED,
            listed=Listed.OPEN,
        ),
    ),
    Record(
        "unsigned",
        next=FIX,
        who=AUTHOR,
        need=Need(
            goal="the author signs all commits of the PR",
            brief="signatures",
            met="all its commits have verified signatures",
            blocker=BlockerCode.UNSIGNED,
            listed=Listed.OPEN,
        ),
    ),
    Record(
        "rule_unmet",
        next=ASK,
        who=MAINTAINER,
        need=Need(
            goal="[rule {name} is satisfied|every rule of {target} is satisfied]",
            brief="[rule {name}|a rule]",
            blocker=BlockerCode.OTHER,
            is_named=True,
            listed=Listed.OPEN,
        ),
    ),
    Record(
        "impacted_targets_missing",
        next=WAIT,
        need=Need(
            goal="CI has uploaded the impacted targets[ of {head}]", brief="impacted targets"
        ),
    ),
    Record(
        "fork_needs_person",
        next=ASK,
        who=MAINTAINER,
        need=Need(
            goal="a person with write access comments {merge}",
            brief="{merge} by a person with write access",
            met="it needs no approval as a PR from a fork",
            grace=Grace.NONE,
        ),
        refused=Refusal(
            "This PR comes from a fork: a person with write access must comment {merge} on it."
        ),
    ),
    Record(
        "workflows_permission_missing",
        next=ASK,
        who=OPERATOR,
        need=Need(
            goal="Headgate has the permission “Workflows: write” (an owner of the repository "
            "grants it)",
            brief="permission “Workflows: write”",
            step="an owner of the repository grants Headgate the permission “Workflows: write”",
            met="Headgate has the permissions that it needs",
        ),
    ),
    Record(
        "no_evidence",
        next=ASK,
        who=MAINTAINER,
        retryable=True,
        need=Need(
            goal="its skipped checks run on the test branch (change the workflow, then comment "
            "{merge})",
            brief="checks that run",
            listed=Listed.OPEN,
        ),
        aside=Aside("{skipped|}", "{run_skipped|}"),
    ),
)
