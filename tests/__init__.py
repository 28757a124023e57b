"""Tests, read as sentences: the name states the rule, the body shows it.

`harness` holds the language they are written in, `tidy` the rules of this house. A package,
so that `from tests.harness import expect` and `python -m tests.bench` work from anywhere.
"""
