"""Entries that impact every target wait their turn, and get it."""

import pytest

from service.mergequeue.engine.policy import constants
from tests.mergequeue.script import Script

QUEUE = "queue PARALLEL batch=4 concurrency=40 batch_sizing=ADAPTIVE"
UNDER_WAY = 30
ROOMY = "queue PARALLEL batch=4 concurrency=170 batch_sizing=ADAPTIVE"
FEW = 8


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight may follow one that impacts all, so that a story about more of them is short."""
    monkeypatch.setattr(constants, "FOLLOWERS_OF_ALL_MAX", FEW)


def a_busy_queue() -> Script:
    """As many runs are under way as pull requests, each beside the others."""
    script = Script(QUEUE)
    for pr in range(1, UNDER_WAY + 1):
        script.play(f"submit {pr} t=t{pr}")
    return script


def a_crowd_behind_one(more: int = 0, risk: float = 0.0) -> Script:
    """One that impacts all is under test, and as many as may follow it, and so many more."""
    script = Script(ROOMY)
    script.play(f"submit 1 t=ALL risk={risk}")
    for pr in range(2, constants.FOLLOWERS_OF_ALL_MAX + 2):
        assert runs_of(script.play(f"submit {pr} t=t{pr}"))
    for pr in range(constants.FOLLOWERS_OF_ALL_MAX + 2, constants.FOLLOWERS_OF_ALL_MAX + 2 + more):
        assert runs_of(script.play(f"submit {pr} t=t{pr}")) == []
    return script


def runs_of(lines: list[str]) -> list[str]:
    """The runs that begin in these lines, each with its base."""
    return [line for line in lines if line.startswith("r") and "[" in line]


def first_of(runs: list[str]) -> list[int]:
    """The first pull request of each of these runs."""
    return [int(line.partition("[")[2].split()[0]) for line in runs]


def test_one_that_impacts_all_starts_when_most_are_decided_however_many_arrive() -> None:
    script = a_busy_queue()
    assert runs_of(script.play("submit 100 t=ALL")) == []
    ends = 0
    while not (begun := runs_of(script.play(f"pass r{ends + 1}"))):
        ends += 1
        assert ends < UNDER_WAY
        assert runs_of(script.play(f"submit {200 + ends} t=new{ends}")) == []
    assert begun[0].startswith(f"r{UNDER_WAY + 1}[100 | ")
    assert ends + 1 == UNDER_WAY - 12


def test_what_has_waited_behind_it_starts_with_it() -> None:
    script = a_busy_queue()
    script.play("submit 100 t=ALL")
    script.play("submit 101 t=a")
    script.play("submit 102 t=b")
    for run in range(1, UNDER_WAY - 12):
        script.play(f"pass r{run}")
    begun = runs_of(script.play(f"pass r{UNDER_WAY - 12}"))
    ahead = " ".join(str(pr) for pr in range(UNDER_WAY - 12, UNDER_WAY + 1))
    assert begun == [
        f"r{UNDER_WAY + 1}[100 | {ahead}]",
        f"r{UNDER_WAY + 2}[101 | {ahead} 100]",
        f"r{UNDER_WAY + 3}[102 | {ahead} 100]",
    ]


def test_one_of_a_lower_priority_does_not_go_first_with_it() -> None:
    script = a_busy_queue()
    script.play("submit 100 t=ALL")
    script.play("submit 101 t=a")
    script.play("submit 102 t=ALL p=200")
    for run in range(1, UNDER_WAY - 12):
        script.play(f"pass r{run}")
    begun = runs_of(script.play(f"pass r{UNDER_WAY - 12}"))
    assert first_of(begun) == [100, 101]


def test_one_that_cannot_start_yet_holds_up_nobody_who_was_ready_before_it() -> None:
    script = a_busy_queue()
    script.play("submit 100 t=ALL")
    script.play("submit 101 t=a")
    script.play("submit 102 t=ALL draft")
    for run in range(1, UNDER_WAY - 12):
        script.play(f"pass r{run}")
    begun = runs_of(script.play(f"pass r{UNDER_WAY - 12}"))
    assert first_of(begun) == [100, 101]


def test_an_urgent_one_that_impacts_all_waits_for_nothing() -> None:
    script = a_busy_queue()
    assert runs_of(script.play("submit 100 t=ALL p=0"))[0].startswith("r31[100 | ")


def test_many_that_impact_all_follow_each_other() -> None:
    script = Script(QUEUE)
    for pr in range(1, 21):
        assert len(runs_of(script.play(f"submit {pr} t=ALL"))) == 1


def test_fixed_batches_keep_the_order_in_which_all_start() -> None:
    script = Script("queue PARALLEL batch=1 concurrency=40")
    for pr in range(1, UNDER_WAY + 1):
        script.play(f"submit {pr} t=t{pr}")
    assert len(runs_of(script.play("submit 100 t=ALL"))) == 1


def test_no_more_than_128_start_on_an_undecided_one_that_impacts_all() -> None:
    script = a_crowd_behind_one(more=1)
    lines = script.play("explain 130")
    assert [line for line in lines if line.startswith("- ")] == ["- few_on_all #1 128 of 128"]
    assert lines[-1] == "next ahead_decided #1"


def test_one_that_passes_behind_it_lets_one_more_start(few: None) -> None:
    script = a_crowd_behind_one(more=2)
    assert first_of(runs_of(script.play("pass r2"))) == [FEW + 2]


def test_one_that_fails_behind_it_lets_no_other_start_while_the_one_ahead_may_be_broken(
    few: None,
) -> None:
    script = a_crowd_behind_one(more=2, risk=0.05)
    assert runs_of(script.play("fail r2")) == []
    assert {FEW + 2, FEW + 3} <= set(first_of(runs_of(script.play("fail r1"))))


def test_all_that_waited_to_follow_start_when_it_passes(few: None) -> None:
    script = a_crowd_behind_one(more=20)
    script.play("submit 900 t=ALL")
    script.play("submit 901 t=x")
    assert first_of(runs_of(script.play("pass r1"))) == list(range(FEW + 2, FEW + 22))


def test_an_urgent_one_follows_however_many_do(few: None) -> None:
    script = a_crowd_behind_one(more=1)
    assert first_of(runs_of(script.play("submit 900 t=x p=0")))[0] == 900


def test_fixed_batches_follow_however_many_there_are(few: None) -> None:
    script = Script("queue PARALLEL batch=1 concurrency=170")
    script.play("submit 1 t=ALL")
    for pr in range(2, FEW + 4):
        assert len(runs_of(script.play(f"submit {pr} t=t{pr}"))) == 1


def test_a_failed_one_that_waits_for_others_to_clear_it_lets_them_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(constants, "FOLLOWERS_OF_ALL_MAX", 1)
    queue = ROOMY.replace("PARALLEL", "PARALLEL optimistic")
    script = Script(f"{queue} pending_failure_depth=2 check_start_timeout_minutes=60")
    for line in ("submit 1 t=a", "submit 2 t=ALL", "submit 3 t=b", "submit 4 t=b", "+18m"):
        script.play(line)
    assert runs_of(script.play("fail r2")) == []
    assert first_of(runs_of(script.play("fail r3"))) == [4]
