"""The log of a test shows where something broke, as the service's own log does."""

from structlog.dev import ConsoleRenderer, plain_traceback


def pytest_configure() -> None:
    """Leave local variables out of tracebacks.

    To show them takes up to a second where a test breaks something on purpose.
    """
    ConsoleRenderer.get_active().exception_formatter = plain_traceback
