"""Who shares a run when batches are sized by load, and that nobody is passed over for long."""

from datetime import timedelta

import pytest

from service.mergequeue.engine.explaining import eta
from tests.mergequeue.script import Script

MINUTES = 20
SLOWER = 24


def begun(lines):
    """The pull requests of the run that begins in these lines."""
    (run,) = [line for line in lines if line.strip().startswith("r") and "[" in line]
    return [int(pr) for pr in run.partition("[")[2].partition("|")[0].split()]


def waiting(batch):
    """A script in which 2 to 21 wait for the only slot."""
    script = Script(f"queue PARALLEL batch={batch} concurrency=1 batch_sizing=ADAPTIVE")
    script.play("submit 1 t=x")
    for pr in range(2, 22):
        script.play(f"submit {pr} t=t{pr} minutes={MINUTES}")
    return script


def arrive(script, first, minutes):
    """Three more."""
    for pr in range(first, first + 3):
        script.play(f"submit {pr} t=t{pr} minutes={minutes}")


def test_a_fixed_batch_on_the_last_slot_is_as_large_as_its_size():
    script = Script("queue PARALLEL batch=100 concurrency=1")
    script.play("submit 1 t=x")
    script.play("+5m")
    for pr in range(2, 102):
        script.play(f"submit {pr} t=t{pr}")
    script.play("+5m")
    assert len(begun(script.play("pass r1"))) == 100


@pytest.mark.parametrize("minutes", [MINUTES, SLOWER])
def test_newer_pull_requests_do_not_pass_others_though_their_tests_take_longer(minutes):
    script, run, left = waiting(batch=8), 0, set(range(2, 22))
    while left:
        run += 1
        left -= set(begun(script.play(f"pass r{run}")))
        arrive(script, 19 + 3 * run, minutes)
    # In order, they take five runs of four.
    assert run <= 6


def test_the_estimate_of_one_that_waits_is_kept_though_others_arrive():
    script = waiting(batch=4)
    latest_s = eta.etas(script.stage.queue, [MINUTES * 60.0] * 5, script.stage.now)[21].latest_s
    for passed in range(1, 12):
        script.stage.now += timedelta(minutes=MINUTES)
        if 21 in begun(script.play(f"pass r{passed}")):
            break
        arrive(script, 19 + 3 * passed, SLOWER)
    assert (passed + 1) * MINUTES * 60 <= 1.5 * latest_s


def test_a_line_without_optimistic_merging_has_larger_batches_than_a_graph():
    single = Script("queue SINGLE batch=8 concurrency=1 batch_sizing=ADAPTIVE")
    parallel = Script("queue PARALLEL batch=8 concurrency=4 batch_sizing=ADAPTIVE")
    single.play("submit 1")
    parallel.play("submit 1 t=a ; 10 t=b ; 11 t=c ; 12 t=d")
    for pr in range(2, 10):
        single.play(f"submit {pr}")
        parallel.play(f"submit {pr} t=x")
    assert len(begun(single.play("pass r1"))) == 7
    assert len(begun(parallel.play("pass r1"))) == 4


def test_batches_of_a_crowded_graph_are_larger():
    script = Script("queue PARALLEL batch=8 concurrency=1 batch_sizing=ADAPTIVE")
    script.play("submit 1 t=a")
    for pr in range(2, 10):
        script.play(f"submit {pr} t=x")
    assert len(begun(script.play("pass r1"))) == 7
