"""A deterministic simulator of merge queues: how soon good pull requests land, and at what cost.

A workload is drawn from a seed: pull requests with arrival times, durations of their CI, impacted
targets, and a hidden truth (which are broken, which pairs conflict, which runs are flaky). A
strategy sees only what a queue may know. It is told events and answers with actions; the simulator
runs the CI on a number of workers, finds out from the hidden truth how each run ends, and audits
every merge: was main really green, and did the run given as proof test what was merged? No clock
is read and chance comes from the seed, so the same seed gives the same result to the last digit.

    interface.py   events in, actions out: what a strategy is
    workload.py    drawing pull requests and their truth; chance.py: chance of single runs
    world.py       what CI is like: switches, and the values that were measured
    simulator.py   the loop and the CI workers; ci.py: times of runs; audit.py: the judge of merges
    ideal.py       the yardstick: an oracle with unlimited workers, in closed form
    metrics.py     the published numbers; scenarios.py: the published scenarios
    arrivals.py    when pull requests came to real queues, from a table beside the project
    strategies/    what queues commonly do, oracles as bounds, and two feasibility prototypes
    engine_strategy.py, settings.py   the engine of this project and its recommended settings
    cells.py       one cell of the tables, in parallel; tables.py: Markdown; goals.py: P1 to P23
    bounds.py      relaxed queues beside the goals: what can be reached, and what each gift is worth
    worlds_page.py the part of the page about other worlds

Truth. A pull request is broken on its own with its own risk r (Beta distributed); `p_ok` = 1 - r
is what a queue sees, so the estimate is calibrated by construction, and `risk_conc` says how
informative it is (1: nearly certain, 50: useless). Two pull requests may conflict if they share a
target or one of them touches all; real conflicts are drawn among such pairs that arrive close to
each other. A tree passes if it holds no broken pull request and no conflicting pair, main
included; a run of a passing tree still fails with probability `flake`. A run takes the longest
duration of what it tests, times a noise of 10 %. With `full_suite` a run also proves its base,
else only what it tests. The rate stretches the time axis and changes nothing else.

Worlds. In the plain one a failing run takes as long as a passing one, every slot is the queue's,
and flakes are as frequent at any time. In the believable one a run ends when its first failure is
known, some runs take very long, pull requests run their own CI on slots of the same account, and
more. A world changes when things happen, which flakes there are, and nothing else of the truth.

Simplifications: nobody repairs another's failure, text conflicts cost a whole run, merging takes no
time, no broken tree ever passes.
"""
