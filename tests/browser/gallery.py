"""One service with something on every page: queues of all sizes and states, tests, tokens."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from bot import wiring
from service.accounts import access, tokens
from service.accounts.tokens import TokenRequest
from service.database.database import Store
from service.http.callers import Caller
from service.http.health import Readiness
from service.mergequeue.engine import targets
from service.mergequeue.engine.config import Mode, QueueConfig
from service.mergequeue.engine.model import Detail, Entry, Hold, MergeQueue, Named, Run
from service.mergequeue.engine.outputs import EntryMoved, Recorded
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.states import EntryState, QueueState, RunStatus
from service.mergequeue.reasons.record import HoldScope
from service.notifications import endpoints, notifications
from service.notifications.endpoints import EndpointChange
from service.notifications.sender import HttpSender
from service.runtime import DashboardAuth, Runtime
from service.testhealth.operations import overrides, sweeps, tickets
from service.testhealth.operations.overrides import OverrideRequest
from service.testhealth.operations.tickets import TicketLink
from service.testhealth.reports.results import Fault, FileStatus
from service.vocabulary import SYSTEM, CheckOutcome, Override, Role, Sha
from tests.api.wire import served
from tests.dashboard import queue_stage, test_pages
from tests.dashboard.queue_stage import (
    NOW,
    QueueStage,
    a_queue,
    a_run,
    an_entry,
    at,
    in_run,
    passed,
    person,
)
from tests.operations import upload_stage
from tests.operations.message_stage import LOOPBACK
from tests.operations.upload_stage import HOST, Stage, a_case, a_file

HOSTILE = (
    '<img src=x onerror=alert(1)> & "quotes" \u202etxet \u200b\U0001f680 '
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 "
) + "verylongword" * 412
"""Markup, right-to-left, emoji, and 5,000 characters of which most are one word."""

QUARANTINED_DAYS = 18
BROKEN = queue_stage.failed(3099, (471,), created_at=at(38), finished_at=at(22))
"""The test run in which #471 failed."""

UNBUILT = a_run(
    *(2600, (299,)), (), status=RunStatus.CANCELLED, created_at=at(41), finished_at=at(40),
    sha=None, branch=None, built_at=None, outcomes=(None, None, None), steps=(),
)  # fmt: skip
"""A test run that ended before it had a test branch."""

ASSERTION = "AssertionError: assert Decimal('3.33') is None"
TRACE = """tests/prices/test_cache.py:27: in test_cache_expires
    clock.advance(minutes=61)
>   assert cache.get("mug") is None
E   AssertionError: assert Decimal('3.33') is None
E    +  where Decimal('3.33') = get('mug')"""


@dataclass
class Gallery:
    """The service: where it is, and paths of its pages by name."""

    url: str
    paths: dict[str, str]
    main: QueueStage
    one: QueueStage


@asynccontextmanager
async def gallery(store: Store) -> AsyncIterator[Gallery]:
    """Serve the pages to whoever is on this machine."""
    main = (await queue_stage.staged(store)).on_a_clock_that_stands()
    options = replace(
        main.runtime.options,
        dashboard_auth=DashboardAuth.LOOPBACK,
        main_host=HOST,
        public_url=None,
    )
    runtime = replace(main.runtime, sender=HttpSender(LOOPBACK), options=options)
    main = replace(main, runtime=runtime)
    paths = await _tests(store)
    # Before there are other queues: a report takes every queue a step further.
    await main.put(a_queue(sends_results=True), runs=(BROKEN,))
    await _failed_run(await upload_stage.staged(store))
    paths |= await _queues(store, main) | await _administration(main)
    one = replace(await _stage(store, "one"), runtime=runtime)
    await one.put(one_testing())
    readiness = Readiness()
    readiness.mark("recovery", "ok")
    async with served(wiring.build_own_app(runtime, readiness)) as port:
        yield Gallery(f"http://127.0.0.1:{port}", paths, main, one)


async def _stage(store: Store, branch: str) -> QueueStage:
    return await queue_stage.staged(store, branch)


async def _queues(store: Store, main: QueueStage) -> dict[str, str]:
    value, left = _busy()
    suspect = value.entries[482]
    more_left, runs, moves = _last_weeks()
    story = queue_stage.story(suspect, value.runs[suspect.run or ""])
    broken = next(each for each in left["entries"] if each.pr in BROKEN.prs)
    story += queue_stage.story(broken, BROKEN)
    await main.put(
        value,
        [*story, *moves],
        entries=(*left["entries"], *more_left),
        runs=(*left["runs"], *runs, UNBUILT),
    )
    for run in (*left["runs"], *runs):
        await main.landed(run)
    await (await _stage(store, "twenty")).put(_tested(4001, 15))
    await (await _stage(store, "many")).put(_tested(1001, 295))
    await (await _stage(store, "hostile")).put(_hostile())
    await (await _stage(store, "lanes")).put(_lanes())
    await _standing(store)
    await _stage(store, "empty")
    await _teams(store)
    return _paths_of_queues("/octo/widgets")


def _paths_of_queues(home: str) -> dict[str, str]:
    return {
        "queues": "/",
        "mine": "/mine",
        "mine-team": "/mine?team=erin,frank",
        "wall": "/wall",
        "wall-of-2": f"/wall?queue={home[1:]}/main&queue={home[1:]}/release/2",
        "help": "/help",
        "find": "/find?q=test_",
        "find-nothing": "/find?q=none",
        "queue": f"{home}/main",
        "queue-of-1": f"{home}/one",
        "queue-of-20": f"{home}/twenty",
        "queue-of-300": f"{home}/many",
        "queue-empty": f"{home}/empty",
        "queue-paused": f"{home}/release~2",
        "queue-stopped": f"{home}/stopped",
        "queue-lanes": f"{home}/lanes",
        "queue-hostile": f"{home}/hostile",
        "pull-testing": f"{home}/main/pull/488",
        "pull-suspect": f"{home}/main/pull/482",
        "pull-waiting": f"{home}/main/pull/497",
        "pull-not-in": f"{home}/main/pull/499",
        "pull-merged": f"{home}/main/pull/441",
        "pull-failed": f"{home}/main/pull/471",
        "pull-hostile": f"{home}/hostile/pull/3001",
        "run": f"{home}/runs/run-3122",
        "run-failed": f"{home}/runs/run-3116",
        "run-unbuilt": f"{home}/runs/{UNBUILT.id}",
        "pulls": f"{home}/main/pulls",
        "pulls-found": f"{home}/main/pulls?q=the&state=merged&since=2026-11-01",
        "pulls-none": f"{home}/empty/pulls",
        "runs": f"{home}/main/runs",
        "health": f"{home}/main/health",
        "health-month": f"{home}/main/health?span=90d",
        "health-empty": f"{home}/empty/health",
        "doctor": f"{home}/main/doctor",
        "settings-of-queue": f"{home}/main/settings",
        "not-found": f"{home}/none",
        "error-code": "/docs/errors/queue_not_found",
    }


async def _standing(store: Store) -> None:
    """Two queues that stand still."""
    paused: dict[str, Any] = {
        "state": QueueState.PAUSED,
        "state_reason": "release freeze",
        "state_by": person("bob"),
        "state_since": at(15),
    }
    await (await _stage(store, "release/2")).put(a_queue([an_entry(4)], **paused))
    red = Hold("h1", HoldReason.BASE_RED, HoldScope.BOTH, SYSTEM, "", at(52), evidence="4c5d6e7")
    await (await _stage(store, "stopped")).put(a_queue([an_entry(5)], holds=(red,)))


async def _teams(store: Store) -> None:
    """Queues of other repositories, with pull requests of erin and frank in all states."""
    run = a_run(5001, (61,))
    unread = (Reason.CHANGES_REQUESTED, Reason.CHECK_FAILING)
    unready: dict[str, Any] = {"state": EntryState.NOT_READY, "reason": unread[0], "unmet": unread}
    open_ = {
        "android": [_of("erin", *in_run(run, 1)), _of("frank", an_entry(62))],
        "docs": [_of("erin", an_entry(71, seq=None, state_since=at(95), **unready))],
        "payments": [_of("frank", an_entry(81))],
    }
    failed: dict[str, Any] = {"state": EntryState.FAILED, "landed_sha": None, "verified_by": None}
    for nth, (name, entries) in enumerate(open_.items(), 1):
        landed, *others = (passed(5100 + 10 * nth + each, (50 + nth,)) for each in range(5))
        left = _of("frank", queue_stage.ended(50 + nth, landed, 130 * nth))
        if name == "docs":
            left = replace(left, reason=Reason.REQUIRED_STATUS_FAILED, **failed)
        *own, gone = (replace(each, id=f"{name}-{each.pr}") for each in (*entries, left))
        stage = await queue_stage.staged(store, "main", name)
        runs = [run] if name == "android" else []
        await stage.put(a_queue(own, runs), entries=(gone,), runs=(landed, *others))


def _of(author: str, entry: Entry) -> Entry:
    """The submission of this author, who submitted it, too."""
    return replace(entry, facts=replace(entry.facts, author=author), submitted_by=person(author))


def _busy() -> tuple[MergeQueue, dict[str, Any]]:
    """The busy queue and what has left it; #471 failed by its own test run."""
    value, left = queue_stage.busy()
    entries = (
        replace(each, detail=replace(each.detail, run=BROKEN.id), verified_by=None)
        if each.pr in BROKEN.prs
        else each
        for each in left["entries"]
    )
    value = replace(value, sends_results=True, chosen=("concurrency", "batch"))
    return value, {**left, "entries": tuple(entries)}


def one_testing() -> MergeQueue:
    """One pull request, which is tested."""
    run = a_run(12, (12,))
    return a_queue(in_run(run, 1), [run])


def _tested(first: int, waiting: int) -> MergeQueue:
    """Five pull requests that are tested one on top of the other, and others that wait."""
    runs = [a_run(nth, (nth,), range(first, nth)) for nth in range(first, first + 5)]
    in_runs = [each for nth, run in enumerate(runs, 1) for each in in_run(run, nth)]
    return a_queue([*in_runs, *(an_entry(first + 99 + nth) for nth in range(waiting))], runs)


def _lanes() -> MergeQueue:
    first, second = a_run(2001, (2011,)), passed(2002, (2012,))
    entries = [
        _touching(in_run(first, 1)[0], "api", "web"),
        _touching(in_run(second, 2)[0], "docs"),
        _touching(an_entry(2013), "web"),
        _touching(an_entry(2014)),
        _touching(an_entry(2015), "docs"),
    ]
    config = QueueConfig(concurrency=6, mode=Mode.PARALLEL)
    return a_queue(entries, [first, second], config=config)


def _touching(entry: Entry, *names: str) -> Entry:
    found = targets.of(names) if names else targets.ALL
    return replace(entry, targets=found, wide=found)


def _hostile() -> MergeQueue:
    run = a_run(3001, (3001,))
    check = queue_stage.a_check(HOSTILE, CheckOutcome.FAILED, raw=HOSTILE, url=HOSTILE)
    run = replace(run, checks=(*run.checks, check), branch=HOSTILE)
    broken = Detail(text=HOSTILE, checks=(Named(HOSTILE, HOSTILE),), paths=(HOSTILE,))
    strange: dict[str, Any] = {"title": HOSTILE, "author": HOSTILE}
    entries = [
        *in_run(run, 1, **strange),
        an_entry(3002, held_by=(3001,), detail=broken, **strange),
        an_entry(3003, state=EntryState.NOT_READY, unmet=(Reason.REVIEW_REQUIRED,), seq=None,
                 **strange),
    ]  # fmt: skip
    pause = {"state": QueueState.PAUSED, "state_reason": HOSTILE, "state_by": person(HOSTILE)}
    return a_queue(entries, [run], **pause)


def _last_weeks() -> tuple[list[Entry], list[Run], list[Recorded]]:
    """Submissions that left: ten in an hour of each day of a week, and of three such days before.

    Most of them merged.
    """
    entries, runs, moves = [], [], []
    days = [*range(7), 14, 21, 28]
    ages = [5 + 24 * day + nth * 0.1 for day in days for nth in range(10 - day // 7)]
    for nth, hours in enumerate(ages):
        ended, testing = hours * 60, 14 + nth % 7
        run = passed(
            2700 + nth,
            (300 + nth,),
            created_at=at(ended + testing),
            built_at=at(ended + testing),
            start_clock=at(ended + testing),
            finished_at=at(ended),
        )
        left = queue_stage.ended(run.prs[0], run, ended, submitted_at=at(ended + testing + 12))
        if nth % 6 == 5:
            left = replace(
                left,
                state=EntryState.FAILED,
                reason=Reason.REQUIRED_STATUS_FAILED,
                landed_sha=None,
                verified_by=None,
            )
        entries.append(left)
        runs.append(run)
        moves += _moves(left, ended, testing, nth % 4)
    return entries, runs, moves


def _moves(left: Entry, ended: float, testing: float, wait: float) -> list[Recorded]:
    pending, tested = EntryState.PENDING, EntryState.TESTING
    steps = (
        (ended + testing + 10, EntryState.NOT_READY, pending, Reason.NOW_READY),
        (ended + testing, pending, tested, Reason.TEST_STARTED),
        (ended + wait, tested, EntryState.TESTS_PASSED, Reason.RUN_PASSED),
        (ended, EntryState.TESTS_PASSED, left.state, left.reason),
    )
    return [
        Recorded(at(minutes), SYSTEM,
                 EntryMoved(left.pr, left.id, origin, state, reason, None, Detail()))
        for minutes, origin, state, reason in steps
    ]  # fmt: skip


async def _tests(store: Store) -> dict[str, str]:
    """Uploads of three weeks: some tests flake, one is broken, one is quarantined."""
    stage = await upload_stage.staged(store)
    await test_pages.quarantining(stage)
    stage.clock.present = NOW
    stage = replace(stage, caller=await _caller(stage.runtime, Role.QUEUE))
    names = ["test_rounding", "test_send", "test_resume", "test_prints_on_a4_with_long_names"]
    steady = {f"test_steady_{nth}": "P" for nth in range(20)}
    for nth in range(44):
        letters = [
            "FP" if nth % 7 == 3 else "P",
            "FP" if nth % 11 == 5 else "P",
            "F" if nth in (12, 30) else ("S" if nth % 9 == 4 else "P"),
            "F" if nth > 36 else "P",
        ]
        facts = {"pr_number": 478 + nth % 9} if nth % 3 else {"branch": "main"}
        await stage.ran(
            {**dict(zip(names, letters, strict=True)), **steady},
            sha=Sha(f"{nth:02}ab" * 10),
            ran_at=NOW - timedelta(hours=44 - nth),
            **facts,
        )
    hostile = a_case(HOSTILE, "F", classname=HOSTILE, parent=HOSTILE, file=HOSTILE)
    attempt = hostile.explicit_attempts[0]._replace(message=HOSTILE, error_type=HOSTILE)
    hostile = hostile._replace(explicit_attempts=(attempt,))
    partial = {"status": FileStatus.PARTIAL, "fault": Fault(HOSTILE, 1, 1)}
    odd = await stage.send(
        [a_file({}, HOSTILE, cases=(hostile,), **partial)],
        branch=HOSTILE, job=HOSTILE, variant=HOSTILE, ran_at=NOW,
    )  # fmt: skip
    failing = await stage.ran({**dict.fromkeys(names, "F"), **steady}, pr_number=488, ran_at=NOW)
    case, sent = await stage.case(names[0]), await stage.case(names[1])
    until = NOW + timedelta(days=QUARANTINED_DAYS)
    keep = OverrideRequest(sent.id, Override.ALWAYS_QUARANTINE, "waits on #991", until)
    await overrides.put(stage.runtime, stage.repository, keep, test_pages.ANN)
    ticket = TicketLink(sent.id, f"https://{HOST}/octo/widgets/issues/991", None)
    await tickets.link(stage.runtime, stage.repository, ticket, test_pages.ANN)
    await sweeps.expire(stage.runtime)
    home = "/octo/widgets"
    return {
        "tests": f"{home}/tests",
        "tests-slowest": f"{home}/tests/slowest",
        "tests-costs": f"{home}/tests/costs",
        "tests-quality": f"{home}/tests/quality",
        "tests-quality-tried": f"{home}/tests/quality?sensitivity=eager",
        "tests-all": f"{home}/tests?status=all",
        "test": f"{home}/tests/{case.id}",
        "test-quarantined": f"{home}/tests/{sent.id}",
        "test-hostile": f"{home}/tests/{odd.failures[0].test_id}",
        "uploads": f"{home}/uploads",
        "upload": f"{home}/uploads/{failing.upload_id}",
        "upload-hostile": f"{home}/uploads/{odd.upload_id}",
    }


async def _failed_run(stage: Stage) -> None:
    """Results of the test run in which #471 failed: one test fails, with its trace."""
    stage.clock.present = NOW
    stage = replace(stage, caller=await _caller(stage.runtime, Role.QUEUE))
    steady = [a_case(f"test_steady_{nth}", "P") for nth in range(20)]
    broken = a_case("test_cache_expires", "F", file="tests/prices/test_cache.py")
    attempt = broken.explicit_attempts[0]._replace(message=ASSERTION, stack=TRACE)
    broken = broken._replace(explicit_attempts=(attempt,))
    file = a_file({}, cases=(broken, *steady))
    await stage.send([file], sha=BROKEN.sha, branch=BROKEN.branch, ran_at=at(25))


async def _administration(main: QueueStage) -> dict[str, str]:
    runtime = main.runtime
    caller = await _caller(runtime, Role.ADMIN)
    change = EndpointChange(url="http://127.0.0.1:1029/hook", events=("pull_request.merged",))
    view, _ = await endpoints.create(runtime, caller, change)
    await notifications.send_test(runtime, caller, view.id)
    return {
        "settings": "/settings",
        "tokens": "/settings/octo",
        "webhooks": "/settings/octo/webhooks",
        "webhook": f"/settings/octo/webhooks/{view.id}",
        "activity": "/activity",
    }


async def _caller(runtime: Runtime, role: Role) -> Caller:
    wish = TokenRequest(HOST, "octo", f"nightly {role.value}", role)
    secret = (await tokens.create_token(runtime, wish, SYSTEM)).secret
    return await access.look_up(runtime, secret)
