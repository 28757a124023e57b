"""The table of facts: who makes one, what proves it, what it moves (docs/design/provenance.md 3).

The page is written from it. The rules themselves are in the modules that each row names.
"""

from dataclasses import dataclass

from service.provenance import FactKind, Proof


@dataclass(frozen=True, slots=True)
class FactRule:
    """The permitted effects of a fact of one kind.

    `proofs`: each of them is enough for everything in `moves`. `lowered_by`: the setting by which
    an administrator accepts the weaker proofs after the first one; the landing then says so.
    `checked_in` are the modules that refuse a fact without its proof.
    """

    kind: FactKind
    makers: str
    proofs: tuple[Proof, ...]
    moves: str
    otherwise: str
    checked_in: tuple[str, ...]
    lowered_by: str = ""


_OPERATIONS = "service/mergequeue/operations"
_DETECTOR = "service/testhealth/detector"
_VERDICT = "service/mergequeue/engine/culprits/verdict.py"
_PERMITS = f"{_OPERATIONS}/permits.py"
_PEOPLE = f"{_OPERATIONS}/comments.py"
_COMMANDS = f"{_OPERATIONS}/comment_commands.py"
_CONSENTS = (f"{_OPERATIONS}/consents.py", "service/mergequeue/store/consents.py")
_REPORTERS = f"{_OPERATIONS}/requirements.py"
_JOBS = "service/testhealth/reports/jobs.py"

RULES: tuple[FactRule, ...] = (
    FactRule(
        FactKind.CHECK_RUN,
        "an App that is installed with `checks: write`; a job with its own token, in the name of "
        "the CI's App",
        (Proof.READ,),
        "a required check passed or failed on exactly the commit that lands",
        "waits; a report of another App or kind than the one that reports this name is shown and "
        "counts for nothing, nor does one that CI made for another head than the test branch",
        (
            *("bot/github/outcomes.py", "service/check_reports.py"),
            *("service/mergequeue/operations/run_reports.py", _REPORTERS, _VERDICT),
        ),
    ),
    FactRule(
        FactKind.COMMIT_STATUS,
        "everybody with write access, and a job with `statuses: write`",
        (Proof.READ,),
        "a required name passed or failed, if this account reports it on the target branch, or the "
        "rules name its App",
        "waits; it never stands in for a check run of the same name",
        ("bot/github/outcomes.py", _REPORTERS, _VERDICT),
    ),
    FactRule(
        FactKind.SKIPPED_CHECK,
        "the CI, by conditions in a workflow file that the pull request may change",
        (Proof.READ,),
        "a required check needs no pass: it was skipped on the heads as well and ran lately on "
        "what landed, or `optionalStatuses` names it",
        "waits, with where the check would run",
        (_VERDICT, _PERMITS),
    ),
    FactRule(
        FactKind.CI_JOB,
        "the CI, for each job that asks it: GitHub Actions, or a CI whose issuer and project the "
        "setting `report_issuers` names",
        (Proof.JOB,),
        "whose report an upload is: one job of one attempt of one run, on one commit",
        "401 with the reason, or 422 where a field contradicts the token",
        (
            "bot/github/oidc.py",
            "bot/oidc/other_ci.py",
            "service/testhealth/operations/classify.py",
            _JOBS,
        ),
    ),
    FactRule(
        FactKind.UPLOADED_REPORT,
        "every job that has a token of role `ci`; a job by its own OIDC token",
        (Proof.JOB, Proof.RUN, Proof.TOKEN),
        "a failed check counts as passed: every failed test is excused or known, and nothing else "
        "failed",
        "the check stays failed, with the remedy; the results are shown and order suspicion",
        (
            "service/testhealth/operations/classify.py",
            f"{_DETECTOR}/completeness.py",
            "service/evidence/failed_checks.py",
            "service/evidence/other_ci.py",
            _JOBS,
        ),
        lowered_by="excuse_proof",
    ),
    FactRule(
        FactKind.COLLECTED_REPORT,
        "every job of the run whose artifacts are read",
        (Proof.RUN,),
        "health of tests on the target branch; a failed check only where a setting accepts the run "
        "as proof",
        "as an uploaded report",
        ("service/testhealth/operations/collected.py", f"{_DETECTOR}/completeness.py"),
        lowered_by="excuse_proof",
    ),
    FactRule(
        FactKind.EXIT_CODE,
        "the job, through its report",
        (Proof.JOB,),
        'the report is complete: the code means "tests failed" and nothing else',
        "the report is not complete, and excuses nothing",
        (f"{_DETECTOR}/completeness.py", "service/evidence/upload_completeness.py"),
        lowered_by="excuse_proof",
    ),
    FactRule(
        FactKind.EARLY_FAILURE,
        "every job that has a token of role `ci`; a job by its own OIDC token",
        (Proof.JOB,),
        "a required check that the job can fail counts as failed before it has ended, if the "
        "failure is final, its test is not quarantined, not known as flaky and not red on the "
        "target branch, and earlier runs confirm the rule",
        "stored and shown; the report of the job decides",
        (
            "service/testhealth/operations/classify.py",
            "service/testhealth/operations/early_failures.py",
            "service/evidence/early_failures.py",
            f"{_OPERATIONS}/early_failures.py",
        ),
    ),
    FactRule(
        FactKind.TEST_VERDICT,
        "Headgate, from reports of the target branch and of test branches",
        (Proof.JOB, Proof.RUN, Proof.TOKEN),
        "`flaky` or `broken`, so that a later failure may be known or quarantined",
        "the test is healthy, and its failure blames",
        (f"{_DETECTOR}/health.py", f"{_DETECTOR}/excuses.py"),
    ),
    FactRule(
        FactKind.OVERRIDE,
        "a person with write access, or a token of role `queue` or `admin`",
        (Proof.PERSON, Proof.TOKEN),
        "one test is quarantined, or never",
        "403; what the detector judges counts",
        ("service/testhealth/operations/overrides.py", f"{_DETECTOR}/quarantine.py"),
    ),
    FactRule(
        FactKind.IMPACTED_TARGETS,
        "a job of the pull request's own head; a token of role `queue` or `admin`; a fork's run "
        "that the provider confirms",
        (Proof.JOB, Proof.RUN, Proof.TOKEN),
        "which pull requests are tested side by side",
        "the pull request counts as touching every target",
        (f"{_OPERATIONS}/impacted_targets.py", f"{_OPERATIONS}/fork_runs.py"),
    ),
    FactRule(
        FactKind.COMMAND,
        "everybody who may comment or review",
        (Proof.PERSON,),
        "submits, cancels, retries, sets a priority, pauses: as far as the right read now goes, by "
        "unedited text, for the head that the provider shows",
        "refused with the missing right, or asked again with the commit",
        (_PEOPLE, "bot/commands.py"),
    ),
    FactRule(
        FactKind.LABEL,
        "everybody with triage access",
        (Proof.PERSON,),
        "submits or cancels, by whoever changed it last",
        "refused, and the label is removed",
        (_PEOPLE, _COMMANDS, "bot/github/people.py"),
    ),
    FactRule(
        FactKind.BOX,
        "everybody who may edit our comment",
        (Proof.PERSON,),
        "the command that the box stands for, if exactly one was ticked",
        "refused; the comment is written again",
        (f"{_OPERATIONS}/pressed.py", _PEOPLE, _COMMANDS),
    ),
    FactRule(
        FactKind.BUTTON,
        "everybody who may see the check run",
        (Proof.PERSON,),
        "the command that the button stands for, for the commit of its check run; never a fork's "
        "admission",
        "refused: the head is another commit",
        (f"{_OPERATIONS}/pressed.py", _PEOPLE, _COMMANDS),
    ),
    FactRule(
        FactKind.CONSENT,
        "a person with write access; with maintain access where sensitive files change",
        (Proof.PERSON,),
        "a fork's head is tested with the base repository's rights, for one head, one base and the "
        "files that the person could see",
        "not submitted; the answer is the exact command with the commit",
        (_COMMANDS, *_CONSENTS),
    ),
    FactRule(
        FactKind.REVIEW,
        "everybody; the provider's rules say whose approval counts",
        (Proof.READ,),
        "readiness, read again before the landing",
        "waits for the review",
        (f"{_OPERATIONS}/facts.py", _PERMITS),
    ),
    FactRule(
        FactKind.PULL_REQUEST,
        "its author, and everybody with write access to its branch or title",
        (Proof.READ,),
        "head, base, draft, closed, conflict: read again before the landing. Title, text and "
        "branch name alone decide nothing",
        "waits, or the submission ends",
        (f"{_OPERATIONS}/facts.py", _PERMITS),
    ),
    FactRule(
        FactKind.FACTS_FOR_RULES,
        "labels: everybody with triage access; auto-merge: with write access; title, description "
        "and branch: its author; approvals count of people with write access alone",
        (Proof.READ,),
        "what the rules say that landed in the repository's file, or that an administrator set: "
        "entering when ready, priority, waits. A fork still needs its consent, and a line of the "
        "description only makes it wait",
        "a rule that cannot be judged lets nothing in, gives no priority, and makes it wait",
        (f"{_OPERATIONS}/rulings.py", f"{_OPERATIONS}/entering.py", _PERMITS),
    ),
    FactRule(
        FactKind.DECLARED_REVERT,
        "title, text and commit messages: the author of the pull request; a command or a call: "
        "whoever may submit it; the label: everybody with triage access",
        (Proof.READ, Proof.PERSON, Proof.TOKEN),
        "a pull request may take back the landings that it names; the label covers all. It guards "
        "against accidents alone: who declares could land the removal in smaller steps",
        "waits as `undoes_landed_work`",
        ("service/landed_work.py", f"{_OPERATIONS}/facts.py", "bot/commands.py"),
    ),
    FactRule(
        FactKind.LANDED_WORK,
        "everybody who may land, or push to the target branch",
        (Proof.READ,),
        "a merge that takes it back waits, and one that brings it again ends: by git's objects, "
        "for one head and one tip. The number of a landing is that of our record; of others a "
        "message says it, and it names whom to tell",
        "not judged: it goes on, and `explain` says so",
        (
            "bot/github/gitbuild/judging.py",
            f"{_OPERATIONS}/undone_work.py",
            "service/mergequeue/engine/state/undone.py",
        ),
    ),
    FactRule(
        FactKind.WORKFLOW_FILE,
        "everybody whose change landed; a pull request brings its own",
        (Proof.READ,),
        "of the target branch alone: the kind of test branch, the reason of a skip in words, and "
        "which failed part may doom a required check",
        "unknown: the default applies, no skip counts by it, and nothing is doomed",
        (
            "bot/github/workflow_files.py",
            "bot/github/ci_plans.py",
            f"{_OPERATIONS}/vehicles.py",
            f"{_OPERATIONS}/early_failures.py",
        ),
    ),
    FactRule(
        FactKind.FAILED_PART,
        "the CI, for a job or step of a run on the commit under test; a job by its own OIDC token, "
        "for a test of its own",
        (Proof.READ, Proof.JOB),
        "a required check of the same CI run counts as failed before it has ended, if the workflow "
        "files of the target branch say so, the tested tree has the same files, and earlier runs "
        "of the queue have confirmed it. It never makes anything pass",
        "the required check is awaited to its end",
        (
            "bot/github/ci_runs.py",
            "service/provider/ci_plans.py",
            f"{_OPERATIONS}/early_failures.py",
            "service/mergequeue/early_rules.py",
        ),
    ),
    FactRule(
        FactKind.REPOSITORY_FILE,
        "everybody whose change landed",
        (Proof.READ,),
        "settings and more required names, from the target branch alone; never fewer names than "
        "the rules have",
        "the last valid settings stay, with the line of the fault",
        (f"{_OPERATIONS}/repository_files.py", f"{_OPERATIONS}/repository_file.py"),
    ),
    FactRule(
        FactKind.REQUIRED_LIST,
        "administrators of the repository, by rules; the repository file and the queue's setting",
        (Proof.READ,),
        "what a landing waits for",
        "nothing starts and nothing lands: unreadable is never empty",
        ("bot/github/protection.py", f"{_OPERATIONS}/requirements.py"),
    ),
    FactRule(
        FactKind.TARGET_BRANCH,
        "everybody who may push to it",
        (Proof.READ,),
        "the base of a run, and the expected parent of a landing",
        "no permit; planned again on the new tip",
        (_PERMITS, f"{_OPERATIONS}/reconcile.py"),
    ),
    FactRule(
        FactKind.LANDED_COMMIT,
        "the provider, asked by us",
        (Proof.READ,),
        "`MERGED`, and the next position of a unit: its tree is the tested one",
        "the hold `landing_mismatch`",
        (f"{_OPERATIONS}/proving.py",),
    ),
    FactRule(
        FactKind.TIME,
        "the provider's clock; the sender's, which proves nothing",
        (Proof.READ,),
        "the order of two acts at the provider, both by its clock; the same second is no order",
        "the stricter answer. Our clock measures waits alone",
        ("service/provenance.py", _COMMANDS, *_CONSENTS),
    ),
    FactRule(
        FactKind.WEBHOOK,
        "the provider, with our secret; whoever recorded one can send it again",
        (Proof.SIGNED,),
        "that something is read now. A comment, a box or a button is taken from it as the words of "
        "a person, once",
        "401; a repeated one changes nothing",
        ("bot/github/webhook.py", "bot/github/translate.py", "service/process/deliveries.py"),
    ),
    FactRule(
        FactKind.REFERENCE,
        "everybody who names a queue, an entry, a run or a token in a request",
        (Proof.READ,),
        "the change, if it still stands inside the transaction that makes it",
        "404 or 409",
        (f"{_OPERATIONS}/turn.py", _PERMITS, "service/accounts/access.py"),
    ),
)

BY_KIND = {rule.kind: rule for rule in RULES}
