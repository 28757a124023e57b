"""Why a pull request is not merged yet, over the stored queue (ENGINE.md 16)."""

from service.mergequeue.model import RequiredSet
from service.mergequeue.states import EntryState
from service.operations import pull_requests, shown
from service.operations.views import ExplainView
from service.runtime import Runtime
from service.vocabulary import QueueRef


async def explain(runtime: Runtime, queue: QueueRef, number: int) -> ExplainView:
    """Conditions met and open, who is ahead and behind. Raises NotFound(never_submitted)."""
    view = await pull_requests.status(runtime, queue, number)
    value = await shown.value(runtime, queue)
    entry = view.entry
    place = view.position
    line = [one.pr for one in shown.in_order(value) if one.state is not EntryState.NOT_READY]
    run = value.runs.get(entry.run or entry.verified_by or "")
    return ExplainView(
        pull_request=view,
        explained=shown.explained(value, entry, runtime.clock.now()),
        ahead=tuple(line[: place - 1]) if place is not None else (),
        behind=tuple(line[place:]) if place is not None else (),
        depends_on=run.base_prs if run is not None else (),
        required=value.required or RequiredSet(),
    )
