"""The order in which workers get the tests."""

from pathlib import Path

from tests.harness.order import dealt

TESTS = [Path(f"{name}.py") for name in "aabbccddeeff"]


def test_every_share_begins_with_long_files_and_nothing_is_lost() -> None:
    long_files = {Path("f.py"), Path("c.py")}
    order = dealt(TESTS, lambda test: test, long_files, 2)
    assert "".join(test.stem for test in order) == "ccaabbffddee"


def test_more_long_tests_than_a_share_holds_lose_nothing() -> None:
    order = dealt(TESTS, lambda test: test, set(TESTS), 4)
    assert "".join(test.stem for test in order) == "aaeebbffccdd"
