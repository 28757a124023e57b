"""Machines that fail tests which pass elsewhere, as they were found last."""

from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select

from service.database.codec import RowCodec
from service.testhealth.detector.machines import BadMachine
from service.testhealth.store.cases import Place, keys_of
from service.testhealth.store.tables_evidence import BadMachineRow

machines = BadMachineRow.__table__

MACHINE = RowCodec(BadMachine, machines, keys={"org_id", "repository_id"})


def of_repository(session: Connection, repository_id: int) -> tuple[BadMachine, ...]:
    """Return the bad machines of a repository, by name."""
    statement = select(*MACHINE.columns).where(machines.c.repository_id == repository_id)
    return tuple(map(MACHINE.value, session.execute(statement.order_by(machines.c.machine))))


def replace(session: Connection, place: Place, found: Sequence[BadMachine]) -> None:
    """Store the bad machines of a repository in place of those that were found before."""
    session.execute(delete(machines).where(machines.c.repository_id == place.repository_id))
    for each in found:
        session.execute(insert(machines), MACHINE.row(each) | keys_of(place))
