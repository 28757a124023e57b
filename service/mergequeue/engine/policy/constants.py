"""Every number that was fitted or assumed, with its unit and its origin.

A figure like 1.26 / 3.98 is the turnaround, divided by that of an oracle: P50 / P95; with "at 1.78
runs" it also has the test runs per merge. `F 30 x 24` is a cell of the scheduling benchmark: 30
pull requests per hour, 24 CI workers (docs/explanation/scheduling.md). To change a number, run
`python -m tests.bench.scheduling cells "F 30x24" --seeds 911-922` before and after.

The unit stands behind the number, and the origin after `From:`. A test checks that both are there;
"not recorded" is the truth of some.
"""

from datetime import timedelta

# What is believed of a pull request (docs/explanation/belief.md).

CONVICTED_MIN = 0.98  # probability
"""The least belief by which a failure alone rejects: one in fifty of such is a flake.
From: F 10 x 8: P95 1.77 → 1.71 with the rules about slots; seeds not recorded. 0.99 rejects 0.018 %
of the good ones in place of 0.041 % in F 30 x 24, but P95 is 1.80 in place of 1.74; 0.985 changes
nothing beyond the noise (docs/explanation/scheduling-experiments.md)."""

FLAKE_MIN = 0.005  # probability of a run
"""The least chance of a flake that is assumed: no CI is so good that one failure is proof.
From: not recorded."""

FLAKE_MAX = 0.25  # probability of a run
"""The greatest chance of a flake that is assumed. At it, five failures alone convict at the assumed
rates, and seven even at `PRIOR_MIN`.
From: not recorded."""

PRIOR_MIN = 0.01  # probability
"""The least chance of failing before any failure.
From: not recorded."""

CHANCE_MAX = 0.98  # probability
"""The greatest chance of failing before a failure; also the greatest of others in a record.
From: not recorded."""

BELIEF_MAX = 0.9999  # probability
"""The greatest belief: nothing is believed for certain.
From: not recorded."""

# How large a batch becomes (docs/design/testing.md 11).

BATCH_CHANCE_MIN = 0.8  # probability
"""A batch is closed before the chance that all of it passes falls below this.
From: SINGLE without optimistic merging, F 60 x 8, seeds 941 to 946: P50 83 minutes with 0.8, 219
with 0.88."""

BATCH_CHANCE_GRAPH_MIN = 0.88  # probability
"""The same in PARALLEL mode, unless very many wait: a failure restarts much of the graph.
From: S 300 x 100, seeds 911 to 916, before it mattered how long tests take: 2.75 / 2.67 at 1.04
runs with 0.8, 2.43 / 2.08 at 0.80 with 0.9, 2.76 / 2.24 at 0.84 with 0.93."""

CROWDED_MIN = 2  # entries per slot
"""More than this many waiting entries for each slot are very many.
From: S 60 x 8, seeds 941 to 945: P50 559 minutes without this, 368 with it."""

PAIR_CHANCE_MIN = 0.78  # probability
"""The least for two in PARALLEL mode: where many conflict, there would be no batch at all.
From: S 300 x 100 with 10 % conflicts, seeds 911 and 912: 3.26 / 2.87 with 0.8, 4.61 / 3.80 with
0.85."""

CLEARED_CHANCE_MIN = 0.65  # probability
"""The same where a follower that passes clears a failed batch, so that a failure costs less.
From: F 60 x 8 with test results, seeds 911 to 916: 2.77 / 10.8 at 0.48 runs with it, P95 11.7 with
0.5 and 12.1 with 0.75."""

SLOWER_MAX = 1.2  # ratio of minutes
"""In PARALLEL mode, no entry joins whose tests take this many times as long as the first's.
From: S 300 x 100, seeds 911 to 918: 2.30 / 2.36 if it does not matter how long tests take, 1.99 /
1.88 with this limit and `FASTER_MIN`."""

FASTER_MIN = 0.5  # ratio of minutes
"""An entry whose tests take less than this share joins only entries that it overlaps. It need not
wait for the tests of others.
From: with `SLOWER_MAX`, see there."""

SPARE_MAX = 64  # entries
"""At most this many entries are considered that overlap none of the group. If the group may have
more members than that, as many are considered as it may have.
From: not recorded."""

# Who is tested apart from the line (docs/design/testing.md 11, Screening).

RISK_MAX = 0.05  # probability
"""A greater chance of failing is tested alone first.
From: 0.02 and 0.2 were slower at most loads; cells and seeds not recorded. 0.08, seeds 911 to 916:
F 60 x 8 1.98 / 15.1, but F 30 x 8 1.35 / 4.98 → 1.36 / 6.54, 10 % conflicts 1.90 / 5.00 → 2.10 /
5.65."""

POOL_CHANCE_MIN = 0.6  # probability
"""Risky entries are tested together while the chance that all of them pass is at least this.
From: F 30 x 8: P95 4.1 → 3.6 (with 0.65); seeds not recorded."""

SUSPECTS_POOL_CHANCE_MIN = 0.5  # probability
"""The same for entries that failed: a pool that passes half of the time tells the most.
From: F 30 x 8: 1.29 / 4.35 at 0.95 runs with halves, 1.27 / 3.21 at 0.93; seeds not recorded."""

APART_SHARE = 0.5  # share of `concurrency`
"""This part of the slots is for tests apart from the line, before new entries start in it.
From: F 60 x 8: P50 1.6 with it, 4.6 with 0.8; seeds not recorded. Seeds 911 to 914, 1,500 pull
requests: 2.00 / 16.8 at 0.54 runs with it, 5.98 / 15.0 at 0.50 with 5 of the 8 slots."""

ADMITTED_FREE_MIN = 0.25  # share of `concurrency`
"""A risky entry enters the line at once only while this share of the slots is free.
From: F 10 x 8, seeds 911 to 922, with `ADMITTED_FAILURES_MAX`: see there."""

ADMITTED_FAILURES_MAX = 0.5  # expected failures
"""And while no more failures are expected of all under test, one more risky entry included. What is
tested alone counts too: it will be in the line soon.
From: F 10 x 8, seeds 911 to 922: P95 1.61 with 0.35 for the line and half of the slots free, 1.58
with this. F 30 x 24 with a weak predictor and 8 % broken, seeds 911 to 914: P95 2.44 when only the
line counted, 2.25 with this."""

ADMITTED_DISTURBED_MAX = 1.0  # expected entries that restart
"""Or: its chance of failing, times the entries under test with this one, is at most this. So one
that will probably pass does not wait because another one will probably fail.
From: F 10 x 8, seeds 911 to 930, with test results: P95 1.531 without this rule, 1.509 with it.
With 1.3, a weak predictor and 8 % broken have a P95 of 2.27 in place of 2.20 (911 to 918)."""

SECOND_LOOK_CHANCE_MIN = 0.3  # probability
"""An entry that fails with at least this chance is tested twice at the same time.
From: with `SECOND_LOOK_FREE_MIN`, see there."""

SECOND_LOOK_SHARE_MAX = 0.5  # part of the time of a test
"""No second look begins early where a failed check that runs again takes at most this part.
From: not measured; half of the time is what a second look in advance saves at most."""

SECOND_LOOK_FREE_MIN = 0.25  # share of `concurrency`
"""Second looks leave this share of the slots free for new entries.
From: seeds 401 to 405, P95: F 30 x 24 2.07 → 1.93 at 1.89 → 1.94 runs, F 10 x 8 1.83 → 1.76, no
predictor 2.92 → 2.69. Without it F 60 x 24 takes 0.2 runs per merge more."""

# Early looks: entries of the line are tested alone at the same time (docs/design/testing.md 11).

FORESEEN_MIN = 0.3  # share of the expected failures
"""A queue whose estimates foresee a smaller share of the failures tests entries of its line alone
at the same time. It is 0 without history, about 0.8 in the benchmark, and 0 where a cell has no
predictor.
From: assumed, between the two."""

EARLY_ENTRIES_MAX = 0.6  # entries per slot
"""No early look begins while more entries than this are in the line or wait for it.
From: F 60 x 24 without a predictor, seeds 881001 and 881002, 600 pull requests: 1.88 / 3.71 without
early looks, 1.88 / 3.76 with this, 2.15 / 6.29 with 1.0, 2.91 / 6.48 without a limit."""

EARLY_RISK_MAX = 0.2  # probability
"""An entry that fails with a greater chance is foreseen: it is tested apart first. In a queue with
early looks the others enter the line at once.
From: a prototype of the benchmark, see `LINE_CHANCE_MIN`."""

EARLY_RISK_MIN = 0.02  # probability
"""An entry that fails with a smaller chance gets no early look.
From: a prototype of the benchmark, see `LINE_CHANCE_MIN`."""

EARLY_LEFT_MIN = 0.3  # share of the expected minutes
"""An early look begins only while this share of the run in the line is left.
From: a prototype of the benchmark, see `LINE_CHANCE_MIN`."""

EARLY_GROUP_MAX = 8  # entries
"""The most entries of a group that is larger than the load asks for: each has passed alone, or is
tested alone at the same time.
From: a prototype of the benchmark, see `LINE_CHANCE_MIN`."""

EARLY_GROUP_CHANCE_MIN = 0.75  # probability
"""The least chance that all of such a group passes.
From: a prototype of the benchmark, see `LINE_CHANCE_MIN`."""

EARLY_CONVICTED_MIN = 0.99  # probability
"""`CONVICTED_MIN` of such a queue: entries fail more often there for what others broke, and are
tested twice as often, so more flakes meet them.
From: F 30 x 24 with a weak predictor and 8 % broken, 600 pull requests, seeds 882001 to 882016 and
882101 to 882116. Failures known early: 0.087 % of the good ones were rejected with 0.98 at 1.07 /
1.91, 0.029 % with this at 1.08 / 1.91. In the believable world 0.029 and 0.035 %, 1.20 / 1.30 and
1.21 / 1.32."""

LINE_CHANCE_MIN = 0.25  # probability
"""In a queue with early looks, nothing starts at the end of a line that passes with a smaller
chance.
From: a prototype that is not kept, for which about 180 settings of all these numbers were tried
(F 30 x 24, weak predictor and 8 % broken, seeds 770001 to 770006)."""

CLEARED_CHANCE_MAX = 0.08  # probability
"""A suspect that has passed alone returns to the line without another test apart if it fails with
at most this chance.
From: the same prototype."""

# Whether a failed group leaves the line (docs/design/testing.md 11, Wait or leave).

LEAVES_CHANCE_MIN = 0.3  # probability
"""Without followers a group leaves when it is broken with at least this chance.
From: not recorded."""

WAIT_WEIGHT = 2.0  # ratio of minutes
"""The weight of a minute of waiting in vain against a minute of lost tests: it delays everybody.
In a calm line both weigh the same, and it does not count that others may fail.
From: F 60 x 24, seeds 501 to 503, with 1, 2 and 3: P95 4.01, 2.88 and 3.62. In a calm line with 1.5
in place of 1, F 60 x 64, seeds 1501 to 1512: 1.13 / 2.58 at 3.04 runs in place of 1.09 / 2.37 at
2.77."""

CALM_FREE_MIN = 0.25  # share of `concurrency`
"""If conflicts are frequent, a line is calm only if this share of the slots stays free.
From: if every line needed it, seeds 1601 to 1612: F 60 x 64 1.13 / 2.30 at 2.87 runs in place of
1.15 / 2.45 at 2.37, F 30 x 24 0.92 / 1.71 at 1.66 in place of 0.92 / 1.69 at 1.60."""

CALM_CONFLICTS_MAX = 0.05  # share of the pull requests
"""Conflicts are frequent if more than this share of the pull requests is in one.
From: with and without CALM_FREE_MIN, seeds 1701 to 1712: 10 % conflicts 1.68 / 4.06 at 3.48 runs
and 2.01 / 4.75 at 2.95, 5 % conflicts 1.04 / 2.10 at 2.13 and 1.06 / 2.23 at 1.97."""

OVERDUE_SHARE = 0.1  # share of the expected minutes
"""A run that is overdue is expected to take this share of its time more.
From: not recorded."""

RUN_MINUTES = 20.0  # minutes
"""The minutes that a run takes if nothing is known of its checks.
From: not recorded."""

# Entries that impact every target (docs/design/testing.md 11).

RUNS_BEFORE_ALL_MAX = 12  # test runs
"""The most runs of the line under way on which an entry that impacts every target is built.
From: S 300 x 300 with 1 % of them, 1,000 pull requests, with this limit alone: 1.03 / 1.52 at 1.84
runs with seed 901, 1.98 / 6.26 at 7.22 with 902. Without it the same cell took 16 to 42 runs."""

FOLLOWERS_OF_ALL_MAX = 128  # entries
"""The most undecided entries that follow an undecided one that impacts every target. The batch that
starts last may exceed it.
From: S 300 x 300 with 1 % of them, 1,000 pull requests, mean of seeds 901 to 905 (in brackets the
worst): 1.58 / 1.75 (2.71 / 2.05) at 1.49 runs. With 64: 1.38 / 2.01 (1.75 / 2.64) at 1.38, without
a limit: 1.32 / 2.58 (1.98 / 6.27) at 2.89. On seeds 7301 to 7305 1.57 / 1.61 at 1.51 with 128, 1.72
/ 1.72 at 1.39 with 64, 1.49 / 1.43 at 2.18 without."""

# Whether CI itself fails (docs/design/testing.md 6).

INDEPENDENT_FAILURES_MIN = 3  # failures
"""Fewer failures of one required check place no hold, however improbable each is.
From: tests/simulation/outages.py, seeds 0 to 59, SINGLE: two broken ones of twelve held the queue
in 10 of 60 histories with 2, in none with 3. In an outage the hold came after 24 minutes with 2 and
after 35 with 3."""

JOINT_CHANCE_MAX = 0.008  # probability
"""Failures of one required check whose joint chance is smaller have a cause in common.
From: not recorded."""

JOINT_CHANCE_ADAPTIVE_MAX = 0.001  # probability
"""The same with `batchSizing: ADAPTIVE`. There an outage rejects hardly anybody until then, because
a verdict waits while nothing passes.
From: F 10 x 8, seeds 911 to 918: P95 1.82 with 0.008, 1.72 with this. F 30 x 24 with an outage of
20 minutes, seeds 911 to 915: P95 2.18 → 2.02."""

OUTAGE_PERIOD = timedelta(days=3)  # days
"""The time after which CI is assumed to break again so that everything fails.
From: F 30 x 24 with an outage and test results, seeds 911 to 922: of the good ones 0.03 % were
rejected, 0.09 % with seven days. Without the outage P95 was 1.69 and 1.68."""

UNSEEN_MAX = timedelta(days=1)  # days
"""The longest time since the last pass that counts, also if nothing has ever passed.
From: not recorded."""

UNKNOWN_P_FAIL = 0.05  # probability
"""The chance that a change fails for which the queue keeps no estimate.
From: not recorded."""

TAKEN_BACK_MAX = 6  # failures
"""Failures that a hold has taken back from an entry before its next one is expected. Else several
broken entries would place the hold again and again while nothing else is left.
From: not recorded."""

TRIES_MORE_FOR = 30  # entries
"""A queue with this many entries that can be tried begins one more try in each period. So a large
queue finds a pass sooner, and still tries each entry less often than a small one.
From: S 300 x 300 with an outage, seeds 911 to 915: 2.22 / 2.23 with one try each period, 1.86 /
2.08 with one more for each 8, 1.79 / 2.06 for each 30."""

TRY_RISK_MAX = 0.1  # probability
"""An entry that fails with a greater chance is tried after the others.
From: not recorded."""

TRY_SHARE = 0.25  # share of `concurrency`
"""This part of the slots is for tries, and at least one.
From: not recorded."""
