"""The engine's rules as scenarios: inputs and the timeline that must follow from them.

`scenarios/*.txt` are read by `test_scenarios.py`; `stage.py` is the small world around one
queue, `script.py` the language of the files. `pytest --update-golden` writes timelines anew.
"""
