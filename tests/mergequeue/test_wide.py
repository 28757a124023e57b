"""Entries that impact every target wait their turn, and get it."""

from tests.mergequeue.script import Script

QUEUE = "queue PARALLEL batch=4 concurrency=40 batch_sizing=ADAPTIVE"
UNDER_WAY = 30


def a_busy_queue() -> Script:
    """As many runs are under way as pull requests, each beside the others."""
    script = Script(QUEUE)
    for pr in range(1, UNDER_WAY + 1):
        script.play(f"submit {pr} t=t{pr}")
    return script


def runs_of(lines: list[str]) -> list[str]:
    """The runs that begin in these lines, each with its base."""
    return [line for line in lines if line.startswith("r") and "[" in line]


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
    assert [line.partition("[")[2].split()[0] for line in begun] == ["100", "101"]


def test_one_that_cannot_start_yet_holds_up_nobody_who_was_ready_before_it() -> None:
    script = a_busy_queue()
    script.play("submit 100 t=ALL")
    script.play("submit 101 t=a")
    script.play("submit 102 t=ALL draft")
    for run in range(1, UNDER_WAY - 12):
        script.play(f"pass r{run}")
    begun = runs_of(script.play(f"pass r{UNDER_WAY - 12}"))
    assert [line.partition("[")[2].split()[0] for line in begun] == ["100", "101"]


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
