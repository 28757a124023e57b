"""All records by code, in the order of the enums in `service/mergequeue/engine/reasons.py`."""

from collections.abc import Mapping

from service.mergequeue.reasons import (
    cancelled,
    causes,
    failed,
    holds,
    merged,
    not_ready,
    pending,
    refused,
    submitted,
    testing,
)
from service.mergequeue.reasons.record import CauseRecord, HoldRecord, Record

FAMILIES = (submitted, not_ready, pending, testing, failed, cancelled, merged, refused)

REASONS: Mapping[str, Record] = {one.code: one for family in FAMILIES for one in family.RECORDS}

HOLDS: Mapping[str, HoldRecord] = {one.code: one for one in holds.RECORDS}

CAUSES: Mapping[str, CauseRecord] = {one.code: one for one in causes.RECORDS}
