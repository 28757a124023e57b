"""The one definition of each queue setting: type, default, bounds and documentation.

The request and answer models, the OpenAPI document, `--set` of the command line and
docs/reference/queue-settings.md are made from `QueueConfig`.
"""

# ruff: noqa: RUF009 - `setting` returns a field, whose default is immutable

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from service.landed_work import GENERATED
from service.mergequeue.engine.rules import EntryRule
from service.mergequeue.engine.sensitive_paths import SENSITIVE_PATHS
from service.settings import Chars, Form, Items, Range, Template, definitions, setting
from service.vocabulary import ConflictRule, MergeMethod


class Mode(StrEnum):
    """One line, or lanes by impacted targets."""

    SINGLE = "SINGLE"
    PARALLEL = "PARALLEL"


class Toggle(StrEnum):
    """`directMergeMode`."""

    OFF = "OFF"
    ALWAYS = "ALWAYS"


class OptimizationMode(StrEnum):
    """The kinds of probes that may take an earlier result."""

    OFF = "OFF"
    BISECTION_SKIP_REDUNDANT_TESTS = "BISECTION_SKIP_REDUNDANT_TESTS"


class ConfirmFailures(StrEnum):
    """The cases in which a second run confirms a failure before a pull request is rejected.

    ALWAYS: also of a pull request that was tested alone. BISECTION: only of a culprit found in a
    batch (docs/design/testing.md 8.2).
    """

    OFF = "OFF"
    BISECTION = "BISECTION"
    ALWAYS = "ALWAYS"


class UndoneWork(StrEnum):
    """The treatment of merges that would take back merged work (docs/design/undone-work.md 6)."""

    OFF = "OFF"
    WARN = "WARN"
    HOLD = "HOLD"


class Hedging(StrEnum):
    """The uses of spare slots for tests of alternative bases."""

    OFF = "OFF"
    SPARE_SLOTS = "SPARE_SLOTS"


class BatchSizing(StrEnum):
    """The ways to choose the size of batches."""

    FIXED = "FIXED"
    ADAPTIVE = "ADAPTIVE"


class FairShares(StrEnum):
    """The order of waiting pull requests inside a priority (docs/design/fair-shares.md 1)."""

    OFF = "OFF"
    SUBMITTERS = "SUBMITTERS"
    PEOPLE_AND_AGENTS = "PEOPLE_AND_AGENTS"


class ForkPolicy(StrEnum):
    """The admission of pull requests from forks (docs/design/security.md 4)."""

    REQUIRE_MAINTAINER = "REQUIRE_MAINTAINER"
    DENY = "DENY"


class ConflictRadar(StrEnum):
    """The uses of the mirror to compare open pull requests (docs/design/conflicts.md 2)."""

    OFF = "OFF"
    ON = "ON"


class TestBranchConstruction(StrEnum):
    """The ways to publish a finished scratch branch (docs/design/provider.md 7.2)."""

    __test__ = False
    RENAME_TEMP_BRANCH = "RENAME_TEMP_BRANCH"
    PUSH_NEW_BRANCH_FROM_TEMP = "PUSH_NEW_BRANCH_FROM_TEMP"


class RedTarget(StrEnum):
    """Responses to a check that turns red on the target branch (docs/design/red-target.md 1).

    REPORT: the culprit is searched, and its pull request is told. REVERT: its revert is also
    opened and submitted.
    """

    OFF = "OFF"
    REPORT = "REPORT"
    REVERT = "REVERT"


class SettingSource(StrEnum):
    """The sources of the value of a setting.

    FILE: a file of the repository. API: it was set on the queue, by the API, the command line or
    the first `/merge`. DEFAULT: neither.
    """

    DEFAULT = "DEFAULT"
    API = "API"
    FILE = "FILE"


@dataclass(frozen=True, slots=True)
class BatchingRule:
    """Entries with a matching target travel alone; the pattern is exact or ends in `*`."""

    target_pattern: str
    policy: str = "ISOLATE"


ListValue = (
    tuple[str, ...] | tuple[BatchingRule, ...] | tuple[ConflictRule, ...] | tuple[EntryRule, ...]
)
ConfigValue = bool | int | float | str | None | ListValue
"""The types of the values of settings."""


RULES_NEED_LANDING = (
    "needs `mergeMethod: MERGE_COMMIT`, or `SQUASH` with `landTestedCommits: true`: only there the "
    "tested merge itself lands, and another one knows no rules"
)
"""The need of `conflictRules`, in words that follow the name of the setting."""


TITLE_PLACEHOLDERS = (
    "title",
    "number",
    "author",
    "reviewers",
    "head_branch",
    "target",
    "run_id",
    "run_url",
)
CO_AUTHORS = "co_authors"
COMMIT_PLACEHOLDERS = (*TITLE_PLACEHOLDERS, "body", CO_AUTHORS)
"""The placeholders that commit texts may contain as `{{ name }}`."""


@dataclass(frozen=True, slots=True)
class QueueConfig:
    """All settings of a queue; those the engine does not read are carried for the shell."""

    mode: Mode = setting(
        Mode.SINGLE,
        "one line, or lanes: pull requests whose impacted targets do not overlap do not wait for "
        "each other",
        "`PARALLEL` when CI can report what a pull request impacts and most impact different "
        "targets",
    )
    shadow: bool = setting(
        False,
        "the queue tests and decides as always, beside another merge queue, and lands nothing; it "
        "writes nothing on pull requests and does not answer commands",
        "true to see for a week what Headgate would do, see [Try it beside the old queue]"
        "(../how-to/move-from-another-queue.md#try-it-beside-the-old-queue)",
    )
    concurrency: int = setting(
        1,
        "test runs at the same time",
        "as many runs as CI can execute at the same time; 1 tests only the first in line",
        Range(1, 1000),
        cli_default=5,
    )
    bisection_concurrency: int = setting(
        1,
        "test runs that search for the culprit of a failure; 0: they share `concurrency`; set to "
        "`concurrency` at creation if it is not sent",
        "2 or more with batches, so that a search does not delay the line",
        Range(0, 1000),
        cli_default=5,
    )
    testing_timeout_minutes: int = setting(
        300,
        "a test run that takes longer fails; nobody is blamed if CI has not begun its checks",
        "twice the duration of the slowest usual run",
        Range(1, 10080),
    )
    check_start_timeout_minutes: int = setting(
        15,
        'a run fails as "never started" if a required check has not reported after this time',
        "more if jobs wait longer for a CI machine",
        Range(1, 1440),
    )
    not_ready_timeout_hours: float = setting(
        24,
        "a pull request that is not ready, or waits because CI's machines failed it or its merge "
        "got no answer, leaves the queue after this time; 0: never",
        "0 to let drafts and open reviews wait without limit",
        Range(0, 720),
    )
    can_optimistically_merge: bool = setting(
        False,
        "a run that passes clears the failed runs that its base contains",
        "true with flaky tests, if the checks of a later run also test what is in its base",
    )
    pending_failure_depth: int = setting(
        0,
        "how many runs behind a failed run are awaited before the failure counts",
        "1 together with `canOptimisticallyMerge` at low load; 0 with adaptive batches",
        Range(0, 1000),
    )
    batch: bool = setting(
        False,
        "several pull requests in one test run",
        "true when the queue is longer than CI has slots",
    )
    batching_min_size: int = setting(
        4,
        "the most pull requests in one run; a group of this size starts at once",
        "a larger size uses less CI and makes the search after a failure longer; 16 with "
        "`ADAPTIVE`",
        Range(1, 1000),
    )
    batching_max_wait_time_minutes: int = setting(
        5,
        "a smaller group starts after this time",
        "0 to start without waiting for more pull requests",
        Range(0, 10080),
    )
    batch_sizing: BatchSizing = setting(
        BatchSizing.FIXED,
        "whether the size follows the load and the chance of failure",
        "`ADAPTIVE` when the load changes over the day",
    )
    batching_rules: tuple[BatchingRule, ...] = setting(
        (),
        "pull requests that impact a matching target are tested alone; a pattern is exact, or ends "
        "in `*`. `--set` also takes the patterns as a comma list",
        "for targets that often break others, such as migrations or build files",
    )
    optimization_mode: OptimizationMode = setting(
        OptimizationMode.OFF,
        "whether the search for a culprit may use earlier results",
        "`BISECTION_SKIP_REDUNDANT_TESTS` when runs are expensive and tests are not flaky",
    )
    result_reuse_enabled: bool = setting(
        True,
        "an earlier result for the same tree counts",
        "false when a result depends on more than the tree, for example on the date",
    )
    direct_merge_mode: Toggle = setting(
        Toggle.OFF,
        "a pull request whose head contains the tip lands by its own checks",
        "`ALWAYS` when the checks on a pull request are as good as those on a test branch",
        cli_default=Toggle.ALWAYS,
    )
    auto_retry_limit: int = setting(
        1,
        "retries of a run that failed without blame. If CI's machines failed it, the pull request "
        "then waits beside the line, 5 minutes at first and at most 60",
        "0 if CI restarts broken machines itself",
        Range(0, 10),
    )
    flaky_knowledge_enabled: bool = setting(
        True,
        "a check that fails only by known flaky tests is run again and blames no pull request",
        "false when every failure counts, also of known flaky tests",
    )
    early_failures: bool = setting(
        True,
        "a required check [fails early](../explanation/early-failures.md), by a failed job or step",
        "false when a workflow repairs a failed job by itself, for example by starting it again",
    )
    max_excused_failures: int = setting(
        5,
        "how many quarantined tests may fail in one run and be excused; if more fail, none is "
        "excused",
        "lower to notice sooner that many tests are quarantined",
        Range(0, 1000),
    )
    confirm_failures: ConfirmFailures = setting(
        ConfirmFailures.ALWAYS,
        "when a failure is confirmed by a second run before a pull request is rejected. `ALWAYS`: "
        "also if it was tested alone, unless the same check fails on its own head. `BISECTION`: "
        "only a culprit found in a batch",
        "`BISECTION` to save the second run of a pull request that was tested alone, `OFF` when "
        "tests are never flaky",
    )
    hedging: Hedging = setting(
        Hedging.OFF,
        "whether spare slots test on a second base at the same time",
        "when slots are often idle and failures common",
    )
    hedge_threshold: float = setting(
        0.3,
        "the chance of failure ahead from which hedging starts",
        "higher to spend fewer slots on it",
        Range(0.05, 0.95),
    )
    full_suite: bool = setting(
        False,
        "the required checks test the whole tree, so that with optimistic merging one pass settles "
        "every run in its base",
        "true if every check always tests everything",
    )
    required_statuses: tuple[str, ...] | None = setting(
        None,
        "instead of those that the branch's rules require; `[]`: explicitly none",
        "when the queue must wait for other checks than the branch's rules name",
        Items("names", 255, are_distinct=True),
    )
    head_only_statuses: tuple[str, ...] = setting(
        (),
        "required statuses that judge the pull request and not its tree, such as its title or its "
        "labels: each head must have passed them, and no test branch is asked",
        "for a check that fails or never runs on the draft pull requests of the queue",
        Items("names", 255, are_distinct=True),
    )
    status_reporters: tuple[str, ...] = setting(
        (),
        "whose reports count for a required status that the branch's rules bind to no App, instead "
        "of what Headgate learned: `NAME=APP` with the number of the App, `NAME=@ID` for commit "
        "statuses of the account with this number, `NAME=any` for every report",
        "when another App reports the name now, or a person's commit status is meant; better, "
        "choose the App in the branch's rules",
        Items("reporters", 300, are_distinct=True, form=Form.REPORTER),
    )
    merge_method: MergeMethod = setting(
        MergeMethod.SQUASH,
        "how pull requests land",
        "as pull requests are merged by hand in the repository",
    )
    land_tested_commits: bool = setting(
        False,
        "with `SQUASH` and `REBASE`: whether the tested commits themselves become the branch, a "
        "whole batch or chain in one update, instead of a merge call for each pull request; GitHub "
        "then shows a pull request as closed, not as merged, and a comment names its commit",
        "true if the branch must never have a tree that was not tested, not even between two pull "
        "requests of a batch, see [Landing](../design/landing.md#2-two-modes)",
    )
    commit_title: str | None = setting(
        None,
        "the title of the commit that lands, for squash and merge commits; none: as the repository "
        "sets it",
        "`{{ title }} (#{{ number }})` to have one form in every repository, see "
        "[Commit texts](#commit-texts)",
        Template(256, TITLE_PLACEHOLDERS, is_line=True),
    )
    commit_body: str | None = setting(
        None,
        "the body of that commit, with trailers in its last paragraph; none: as the repository "
        "sets it",
        "for trailers, or to have the text of the pull request in the history",
        Template(4000, COMMIT_PLACEHOLDERS, whole_lines=(CO_AUTHORS,)),
    )
    delete_branch: bool = setting(
        False,
        "whether Headgate deletes the branch of a pull request after it has landed it: never of a "
        "fork, and never a branch that has moved, is protected, or is used by another open pull "
        "request",
        "true unless the repository itself deletes branches after a merge",
    )
    create_prs_for_testing_branches: bool = setting(
        True,
        "whether a draft pull request carries each test branch",
        "leave it out: the workflow files decide, see [Kind of test branch](#kind-of-test-branch)",
    )
    test_branch_construction_mode: TestBranchConstruction = setting(
        TestBranchConstruction.RENAME_TEMP_BRANCH,
        "how a finished test branch is published",
        "`PUSH_NEW_BRANCH_FROM_TEMP` when CI or rules do not see a renamed branch",
    )
    skipped_statuses_pass: bool = setting(
        True,
        "whether a skipped or neutral required check may count: if it was also skipped on the pull "
        "request's own head, has run on something that landed in the last 90 days, and another "
        "required check ran. Otherwise the pull request waits as `no_evidence`",
        "false to count a skipped check as failed",
    )
    optional_statuses: tuple[str, ...] = setting(
        (),
        "required checks that may be skipped everywhere: such a skip counts although the check "
        "never runs on test branches. A check that fails still fails, and another required check "
        "must run. No effect while `skippedStatusesPass` is false",
        "when you accept that a job, for example one that runs only on `merge_group`, tests "
        "nothing here",
        Items("names", 255, are_distinct=True),
    )
    comments_enabled: bool = setting(
        True,
        "whether Headgate comments on pull requests",
        "false if you do not want comments",
    )
    commands_enabled: bool = setting(
        True,
        "whether commands in comments are accepted",
        "false if you do not want commands in comments",
    )
    foreign_commands_enabled: bool = setting(
        False,
        "whether commands of the queue that was here before work as the same command of Headgate: "
        "`bors r+`, `@mergifyio queue`, `/trunk merge`, `@kodiakhq merge` and those that cancel. "
        "Otherwise the first of them on a pull request is answered with the command to use",
        "true while people still write them, once that queue's App is uninstalled",
    )
    status_check_enabled: bool = setting(
        True,
        "whether Headgate reports a check run on pull requests",
        "false if you do not want the check run",
    )
    label_commands_enabled: bool = setting(
        True,
        "whether the label `enqueueingLabel` submits a pull request",
        "false if labels must not submit",
    )
    state_labels_enabled: bool = setting(
        False,
        "whether a pull request has a label for its state: `headgate:waiting`, "
        "`headgate:queued`, `headgate:testing`, `headgate:passed` or `headgate:failed`",
        "true for lists of pull requests by state; each state costs two calls",
    )
    extension_enabled: bool = setting(
        True,
        "no effect; accepted for clients that send it",
    )
    enqueueing_label: str = setting(
        "headgate-submit",
        "the label that submits, in upper or lower case. Removing it cancels. Headgate removes "
        "it if the submission ends without landing",
        "when another label has this name",
        Chars(50),
    )
    fork_policy: ForkPolicy = setting(
        ForkPolicy.REQUIRE_MAINTAINER,
        "whether pull requests from forks may enter",
        "`DENY` when forks must never be tested with your CI's permissions",
    )
    sensitive_paths: tuple[str, ...] = setting(
        SENSITIVE_PATHS,
        "files that a fork's pull request changes only with consent of a person with maintain "
        "access; globs in which `*` is any run of characters, and one without `/` names a file in "
        "any folder",
        "to add the files by which your CI decides what runs with secrets; given paths replace the "
        "default ones",
        Items("paths", 100),
    )
    allowed_bot_submitters: tuple[str, ...] = setting(
        (),
        "bots that may submit and cancel",
        "to let a dependency bot submit its own pull requests",
        Items("logins", 100),
    )
    red_target: RedTarget = setting(
        RedTarget.OFF,
        "whether a required check, or one of `redTargetChecks`, that turns red on the target "
        "branch starts a search for the pull request that broke it. `REPORT`: a comment on that "
        "pull request names the proof. `REVERT`: a revert is also opened and submitted as urgent",
        "`REPORT` when some checks run only after the merge; `REVERT` once its reports were right, "
        "see [When main turns red](../how-to/red-main.md)",
    )
    red_target_checks: tuple[str, ...] = setting(
        (),
        "further checks that are watched on the target branch, which the queue does not wait for",
        "for nightly or slow checks that run after the merge",
        Items("names", 255, are_distinct=True),
    )
    red_target_runs: int = setting(
        12,
        "test runs that one search may use; with 12 the culprit among up to five pull requests is "
        "found in the time of one run",
        "more when many pull requests land between two runs of a watched check",
        Range(4, 100),
    )
    conflict_radar: ConflictRadar = setting(
        ConflictRadar.OFF,
        "whether open pull requests are compared with each other, also those that nobody has "
        "queued, so that a conflict is known before it costs a test run; it writes nothing on pull "
        "requests",
        "`ON` where many pull requests are open at the same time, see [Conflicts]"
        "(../how-to/conflicts.md#see-conflicts-before-they-happen)",
    )
    conflict_rules: tuple[ConflictRule, ...] = setting(
        (),
        "rules that resolve conflicts in files to which lines are only added; only where the "
        "tested merge itself lands: with `MERGE_COMMIT`, or with `SQUASH` and `landTestedCommits`",
        "for changelogs and lists that most pull requests add to, see [Conflicts in append-only "
        "files](../how-to/conflicts.md#resolve-conflicts-in-append-only-files)",
    )
    undone_work: UndoneWork = setting(
        UndoneWork.HOLD,
        "what becomes of a pull request whose merge would take back merged work, and says nothing "
        "of it: `HOLD`: it waits until it is rebased or declares it. "
        "`WARN`: its comment says so, and it lands. `OFF`: nothing is judged",
        "`WARN` to see first what would wait, see "
        "[Undone work](../how-to/agents.md#when-a-pull-request-takes-back-merged-work)",
    )
    undone_work_days: int = setting(
        30,
        "how many days back merged work is guarded like this, as far as the queue has records",
        "fewer if old work is often removed on purpose",
        Range(1, 365),
    )
    generated_paths: tuple[str, ...] = setting(
        GENERATED,
        "files that programs write, in which merged work is not guarded; globs as in "
        "`sensitivePaths`, matched against the path after a `/`",
        "to add files that your programs write, such as a vendored folder; given paths replace the "
        "default ones",
        Items("paths", 100),
    )
    fair_shares: FairShares = setting(
        FairShares.SUBMITTERS,
        "the order inside a priority. `OFF`: of arrival. `SUBMITTERS`: submitters take turns, so "
        "that one who submits many does not delay the others. `PEOPLE_AND_AGENTS`: the same, and "
        "people and agents take turns with each other; an agent is an API token, an App or another "
        "bot account",
        "`PEOPLE_AND_AGENTS` when agents submit more than people; `OFF` to keep to the order of "
        "arrival whoever submits, see [Fair shares](../design/fair-shares.md)",
    )
    open_entries_per_submitter: int = setting(
        0,
        "the pull requests that one person, App or token has in the queue at a time; 0: no limit. "
        "One more is refused with `over_budget`",
        "when one agent must not fill the queue; tokens can have "
        "[limits of their own](../how-to/agents.md#budgets)",
        Range(0, 5000),
    )
    ci_minutes_per_submitter: int = setting(
        0,
        "the CI minutes that the test runs of one person, App or token take in a day (UTC); 0: no "
        "limit. After that its pull requests are refused with `over_budget` until the next day",
        "when CI minutes are dear",
        Range(0, 1_000_000),
    )
    rules: tuple[EntryRule, ...] = setting(
        (),
        "which pull requests enter by themselves, go first, or wait, and when",
        "for labels that submit or go first, freezes, approvals on release branches, see "
        "[Rules](../how-to/rules.md)",
    )

    @property
    def rules_for_conflicts(self) -> tuple[ConflictRule, ...]:
        """Return the rules that resolve conflicts, none unless the tested merge itself lands."""
        is_merge = self.merge_method is not MergeMethod.REBASE
        return self.conflict_rules if self.lands_commits and is_merge else ()

    @property
    def lands_commits(self) -> bool:
        """Return whether the commits of a test branch may become the target branch."""
        return self.merge_method is MergeMethod.MERGE_COMMIT or self.land_tested_commits


SETTINGS = definitions(QueueConfig)

RANGES: Mapping[str, Range] = {
    name: each.bounds for name, each in SETTINGS.items() if isinstance(each.bounds, Range)
}

CLI_DEFAULTS: Mapping[str, ConfigValue] = {
    name: each.cli_default for name, each in SETTINGS.items() if each.cli_default is not None
}
"""The values that the command line, the dashboard and the first `/merge` set."""


def out_of_range(changes: Mapping[str, ConfigValue]) -> str | None:
    """Return the first change that names no setting or is a number out of range, else None."""
    for name, value in changes.items():
        if name not in SETTINGS:
            return name
        bounds = RANGES.get(name)
        if bounds is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            return name
        if not bounds.minimum <= value <= bounds.maximum:
            return name
    return None


def changed(config: QueueConfig, changes: Mapping[str, ConfigValue]) -> QueueConfig:
    """Return the settings with some of them replaced. The changes have passed `out_of_range`."""
    return replace(config, **changes)  # type: ignore[arg-type]
