"""Simulated worlds of flaky tests with a hidden truth, and what the detector makes of them.

A world is drawn from a seed: tests with rates, causes that some of them share, pull requests
that break them, a main branch that is broken for a while, machines that fail. Its uploads are
all that the detector sees; the truth is for the figures.

    ledger.py   all uploads of a repository in memory, and the evidence they yield for one test
    worlds.py   drawing a world and its truth; uploads.py: what its CI reports
    rivals.py   simple detectors to compare with
    endpoint.py    a world sent to the public endpoint, shuffled and with repeats
    queue.py    what a queue makes of that knowledge
    figures.py  precision, impact recall, delay, and the rest
    scenarios.py   the published scenarios and their gates; the rows of `make bench ONLY=flaky`
    document.py    docs/reference/flake-detection.md; `python -m tests.bench.flaky` writes it

The rates and habits of these worlds are guesses. No number of the detector is fitted to them.
"""
