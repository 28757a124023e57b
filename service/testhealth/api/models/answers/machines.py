"""Answers about machines that fail tests which pass elsewhere (docs/design/machines.md)."""

from service.http.models.answers.common import Count, SnakeAnswer, Time
from service.testhealth.api.models.answers.tests import Address


class FailedThere(SnakeAnswer):
    """A test that fails on one machine and passes on others."""

    name: str
    """Its name. For example `test_total`."""
    file_path: str | None
    """Its file, null if reports name none. For example `ui/test_cart.py`."""
    html_url: Address
    """Its page. For example `https://queue.example.org/octo/widgets/tests/b7e0a3c4`."""


class MachineShown(SnakeAnswer):
    """A machine that fails tests which pass on other machines."""

    name: str
    """The name that uploads give it. For example `runner 7`."""
    since: Time
    """The first of these failures in 14 days."""
    tests: Count
    """How many tests fail there and hardly anywhere else. For example `15`."""
    examples: list[FailedThere]
    """At most 10 of them, those first that fail most often there."""
    failing_runs: Count
    """In how many of its runs in 14 days any of them failed. A run is a job on a commit. For
    example `18`.
    """
    runs: Count
    """How many runs it had. For example `21`."""
    failing_runs_elsewhere: Count
    """In how many runs of all other machines tests failed that fail on one of these alone. For
    example `7`.
    """
    runs_elsewhere: Count
    """How many runs these had. For example `179`."""


class BadMachinesListed(SnakeAnswer):
    """The machines that fail tests which pass elsewhere."""

    machines: list[MachineShown]
    """The machines, those first that fail most tests; empty: none does, or uploads name too few.
    """
    advice: str
    """Who acts, and how; empty without a machine. For example `Whoever runs the CI machines takes
    such a machine out of service or repairs it.`
    """
