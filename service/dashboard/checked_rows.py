"""The table of required checks on the page of a pull request."""

from collections.abc import Sequence
from dataclasses import dataclass

from service.dashboard import marks
from service.dashboard.marks import Mark
from service.mergequeue.engine.checked import CheckedName
from service.mergequeue.wording import checked_names
from service.text.phrases import Phrase


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """A required check; `more` says why it counts although it did not simply pass."""

    check: CheckedName
    mark: Mark
    more: Phrase
    ran_on: Phrase
    reported_by: Phrase


def rows_of(table: Sequence[CheckedName]) -> tuple[CheckedRow, ...]:
    """Return the rows, in the order of the table."""
    return tuple(
        CheckedRow(
            check=one,
            mark=marks.of_checked(one),
            more=checked_names.details(one),
            ran_on=checked_names.ran_on(one),
            reported_by=checked_names.reported_by(one),
        )
        for one in table
    )
