"""Sentences that say what a queue does: its settings in words.

A setting that has no sentence of its own gets one from its definition, if it has another value than
the default (service/mergequeue/engine/config.py).
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from service.mergequeue.engine.config import (
    SETTINGS,
    BatchingRule,
    BatchSizing,
    ConfigValue,
    ConfirmFailures,
    ForkPolicy,
    Mode,
    QueueConfig,
    Toggle,
)
from service.mergequeue.engine.rules import EntryRule
from service.text import phrases, times
from service.text.phrases import Code, Phrase, phrase
from service.vocabulary import ConflictRule, MergeMethod

NOT_TOLD = frozenset({"extension_enabled"})
"""Settings without an effect."""

_DEFAULT = QueueConfig()

_METHODS: Mapping[MergeMethod, str] = {
    MergeMethod.SQUASH: "Each pull request lands as one squashed commit",
    MergeMethod.MERGE_COMMIT: "Each pull request lands by a merge commit",
    MergeMethod.REBASE: "The commits of each pull request land rebased",
}
_CONFIRMED: Mapping[ConfirmFailures, str] = {
    ConfirmFailures.OFF: "A failure counts at once, without a second run.",
    ConfirmFailures.BISECTION: "A culprit that was found in a batch is confirmed by a second run "
    "before it is rejected.",
    ConfirmFailures.ALWAYS: "A failure is confirmed by a second run before a pull request is "
    "rejected, unless the same check fails on its own head.",
}


class Sentence(NamedTuple):
    """A sentence about what some settings come to."""

    names: tuple[str, ...]
    text: Phrase


def sentences(config: QueueConfig) -> tuple[Sentence, ...]:
    """Return what a queue with these settings does."""
    own = tuple(Sentence(names, told(config)) for names, told in _OWN.items())
    said = NOT_TOLD.union(*_OWN)
    others = (name for name in SETTINGS if name not in said and _is_changed(config, name))
    return (*own, *(Sentence((name,), _defined(config, name)) for name in others))


def _is_changed(config: QueueConfig, name: str) -> bool:
    """Return whether a setting has another value than the default."""
    return bool(getattr(config, name) != getattr(_DEFAULT, name))


def label(name: str) -> str:
    """Return the name of a setting in words: `Bisection concurrency`."""
    return _LABELS.get(name) or name.replace("_", " ").capitalize()


_LABELS: Mapping[str, str] = {
    "batch": "Batches",
    "batching_max_wait_time_minutes": "Wait for a full batch, in minutes",
    "batching_min_size": "Batch size",
    "bisection_concurrency": "Concurrency of searches for a cause",
    "can_optimistically_merge": "Optimistic merging",
    "ci_minutes_per_submitter": "CI minutes per submitter",
    "create_prs_for_testing_branches": "Draft pull request for each test branch",
    "direct_merge_mode": "Landing by its own checks",
    "enqueueing_label": "Label that submits",
    "hedging": "Tests on a second base",
    "optimization_mode": "Search by earlier results",
    "result_reuse_enabled": "Reuse of results",
}
"""Labels of settings whose names say less; the others are their names."""


def word(value: str) -> str:
    """Return a value of a list of choices in words: `Merge commit`, `Yes`."""
    return {"true": "Yes", "false": "No"}.get(value) or value.replace("_", " ").capitalize()


def _defined(config: QueueConfig, name: str) -> Phrase:
    """Return a sentence from the definition of a setting: its label, its value, its meaning."""
    meaning = SETTINGS[name].meaning.split(". ")[0].split("; ")[0]
    pieces = meaning.split("`")
    shown = Phrase(tuple(Code(each) if nth % 2 else each for nth, each in enumerate(pieces)))
    return phrase("{}: {} ({}).", Phrase((label(name),)), _value(getattr(config, name)), shown)


def _value(value: ConfigValue) -> Phrase:
    if isinstance(value, bool):
        return phrase("yes" if value else "no")
    if isinstance(value, tuple):
        return _names(value) if value else phrase("none")
    if value is None or isinstance(value, int | float):
        return phrase("none" if value is None else f"{value:g}")
    return (
        phrase("{}", Code(value))
        if not isinstance(value, StrEnum)
        else Phrase((word(value).lower(),))
    )


def _names(value: Sequence[str | BatchingRule | ConflictRule | EntryRule]) -> Phrase:
    return phrases.names([_name(one) for one in value])


def _name(one: str | BatchingRule | ConflictRule | EntryRule) -> str:
    if isinstance(one, ConflictRule):
        return f"{one.rule.value}: {', '.join(one.paths)}"
    if isinstance(one, EntryRule):
        return one.name
    return one.target_pattern if isinstance(one, BatchingRule) else one


def _mode(config: QueueConfig) -> Phrase:
    if config.mode is Mode.SINGLE:
        return phrase("Pull requests wait in one line.")
    return phrase(
        "Pull requests wait in lanes: those whose impacted targets do not overlap do not wait for "
        "each other."
    )


def _slots(config: QueueConfig) -> Phrase:
    searches = config.bisection_concurrency
    runs = phrases.counted(config.concurrency, "test run", "test runs")
    if not searches:
        return phrase("At most {} at the same time, searches for causes included.", runs)
    more = phrases.counted(searches, "that searches", "that search")
    return phrase("At most {} at the same time, and {} for the cause of a failure.", runs, more)


def _timeouts(config: QueueConfig) -> Phrase:
    return phrase(
        "A test run fails if it takes longer than {}, or if a required check has not reported "
        "after {}.",
        _span(minutes=config.testing_timeout_minutes),
        _span(minutes=config.check_start_timeout_minutes),
    )


def _required(config: QueueConfig) -> Phrase:
    names = config.required_statuses
    if names is None:
        return phrase(
            "Required are the checks that the branch's rules or a file of the repository name."
        )
    if not names:
        return phrase("No check is required.")
    return phrase("Required instead of what the rules of the branch name: {}.", _names(names))


def _skipped(config: QueueConfig) -> Phrase:
    if config.skipped_statuses_pass:
        return phrase(
            "A skipped required check may count if it was also skipped on the pull request's own "
            "head."
        )
    return phrase("A skipped required check counts as failed.")


def _batches(config: QueueConfig) -> Phrase:
    if not config.batch:
        return phrase("Each pull request has its own test run.")
    wait = config.batching_max_wait_time_minutes
    size = phrases.counted(config.batching_min_size, "pull request shares", "pull requests share")
    sized = ", as many as load and chance of failure suggest"
    sized = sized if config.batch_sizing is BatchSizing.ADAPTIVE else ""
    starts = phrase("after {}", _span(minutes=wait)) if wait else phrase("at once")
    return phrase("Up to {} one test run" + sized + "; a smaller group starts {}.", size, starts)


def _optimistic(config: QueueConfig) -> Phrase:
    if config.can_optimistically_merge:
        return phrase("A run that passes clears the failed runs that its base contains.")
    return phrase("A later run that passes does not clear an earlier one that failed.")


def _retries(config: QueueConfig) -> Phrase:
    limit = config.auto_retry_limit
    if not limit:
        return phrase("A run that fails without blame is not tried again.")
    times_ = "once" if limit == 1 else f"up to {limit} times"
    return phrase(f"A run that fails without blame is tried again {times_}.")


def _flaky(config: QueueConfig) -> Phrase:
    excused = config.max_excused_failures
    known = (
        "A check that fails only by known flaky tests blames no pull request"
        if config.flaky_knowledge_enabled
        else "Failures of known flaky tests count as any other"
    )
    if not excused:
        return phrase(known + ", and none is excused.")
    count = phrases.counted(excused, "failure", "failures")
    return phrase(known + ". Excused in one run: at most {} of quarantined tests.", count)


def _landing(config: QueueConfig) -> Phrase:
    if config.shadow:
        return phrase("Nothing lands: the queue decides beside another one, in shadow.")
    if config.land_tested_commits and config.merge_method is not MergeMethod.MERGE_COMMIT:
        return phrase(_METHODS[config.merge_method] + "; the tested commits become the branch.")
    return phrase(_METHODS[config.merge_method] + ".")


def _direct(config: QueueConfig) -> Phrase:
    if config.direct_merge_mode is Toggle.ALWAYS:
        return phrase(
            "A pull request whose head contains the tip of the branch lands by its own checks."
        )
    return phrase("Every pull request is tested on a test branch.")


def _leaving(config: QueueConfig) -> Phrase:
    if not config.not_ready_timeout_hours:
        return phrase("A pull request that is not ready waits without limit.")
    limit = _span(minutes=config.not_ready_timeout_hours * 60)
    return phrase("A pull request that is not ready leaves the queue after {}.", limit)


def _submitting(config: QueueConfig) -> Phrase:
    ways = []
    if config.commands_enabled:
        ways.append(phrase("the comment {}", Code("/merge")))
    if config.label_commands_enabled:
        ways.append(phrase("the label {}", Code(config.enqueueing_label)))
    ways.append(phrase("the API"))
    return phrase("Pull requests are submitted by {}.", phrases.listed(ways, len(ways), "or"))


def _told(config: QueueConfig) -> Phrase:
    match config.comments_enabled, config.status_check_enabled:
        case True, True:
            return phrase("Headgate comments on pull requests, and reports a check run on them.")
        case True, False:
            return phrase("Headgate comments on pull requests, and reports no check run.")
        case False, True:
            return phrase("Headgate reports a check run on pull requests, and does not comment.")
        case _:
            return phrase("Headgate writes nothing on pull requests.")


def _forks(config: QueueConfig) -> Phrase:
    if config.fork_policy is ForkPolicy.DENY:
        return phrase("Pull requests from forks never enter.")
    return phrase(
        "A pull request from a fork enters when a person with write access submits it; if it "
        "changes a sensitive file, with maintain access."
    )


def _span(minutes: float) -> Phrase:
    return Phrase((times.duration(timedelta(minutes=minutes)),))


_OWN: Mapping[tuple[str, ...], Callable[[QueueConfig], Phrase]] = {
    ("mode",): _mode,
    ("concurrency", "bisection_concurrency"): _slots,
    ("testing_timeout_minutes", "check_start_timeout_minutes"): _timeouts,
    ("required_statuses",): _required,
    ("skipped_statuses_pass",): _skipped,
    ("batch", "batching_min_size", "batching_max_wait_time_minutes", "batch_sizing"): _batches,
    ("confirm_failures",): lambda config: phrase(_CONFIRMED[config.confirm_failures]),
    ("can_optimistically_merge",): _optimistic,
    ("auto_retry_limit",): _retries,
    ("flaky_knowledge_enabled", "max_excused_failures"): _flaky,
    ("merge_method", "land_tested_commits", "shadow"): _landing,
    ("direct_merge_mode",): _direct,
    ("not_ready_timeout_hours",): _leaving,
    ("commands_enabled", "label_commands_enabled", "enqueueing_label"): _submitting,
    ("comments_enabled", "status_check_enabled"): _told,
    ("fork_policy",): _forks,
}
"""The sentences about these settings, which are always said."""
