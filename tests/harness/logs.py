"""The log of a test shows where something broke, as the service's own log does."""

import structlog
from structlog.dev import ConsoleRenderer, plain_traceback


def pytest_configure() -> None:
    """Leave local variables out of tracebacks.

    To show them takes up to a second where a test breaks something on purpose.
    """
    ConsoleRenderer.get_active().exception_formatter = plain_traceback


def pytest_runtest_logfinish() -> None:
    """Give the next test the log as it was, whatever this one has configured."""
    if structlog.is_configured():
        structlog.reset_defaults()
        pytest_configure()
