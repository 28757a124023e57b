"""Sample tests whose names say what is true of them, so that a reader can be held to it.

`passes`, `is_skipped`, `fails_always`, `fails_once_then_passes` and so on are part of the name of
each test, however its runner joins words. With two retries, a test has the attempts of its truth.
"""

from typing import NamedTuple

from service.testhealth.reports.results import Outcome

PASSED, FAILED, SKIPPED = Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED


class Truth(NamedTuple):
    """What the name of a sample test says, and how each attempt of it ends with two retries."""

    words: str
    attempts: tuple[Outcome, ...]


# The first that fits counts, so longer names come first.
TRUTHS = (
    Truth("fails_once_then_passes", (FAILED, PASSED)),
    Truth("fails_always", (FAILED, FAILED, FAILED)),
    Truth("fails_and_teardown_errors", (FAILED, FAILED)),
    Truth("fails_for_it_is_todo", (SKIPPED,)),
    Truth("fails_without_retry", (FAILED,)),
    Truth("is_skipped", (SKIPPED,)),
    Truth("passes", (PASSED,)),
)

PYTEST_RETRIED = """
import pytest

runs = []


def test_passes():
    pass


def test_fails_once_then_passes():
    runs.append(1)
    assert len(runs) == 2


class TestCart:
    def test_fails_always(self):
        assert 10 == 11

    @pytest.mark.parametrize("name", ["plain", "tä/st"])
    def test_passes(self, name):
        pass


@pytest.mark.skip(reason="not on this machine")
def test_is_skipped():
    pass
"""

PYTEST_TEARDOWN = """
import pytest


@pytest.fixture
def unclean():
    yield
    raise RuntimeError("not cleaned up")


def test_passes():
    pass


def test_fails_and_teardown_errors(unclean):
    assert 10 == 11


def test_fails_without_retry():
    assert 10 == 11
"""

PYTEST_STOPPED = """
import pytest


def test_fails_without_retry():
    assert 10 == 11


def test_passes():
    pytest.exit("no database", returncode=7)


def test_is_skipped():
    pytest.skip()
"""

JEST_TWINS = """
describe('cart', () => {
  it('passes or fails', () => {});
  it('passes or fails', () => { throw new Error('10 != 11'); });
  it('passes', () => {});
});
"""

PROJECTS = """
const { test, expect } = require('@playwright/test');
test('passes', () => {});
test('fails once then passes', ({}, info) => { expect(info.retry).toBe(1); });
test('fails always', () => { expect(10).toBe(11); });
test('passes but in webkit', ({}, info) => { expect(info.project.name).not.toBe('webkit'); });
test('passes but in chromium', ({}, info) => { expect(info.project.name).not.toBe('chromium'); });
test.skip('is skipped', () => {});
"""
# No test asks for a page, so that no browser is needed.
PROJECTS_CONFIG = """
module.exports = {
  testDir: '.', testMatch: 'cart.play.js', retries: 2, workers: 1,
  projects: [{ name: 'chromium' }, { name: 'webkit' }],
  reporter: [['junit', { outputFile: 'report.xml' }]],
};
"""

NODE_TODO = """
const { describe, it } = require('node:test');
describe('cart', () => {
  it('passes', () => {});
  it.todo('fails for it is todo', () => { throw new Error('10 != 11'); });
  it('fails for it is todo too', { todo: 'in May' }, () => { throw new Error('10 != 11'); });
  it.todo('is skipped, for it is empty');
  it('fails without retry', () => { throw new Error('10 != 11'); });
});
"""

GO_MODULE = "module example.org/shop\n\ngo 1.19\n"
GO_SUBTESTS = """
package cart

import "testing"

func TestPasses(t *testing.T) {
	t.Run("too", func(t *testing.T) {})
}

func TestParent(t *testing.T) {
	t.Run("passes", func(t *testing.T) {})
	t.Run("fails_without_retry", func(t *testing.T) { t.Error("10 != 11") })
}

func TestParentItself(t *testing.T) {
	t.Run("fails_without_retry", func(t *testing.T) { t.Error("10 != 11") })
	t.Error("the parent itself fails")
}
"""
GO_BROKEN = """
package tax

func Total() int { return "none" }
"""
GO_BROKEN_TEST = """
package tax

import "testing"

func TestPasses(t *testing.T) { Total() }
"""
