"""Sound tests under pure noise reach K as seldom as the score promises.

See docs/design/detector.md 13.
"""

import os
from datetime import timedelta

import numpy as np
import pytest

from service.testhealth.detector import noise, score, spans
from service.testhealth.detector.evidence import Event, Passes, Stream
from service.testhealth.detector.spans import Results, Scale
from tests.flaky.histories import at

TESTS = int(os.environ.get("HEADGATE_NOISE_TESTS", "15000"))
DAYS, RUNS, VERDICTS = 45, 50, 12
SLACK = 1.1
"""The share itself is drawn: of 1 in 1,000 of 15,000 tests, a few more are within chance."""


def flagged_share(chance, threshold, eps_b):
    """Share of sound tests that are ever flagged in DAYS days of RUNS passing results."""
    first = at(0).toordinal()
    days = range(first, first + DAYS)
    step = timedelta(days=1) / RUNS
    clock = spans.midnight(first + DAYS)
    scale = Scale(clock, first - 40, {}, threshold)
    runs = {day: tuple(spans.midnight(day) + step * n for n in range(RUNS)) for day in days}
    passes = Passes(dict.fromkeys(days, RUNS), runs)
    steps = [at(0) + timedelta(days=1) * n / VERDICTS for n in range(DAYS * VERDICTS)]
    results = Results(passes, (tuple(steps),) if eps_b else ())
    flagged = 0
    counts_a = chance.binomial(DAYS * RUNS, noise.FLOOR.a, TESTS)
    counts_b = chance.binomial(DAYS * VERDICTS, eps_b, TESTS)
    for a, b in zip(counts_a, counts_b, strict=True):
        if a + b == 0:
            continue
        moments = chance.choice(DAYS * RUNS, a, replace=False)
        lonely = chance.choice(DAYS * VERDICTS, b, replace=False)
        events = [Event(runs[first + m // RUNS][m % RUNS], Stream.A, "", "", 1) for m in moments]
        events += [Event(steps[m], Stream.B, "", "", 1) for m in lonely]
        flagged += bool(spans.fold(tuple(events), results, scale).spans)
    return flagged / TESTS


@pytest.mark.parametrize("eps_b", [0, noise.FLOOR.b], ids=["A alone", "both streams"])
@pytest.mark.parametrize("sensitivity", score.THRESHOLDS)
def test_a_sound_test_seldom_reaches_k(sensitivity, eps_b):
    threshold = score.THRESHOLDS[sensitivity]
    assert flagged_share(np.random.default_rng(7), threshold, eps_b) <= SLACK / threshold
