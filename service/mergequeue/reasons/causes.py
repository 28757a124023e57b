"""Why a run did not succeed, or succeeded excused, as the sentence about the pull request."""

from service.mergequeue.reasons.record import CauseRecord

RECORDS = (
    CauseRecord("quarantined_only", "Only quarantined tests failed, so the run counts as passed."),
    CauseRecord("infra", "The CI machines failed, not the code.", is_outside=True),
    CauseRecord("interrupted", "CI was stopped before it gave a result.", is_outside=True),
    CauseRecord("never_started", "A required check never started.", is_outside=True),
    CauseRecord("base_red", "{target} fails the same way."),
    CauseRecord("repeated_failure", "Unrelated PRs fail the same way, so no PR is blamed for it."),
    CauseRecord(
        "known_flaky",
        "This looks like flaky tests, not like your change; the retries are used up.",
        is_outside=True,
    ),
    CauseRecord("no_evidence", "Checks were skipped, so the change is untested.", is_outside=True),
    CauseRecord("timeout", "The checks did not finish in time."),
    CauseRecord("ahead_fault", "The cause is {prs|a PR ahead}, not this PR.", blames_one=True),
    CauseRecord("interaction", "It fails only together with {prs|the PRs ahead}.", blames_one=True),
    CauseRecord(
        "pr_fault",
        "All PRs ahead passed, so the cause is probably in this PR or in its combination "
        "with {target}.",
        blames_one=True,
    ),
)
