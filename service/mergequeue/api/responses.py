"""The answers about queues and submissions, made from the views of operations.

Sentences come from `service/mergequeue/wording`.
"""

from collections.abc import Sequence
from datetime import datetime

from pydantic.alias_generators import to_camel

from service.accounts import page_addresses
from service.mergequeue.api.models.answers import pull_requests as answers
from service.mergequeue.api.models.answers import queues as queue_answers
from service.mergequeue.api.models.answers import runs as run_answers
from service.mergequeue.engine.applying.settings import sources
from service.mergequeue.engine.checked import CheckedName, Reporter, checked_of
from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.explaining.acting import Acting
from service.mergequeue.engine.model import PRIORITY_NAMES, Entry, Hold
from service.mergequeue.engine.outputs import (
    EntryMoved,
    EntrySubmitted,
    Event,
    QueueStateChanged,
    Recorded,
)
from service.mergequeue.engine.reported import FailedBefore
from service.mergequeue.engine.states import FINAL
from service.mergequeue.operations.views import PullRequestView, QueueView, TimelineEvent
from service.mergequeue.wording import checked_names, history, holds, reasons, rule_notes, situation
from service.mergequeue.wording.situation import Situation, Tables
from service.runtime import Compatibility, Options
from service.vocabulary import SYSTEM, Channel, CheckKind

_LEVELS = sorted((value, name) for name, value in PRIORITY_NAMES.items())


def priority_name(value: int) -> str:
    """Return the first named level at or above the value."""
    return next(name for level, name in _LEVELS if level >= value)


def submission(
    view: PullRequestView, options: Options, checked: Sequence[CheckedName] = ()
) -> answers.Submission:
    """Return the answer about one pull request; `checked` are the checks that count for it."""
    entry = view.entry
    acting = acting_of(view)
    pages = page_addresses.of_queue(options, view.queue.repo, view.queue.branch)
    return answers.Submission.of(
        entry,
        state_changed_at=entry.state_since,
        priority_value=entry.priority,
        priority_name=priority_name(entry.priority),
        used_default_priority_name="medium",
        skip_the_line=entry.priority == 0,
        pr_title=entry.facts.title,
        pr_number=entry.pr,
        pr_sha=entry.head,
        pr_base_branch=entry.facts.base,
        pr_author=entry.facts.author,
        readiness=answers.Readiness.of(
            entry,
            has_impacted_targets=view.has_targets,
            requires_impacted_targets=view.config.mode is Mode.PARALLEL,
            does_base_branch_match=entry.facts.base == view.queue.branch,
            git_hub_mergeability=entry.facts.mergeability.value.upper(),
        ),
        force_enqueued=False,
        is_currently_submitted_to_queue=entry.state not in FINAL,
        verified_by_test_run=entry.verified_by,
        test_run_id=view.run,
        reason_message=_reason_message(view),
        retryable=acting.retryable,
        who_must_act=acting.who,
        position=view.position,
        queue_length=view.length,
        eta=view.eta,
        rules=_rules(entry),
        conclusion=view.conclusion,
        links=answers.SubmissionLinks(
            page=pages and f"{pages}/pull/{entry.pr}",
            pull_request=view.pull_request_url,
            explain=options.public_url and f"{options.public_url}/v1/explainPullRequest",
        ),
        required_checks=required_checks(checked),
        timeline=timeline(view),
    )


def _rules(entry: Entry) -> answers.RulesShown:
    is_by_rule = entry.submitted_by.channel is Channel.RULE
    return answers.RulesShown(
        entered_by=entry.submitted_by.login if is_by_rule else None,
        priority_by=entry.priority_rule or None,
        waits_for=[
            answers.RuleWaitShown(rule=one.rule, text=one.text, until=one.until)
            for one in entry.waits
        ],
    )


def required_checks(table: Sequence[CheckedName]) -> list[run_answers.RequiredCheckShown]:
    """Return the evidence for each required check, in their order."""
    return [
        run_answers.RequiredCheckShown(
            name=one.name,
            state=one.ended.value,
            text=checked_names.message(one),
            place=one.place.value,
            run=one.run,
            sha=one.sha,
            url=one.url or None,
            reporter=_reporter(one.reporter),
            because=one.because or None,
            tests=list(one.tests),
            proof=None if one.proof is None else one.proof.value,
            failed_before=failed_jobs(one.after),
        )
        for one in table
    ]


def failed_jobs(before: FailedBefore | None) -> list[run_answers.FailedJobShown]:
    """Return the jobs that had failed when a check began."""
    jobs = () if before is None else before.jobs
    return [run_answers.FailedJobShown(name=name, url=url) for name, url in jobs]


def _reporter(reporter: Reporter | None) -> run_answers.CheckReporter | None:
    if reporter is None:
        return None
    is_run = reporter.kind is CheckKind.SUITE_RUN
    return run_answers.CheckReporter(
        kind="check_run" if is_run else "commit_status",
        app=reporter.app_id,
        check_run=reporter.check_id,
        attempt=reporter.attempt,
    )


def acting_of(view: PullRequestView) -> Acting:
    """Return who must act and whether submitting again helps; of an ended one by its reason."""
    meaning = view.entry.reason.record
    return view.acting or Acting(meaning.retryable, meaning.who)


def _reason_message(view: PullRequestView) -> str:
    """Return the reason of its state, and what of the queue stops it."""
    said = reasons.sentence(situation_of(view))
    return f"{said} {view.stop}" if view.stop else said


def situation_of(view: PullRequestView) -> Situation:
    """Return what sentences about the pull request depend on."""
    entry = view.entry
    return Situation(
        target=view.queue.branch,
        state=entry.state,
        reason=entry.reason,
        detail=entry.detail,
        by=entry.canceller or SYSTEM,
        submitted_by=entry.submitted_by,
        head=entry.head,
        unmet=situation.unmet_conditions_of(entry, view.queue.branch),
        config=view.config,
        failing=view.failing,
        checked=() if view.judged_by is None else checked_of(view.judged_by),
    )


def timeline(view: PullRequestView) -> list[answers.TimelineEntry] | None:
    """Return all events of its past, None if they were not asked for."""
    if view.timeline is None:
        return None
    past = [each.recorded for each in view.timeline]
    return [event(each, view.queue.branch, past, view.tables) for each in view.timeline]


def event(
    listed: TimelineEvent,
    target: str,
    past: Sequence[Recorded] = (),
    checked: Tables = situation.NO_TABLES,
) -> answers.TimelineEntry:
    """Return one event of a timeline; `past` says which pull requests a bisection is about.

    `checked` has the required checks of runs that passed.
    """
    recorded = listed.recorded
    happened: Event = recorded.event
    moved = happened if isinstance(happened, EntryMoved) else None
    explained = happened if isinstance(happened, EntryMoved | EntrySubmitted) else None
    return answers.TimelineEntry.of(
        listed,
        at=recorded.at,
        event=type(happened).__name__,
        origin=moved and moved.origin,
        to=moved and moved.state,
        reason=explained and explained.reason,
        message=history.message(recorded, target, past, checked),
        actor=recorded.actor,
        test_run_id=getattr(happened, "run", None),
    )


def queue_event(
    recorded: Recorded, target: str, past: Sequence[Recorded]
) -> queue_answers.QueueEvent:
    """Return one event of a queue; `past` as for `event`."""
    happened: Event = recorded.event
    moved = happened if isinstance(happened, EntryMoved | QueueStateChanged) else None
    explained = happened if isinstance(happened, EntryMoved | EntrySubmitted) else None
    return queue_answers.QueueEvent.of(
        recorded,
        event=type(happened).__name__,
        pr_number=getattr(happened, "pr", None),
        origin=moved and moved.origin,
        to=moved and moved.state,
        reason=explained and explained.reason,
        message=history.message(recorded, target, past),
        actor=recorded.actor,
        test_run_id=getattr(happened, "run", None),
    )


def queue(view: QueueView, options: Options, now: datetime) -> queue_answers.Queue:
    """Return the answer about a queue, without its pull requests."""
    value, required = view.value, view.required
    effective = list(dict.fromkeys(each.name for each in required.names))
    is_listed = options.compatibility is Compatibility.TRUNK
    drafts = value.config.create_prs_for_testing_branches
    return queue_answers.Queue.of(
        value.config,
        branch=value.branch,
        state=value.state,
        state_reason=value.state_reason,
        version=value.revision,
        state_changed_at=value.state_since,
        state_changed_by=value.state_by,
        test_branch_kind="DRAFT_PR" if drafts else "PUSH",
        test_branch_kind_reason=value.test_branch_reason,
        target_mode=value.target_mode,
        holds=[hold(each, value.branch, now) for each in view.holds],
        required_statuses=(
            effective
            if is_listed and value.config.required_statuses is None
            else value.config.required_statuses
        ),
        effective_required_statuses=effective,
        required_statuses_source=required.source,
        rule_notes=rule_notes.rule_notes(required.notes),
        setting_sources={to_camel(name): source for name, source in sources(value).items()},
        repository_file=value.file and queue_answers.RepositoryFileShown.of(value.file),
        links=queue_answers.QueueLinks(
            page=page_addresses.of_queue(options, view.queue.repo, view.queue.branch)
        ),
    )


def hold(held: Hold, target: str, now: datetime) -> queue_answers.HoldShown:
    """Return one hold, with a text of ours if its placer gave none."""
    text = held.text or holds.message(held, target, now)
    return queue_answers.HoldShown.of(held, text=text, evidence_url=held.evidence)
