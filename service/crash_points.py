"""Points between two effects at which crash tests strike; in production they do nothing.

Each place where a kill could leave the world half changed calls `reach` with a name of `NAMES`
(docs/design/transactions.md 10). A test holds the names equal to the calls.
"""

from typing import Protocol

NAMES: tuple[str, ...] = (
    "tx.accept.before_commit",
    "tx.accept.after_commit",
    "tx.turn.before_commit",
    "tx.turn.after_commit",
    "tx.permit.before_commit",
    "tx.permit.after_commit",
    "tx.settle.before_commit",
    "tx.settle.after_commit",
    "act.build.before_send",
    "act.build.after_send",
    "act.build.before_settle",
    "act.land.before_send",
    "act.land.after_send",
    "act.land.before_settle",
    "act.retire.before_send",
    "act.retire.after_send",
    "act.tell.before_send",
    "act.tell.after_send",
    "act.tell.before_settle",
    "act.ticket.before_send",
    "act.ticket.after_send",
    "act.ticket.before_settle",
    "effect.before_done",
    "notify.before_send",
    "notify.after_send",
    "notify.before_settle",
    "landing.after_permit",
    "landing.before_proof",
    "hook.before_answer",
    "api.before_answer",
    "barrier.before_readback",
    "barrier.before_sweep",
    "stop.before_drain",
    "stop.before_close",
)
"""Every crash point, in the order of a story."""


class CrashPoints(Protocol):
    """The places where the harness hooks in."""

    def reach(self, name: str) -> None:
        """Pass the crash point `name`; may not return in a crash test."""
        ...


class NoCrashes:
    """Production: nothing strikes."""

    def reach(self, name: str) -> None:
        """See `CrashPoints.reach`."""
