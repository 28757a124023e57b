"""The engine's rules as scenarios: inputs and the timeline that must follow from them.

`test_scenarios.py` plays each file of `scenarios/` once and checks its timeline, estimates,
texts and metrics. `stage.py` is the small world around one queue, `script.py` the language of
the files. `pytest --update-golden` rewrites timelines.
"""
