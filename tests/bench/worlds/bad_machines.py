"""On which days machines of a world are called bad (docs/design/machines.md)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from service.testhealth.detector import evidence, machines
from service.testhealth.detector.machines import Ran
from tests.bench.flaky.ledger import Ledger
from tests.bench.flaky.worlds import DAY, START
from tests.bench.worlds import ci
from tests.bench.worlds.catalogue import BY_NAME


def days_called_bad(name: str, seed: int, **changed: Any) -> Mapping[str, Sequence[int]]:
    """By machine, the days at whose beginnings it is called bad; every upload names its machine."""
    shape = replace(BY_NAME[name].shape, has_machine_names=True, **changed)
    ledger = Ledger(ci.played(shape, seed, name).uploads)
    events = {no: ledger.events_of(no) for no in ledger.suspects}
    shared = {job for job, names in ledger.machines.items() if len(names) >= evidence.MACHINES_MIN}
    ran = [
        (each.at, Ran(each.machine, each.job, each.code))
        for each in ledger.uploads
        if each.job in shared and each.machine
    ]
    found: defaultdict[str, list[int]] = defaultdict(list)
    for day in range(1, shape.days + 1):
        clock = START + DAY * day
        known = {no: [each for each in of if each.at <= clock] for no, of in events.items()}
        for bad in machines.found(known, [each for each in ran if each[0] <= clock], clock):
            found[bad.machine].append(day)
    return found
