"""Why a run did not succeed, or succeeded excused, as the sentence about the pull request."""

from service.mergequeue.reasons.record import CauseRecord

RECORDS = (
    CauseRecord(
        code="quarantined_only",
        text="Only quarantined tests failed, so the run counts as passed.",
    ),
    CauseRecord(code="infra", text="The CI machines failed, not the code.", is_outside=True),
    CauseRecord(
        code="interrupted", text="CI was stopped before it gave a result.", is_outside=True
    ),
    CauseRecord(code="never_started", text="A required check never started.", is_outside=True),
    CauseRecord(code="base_red", text="{target} fails the same way."),
    CauseRecord(
        code="repeated_failure",
        text="Unrelated PRs fail the same way, so no PR is blamed for it.",
    ),
    CauseRecord(
        code="known_flaky",
        text="This looks like flaky tests, not like your change; the retries are used up.",
        is_outside=True,
    ),
    CauseRecord(
        code="no_evidence",
        text="Checks were skipped, so the change is untested.",
        is_outside=True,
    ),
    CauseRecord(code="timeout", text="The checks did not finish in time."),
    CauseRecord(
        code="ahead_fault", text="The cause is {prs|a PR ahead}, not this PR.", blames_one=True
    ),
    CauseRecord(
        code="interaction", text="It fails only together with {prs|the PRs ahead}.", blames_one=True
    ),
    CauseRecord(
        code="pr_fault",
        text="All PRs ahead passed, so the cause is probably in this PR or in its combination "
        "with {target}.",
        blames_one=True,
    ),
)
