"""Who is in a history besides honest people, and the facts that each has the power to make."""

from collections.abc import Callable, Mapping

from service.mergequeue.engine import inputs
from service.mergequeue.engine.model import Run
from service.provenance import Proof
from service.vocabulary import Sha
from tests.hostile.ci import OTHER_APP, a_run, a_status
from tests.hostile.truth import RED, SKIPS
from tests.hostile.world import World

Move = Callable[[World], None]

FORGED = (Proof.NONE, Proof.TOKEN, Proof.RUN, Proof.JOB)
"""What a report may have that is not of the job that it names; JOB: of the job that sent it."""


def _commit(world: World) -> tuple[Run, Sha] | None:
    """The commit of a run, which everybody can see as soon as its branch is there."""
    runs = world.live()
    run = world.chance.choice(runs) if runs else None
    return None if run is None or run.sha is None else (run, run.sha)


def writer_sets_a_status(world: World) -> None:
    """A person with write access says that a check passed."""
    found = _commit(world)
    if found is not None:
        name = world.chance.choice((*world.names, "late"))
        world.ci.say(found[1], a_status(name, world.ci.number(), "success"))


def writer_uses_another_app(world: World) -> None:
    """Another App that the writer may use reports the same name."""
    found = _commit(world)
    if found is not None:
        name, number = world.chance.choice(world.names), world.ci.number()
        other = a_run(name, number, "success", app=OTHER_APP, suite="9")
        world.ci.say(found[1], other)


def writer_moves_a_test_branch(world: World) -> None:
    """The branch of a run shows another commit from now on, on which everything has passed."""
    found = _commit(world)
    if found is not None:
        run, _ = found
        other = world.moved[run.id] = Sha(f"{int(world.ci.number()):040x}")
        for name in world.names:
            world.ci.say(other, a_run(name, world.ci.number(), "success"))


def job_makes_a_check_run(world: World) -> None:
    """A job with `checks: write` reports a name that another job reports as failed."""
    found = _commit(world)
    if found is None:
        return
    failing = [job.name for job in world.ci.jobs[found[1]] if job.truth in RED]
    if failing:
        name, number = world.chance.choice(failing), world.ci.number()
        world.ci.say(found[1], a_run(name, number, "success", suite="5"))


def job_reports_for_another(world: World) -> None:
    """A job sends a whole report with quarantined failures alone, as if it were another job."""
    found = _commit(world)
    if found is None:
        return
    for job in world.ci.jobs[found[1]]:
        if job.truth in RED:
            proof = world.chance.choice(FORGED)
            sender = (
                world.chance.choice(_others(world, found[1], job.id)) if proof is Proof.JOB else ""
            )
            world.ci.uploads[found[1]].append(world.ci.upload(job.name, proof, sender))


def _others(world: World, sha: Sha, own: str) -> list[str]:
    """Check runs of other jobs, one of which runs the code of the pull request."""
    # What a job says of itself is its own affair: docs/design/provenance.md 4.
    ran = [job.id for job in world.ci.jobs[sha] if job.truth not in SKIPS | RED and job.id != own]
    return ran or ["99"]


def tenant_names_our_run(world: World) -> None:
    """Another tenant sends reports of checks for runs that are not its own."""
    found = _commit(world)
    if found is not None:
        good = tuple(a_run(name, world.ci.number(), "success") for name in world.names)
        world.tell(inputs.ChecksReported("a run of others", found[1], good, True))


HOSTILE: Mapping[str, tuple[tuple[int, Move], ...]] = {
    "writer": (
        (3, writer_sets_a_status),
        (3, writer_uses_another_app),
        (1, writer_moves_a_test_branch),
    ),
    "CI job": ((3, job_makes_a_check_run), (4, job_reports_for_another)),
    "other tenant": ((3, tenant_names_our_run),),
    "post": ((3, World.reads_late),),
}
"""The moves of each player, by weight."""

HONEST: tuple[tuple[int, Move], ...] = (
    (4, World.opens),
    (8, World.makes_branches),
    (14, World.ci_works),
    (8, World.reads),
    (4, World.post_comes),
    (8, World.explains),
    (8, World.lands_now),
)
"""What happens in every history, by weight."""

TROUBLE: tuple[tuple[int, Move], ...] = (
    *((1, World.pushes), (1, World.requests_changes), (1, World.cancels), (1, World.pauses)),
    *((1, World.requires_more), (1, World.moves_target), (1, World.loses_rules)),
)
"""What people without any bad intent do in some histories."""

TROUBLE_SHARE, PLAYER_SHARE = 0.4, 0.6


def moves_of(world: World) -> list[Move]:
    """What may happen in a turn of this history: not every player is in each."""
    chance = world.chance
    chosen = [moves for moves in HOSTILE.values() if chance.random() < PLAYER_SHARE]
    if chance.random() < TROUBLE_SHARE:
        chosen.append(TROUBLE)
    return [move for moves in (HONEST, *chosen) for weight, move in moves for _ in range(weight)]


def play(seed: int) -> World:
    """Play one history to its end. Raises Violation."""
    world = World(seed)
    world.opens()
    moves = moves_of(world)
    for _ in range(world.turns):
        world.turn(moves)
    world.rests()
    return world
