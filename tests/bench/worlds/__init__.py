"""Small simulated repositories, each with one hidden law of its own, and how they are judged.

The scenarios of `tests.bench.flaky` ask whether the detector is good on the whole. These worlds
ask where it fails: each changes one thing, such as a bad machine, shards or a suite that runs at
night alone.

    shapes.py      what a repository is made of, and one moment of its CI
    laws.py        why tests fail: one small class for each reason
    ci.py          playing a repository: its uploads, in the ledger of `tests.bench.flaky`
    repeating.py   the same with repeated runs; `python -m tests.bench.worlds.repeating`
    catalogue.py   the worlds, and what each is asked
    document.py    what the reference page says of them
    measured.py    figures, gates and rows; `make bench ONLY=worlds`

The rates and habits are guesses. No number of the detector is fitted to them.
"""
