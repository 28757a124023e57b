"""The rules of the house as tests: sizes, imports, words, files at the top, types, pins.

Each rule is a function over source text, so that each is also shown to bite on a planted
violation. A rule that ruff, mypy, import-linter or deptry can hold is theirs.
"""
