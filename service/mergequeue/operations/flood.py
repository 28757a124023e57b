"""Too many commands in a short time (UX.md 2.3).

Counted in memory: a restart forgets, which errs on the side of listening.
"""

from dataclasses import replace

from service.mergequeue.operations.wishes import Asking
from service.mergequeue.wording import replies
from service.mergequeue.wording.answers import Answer
from service.runtime import Runtime


def answer(runtime: Runtime, asking: Asking) -> Answer | None:
    """The refusal of one command too many; None: it is heard.

    In words once per pull request and hour, after that by the reaction alone.
    """
    now = runtime.clock.now()
    person = f"{asking.repository.id}/{asking.asked.actor.id or asking.asked.actor.login}"
    pull = f"{asking.repository.id}#{asking.pull.number}"
    until = runtime.commands.until(person, pull, now)
    if until is None:
        return None
    refusal = replies.flood(until, now)
    return refusal if runtime.commands.is_first_refusal(pull, now) else replace(refusal, text=None)
