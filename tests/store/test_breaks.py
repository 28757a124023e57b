"""Breaks as stored: one open break of a check and queue, whoever claims it."""

from datetime import timedelta

from sqlalchemy import Connection

from service.mergequeue.breaks import search
from service.mergequeue.breaks.search import Break, End, Probe, Result, Revert, TargetCommit
from service.mergequeue.store import breaks
from service.vocabulary import CheckKind, QueueRef, RepoRef, RequiredName
from tests.harness.values import sha_of
from tests.store.conftest import NOW

QUEUE = QueueRef(9, 1, 7, RepoRef("github.test", "octo", "widgets"), "main")
OTHER = QueueRef(10, 1, 7, QUEUE.repo, "release")
COMMITS = tuple(
    TargetCommit(sha_of("c", each), sha_of("t", each), each or None) for each in range(3)
)


def a_break(name: str, check: str = "slow") -> Break:
    required = RequiredName(check, "15368", CheckKind.SUITE_RUN)
    probe = Probe("headgate/merge/dry-test/1", 2, sha_of("c", str(7)), NOW, Result.RED)
    return Break(name, required, "https://ci", COMMITS, 12, True, probes=(probe,), revert=Revert())


def test_one_of_two_processes_claims_a_break(session: Connection) -> None:
    assert breaks.claim(session, QUEUE, a_break("one"), NOW)
    assert not breaks.claim(session, QUEUE, a_break("two"), NOW)
    assert breaks.claim(session, QUEUE, a_break("three", "docs"), NOW)
    assert breaks.claim(session, OTHER, a_break("four"), NOW)
    assert [each.value.id for each in breaks.open_breaks(session, 9)] == ["one", "three"]


def test_a_check_may_break_again_once_its_target_was_green(session: Connection) -> None:
    breaks.claim(session, QUEUE, a_break("one"), NOW)
    breaks.save(session, search.ended(a_break("one"), End.SPENT), NOW)
    assert not breaks.claim(session, QUEUE, a_break("two"), NOW)
    breaks.save(session, search.ended(a_break("one"), End.REPAIRED), NOW + timedelta(hours=1))
    assert breaks.claim(session, QUEUE, a_break("two"), NOW)
    newest = breaks.newest(session, 9, 5)
    assert [(each.value.id, each.ended_at) for each in newest] == [
        ("two", None),
        ("one", NOW + timedelta(hours=1)),
    ]


def test_a_break_is_read_as_it_was_stored(session: Connection) -> None:
    breaks.claim(session, QUEUE, a_break("one"), NOW)
    found = breaks.find(session, "one")
    assert found is not None
    assert (found.value, found.queue_id, found.opened_at) == (a_break("one"), 9, NOW)
    assert breaks.find(session, "two") is None


def test_the_newest_verified_commit_replaces_the_one_before(session: Connection) -> None:
    assert breaks.verified(session, 9) is None
    breaks.set_verified(session, QUEUE, sha_of("c", "1"), NOW)
    breaks.set_verified(session, QUEUE, sha_of("c", "2"), NOW)
    verified = breaks.verified(session, 9)
    assert verified is not None
    assert verified.sha == sha_of("c", str(2))
