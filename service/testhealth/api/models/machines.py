"""The body of the endpoint about machines, in snake_case."""

from service.testhealth.api.models.tests import AboutTests


class ListBadMachines(AboutTests):
    """`/flaky-tests/list-bad-machines`: machines that fail tests which pass elsewhere."""
