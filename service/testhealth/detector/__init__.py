"""Find the tests that fail without a reason in the code: from reports to a decision.

Theory of operation. The same code that both passed and failed proves that chance is at work
somewhere. Whether the test owns it or the machine is decided by how often it happens, by how
many tests disagreed together, and by how noisy the repository is anyway. Everything in here is
a function of values: the same set of uploads gives the same health, whatever order they came
in, however often, and whatever the wall clock says. Time is the *evidence clock*, the newest
`ran_at` of the repository's eligible uploads.

From attempts to events. `evidence.py`: the attempts of one test, job key and code id are a
*group*; where neighbors in time differ, every odd transition is an event of stream A. It weighs
less the more tests disagreed in the same upload or CI run: infrastructure hits many at once.
`series.py`: the verdicts of one job on a stable branch are a *series*; one that differs from
both neighbors is an event of stream B, so that repositories where nobody re-runs are seen too.
`pushes.py`: a failure in one push of a pull request alone is an event of stream C, which is weak
and needs several pull requests that agree; often it is all there is.

From events to health. `score.py` asks how much better "this test is flaky at some rate" explains
the events of two weeks than the repository's noise (`noise.py`) does; that ratio exceeds K for a
sound test with a probability of at most about 1 / K, however often one looks. `spans.py` folds
the events, oldest first: a span of flakiness begins at the event that reaches K, and ends at the
midnight after the test had been quiet for so long that its own rate makes it unlikely.
`series.py` also says when a failing streak is too long for the rate before it: *broken*.
`health.py` puts spans, flags set by people, and silence together: value, reason, since, history.
`reasons.py` has the words, `history.py` adds to what is already written without rewriting it.

What the store must supply to `health.judge`, for one test (`health.Evidence`):

    first_run, last_run   of passed or failed results; first_pass: the first passed attempt ever
    events      `evidence.events_of` each group with a failed attempt, all its attempts over
                eligible uploads that are no mass failure, duplicates of an identity left out;
                with `evidence.Charged` for each upload that has a failed one. When a group
                begins or ceases to have a transition, `disagreeing` changes for all uploads
                with a failed attempt in it, so tests that failed beside it are judged again.
                And `series.events_of` each track.
    passes      passing results by day (of 14 days before the oldest event and all after), and
                the times of those on days with an event. Events come first, then this.
    tracks      for each series the test ran in: the shared points, and one letter a point
                (at most 600). `Point.alone` is `series.lonely_points`, counted over all tests
                of the series that have a failed verdict in it.
    failures    times of failed results in 45 days; flags: every word of a person, oldest too
    settled     once evidence was dropped: `health.settled_at` of the last judgement before,
                at a midnight that leaves 29 days of evidence before it (keep 45 days: 16 days
                before the clock). Without it a test that is flaky for long would begin anew.

And for the repository (`spans.Scale`): the evidence clock, its first day, K by `sensitivity`
(`score.THRESHOLDS`), and by day `noise.of` the 28 complete days before: passing results of all
tests, tests run at all points of all series, and the uncapped tallies of each test with an event.

To be judged: tests with a failed attempt in 45 days or a flag; the unhealthy ones on each new
day of the clock; those whose last run becomes 30 days old. All others are healthy, and
`reasons.clean` is all there is to say. A healthy test's reason hangs on its own last run and not
on the clock, so it need not be judged again because other tests ran.

A worked example. A test runs 50 times a day. In run 48 it fails, and passes on a re-run of the
same tree: D = 1, N = 48, LR = 30; ten green verdicts on main make it S = 24, below K = 100. Next
day a database is away: 100 tests disagree in one upload, each event weighs 5 / 100, and LR falls
to 9.6 as the passes go on. Two days later it disagrees alone again: D = 2.05, N = 203, LR = 420,
and with 40 verdicts on main S = 252: flaky since that moment. Its rate is about 1 in 90; 403
clean runs are unlikely at two thirds of it. They are reached on the ninth day after, and the
next midnight it is healthy. Later it fails three times in a row on main, after 140 passes: at
the rate before that has a chance of 3 in ten million: broken, until it passes.
"""
