"""The endpoint about machines that fail tests which pass elsewhere."""

from service.http.callers import Call
from service.http.route import Route, read
from service.testhealth.api.models.answers.machines import (
    BadMachinesListed,
    FailedThere,
    MachineShown,
)
from service.testhealth.api.models.machines import ListBadMachines
from service.testhealth.operations import bad_machines, records
from service.testhealth.operations.bad_machines import FoundMachine
from service.testhealth.operations.records import RepositoryAddresses


@read("flaky-tests/list-bad-machines", ListBadMachines, BadMachinesListed, "organization_not_found")
async def list_bad_machines(call: Call, asked: ListBadMachines) -> BadMachinesListed:
    """List the machines that fail tests which pass elsewhere."""
    ref, slug = asked.repo.ref, asked.org_url_slug
    addresses = await records.find_addresses(call.runtime, call.caller, ref, slug)
    found = await bad_machines.of_repository(call.runtime, addresses.repository)
    return BadMachinesListed(
        machines=[_shown(addresses, each) for each in found],
        advice=bad_machines.ADVICE if found else "",
    )


def _shown(addresses: RepositoryAddresses, found: FoundMachine) -> MachineShown:
    bad, tests = found
    return MachineShown(
        name=bad.machine,
        since=bad.since,
        tests=bad.count,
        examples=[
            FailedThere(
                name=case.name,
                file_path=case.file or None,
                html_url=addresses.address_of(case.id),
            )
            for case in tests
        ],
        failing_runs=bad.failing,
        runs=bad.runs,
        failing_runs_elsewhere=bad.others_failing,
        runs_elsewhere=bad.others_runs,
    )


MACHINE_ROUTES: tuple[Route, ...] = (list_bad_machines,)
"""The endpoint, as documents list it."""
