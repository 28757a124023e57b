"""Who is in a history besides honest people, and the facts that each has the power to make."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta

from service.mergequeue.engine import inputs
from service.mergequeue.engine.model import Run
from service.provenance import Proof
from service.provider.values import AccessLevel
from service.vocabulary import Override, Role, Sha
from tests.hostile import truth
from tests.hostile.ci import OTHER_APP, a_run, a_status
from tests.hostile.landings import Ambush
from tests.hostile.overrides import Asked
from tests.hostile.repository import Change, Settings, Workflow
from tests.hostile.truth import RED, SKIPS, Plot
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


def writer_brings_settings(world: World) -> None:
    """A pull request brings a file that calls every check optional and requires less."""
    pr = world.one_of(world.queue.entries)
    if pr is not None:
        required = world.chance.choice((None, ()))
        settings = Settings(required, optional=world.names)
        world.pushes_to(pr, replace(_change_of(world, pr), settings=settings))


def writer_brings_workflow(world: World) -> None:
    """A pull request brings a workflow file of another kind, or lets a job run elsewhere alone."""
    pr = world.one_of(world.queue.entries)
    if pr is not None:
        world.pushes_to(pr, replace(_change_of(world, pr), workflow=_a_workflow(world)))


def _change_of(world: World, pr: int) -> Change:
    return world.changes.get(pr, Change())


def _a_workflow(world: World) -> Workflow:
    elsewhere = frozenset({world.chance.choice(world.names)}) if world.chance.random() < 0.6 else ()
    return Workflow(on_push=world.chance.random() < 0.5, elsewhere=frozenset(elsewhere))


def maintainer_pushes_settings(world: World) -> None:
    """The file of the target branch requires another check, or has a fault."""
    names = world.chance.choice(((), (world.names[0],), ("late",), ("late",)))
    settings = Settings(names, is_broken=world.chance.random() < 0.4)
    world.moves_target(Change(settings=settings))


def maintainer_pushes_workflow(world: World) -> None:
    """The workflow file of the target branch changes; the delivery comes, or the post loses it."""
    world.moves_target(Change(workflow=_a_workflow(world)))
    if world.chance.random() < 0.8:
        world.reads_workflows()


def writer_pushes_beside_a_landing(world: World) -> None:
    """Somebody with push access waits for the next landing."""
    world.landings.ambush = world.chance.choice(tuple(Ambush))


def somebody_sets_an_override(world: World) -> None:
    """A person, or a job by its token, says that a test is quarantined, or never is."""
    chance, overrides = world.chance, world.overrides
    test = truth.id_of(chance.choice(world.names), chance.choice(("own", "own", "flaky 1")))
    override = chance.choice((*Override, Override.ALWAYS_QUARANTINE))
    expires_at = world.now + timedelta(seconds=chance.choice((20, 60, 200, 86_400)))
    if chance.random() < 0.5:
        level = chance.choice((AccessLevel.READ, AccessLevel.TRIAGE, AccessLevel.WRITE))
        may = level is AccessLevel.WRITE
        overrides.ask_on_page(Asked(test, override, world.now, expires_at, may), level)
    else:
        role = chance.choice((Role.READ, Role.CI, Role.CI, Role.QUEUE, Role.ADMIN))
        may = role is Role.ADMIN
        overrides.ask_by_token(Asked(test, override, world.now, expires_at, may), role)


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

PLOTS: Mapping[Plot, tuple[tuple[int, Move], ...]] = {
    Plot.NONE: (),
    Plot.FILES: (
        *((3, writer_brings_settings), (2, writer_brings_workflow)),
        *((3, maintainer_pushes_settings), (3, maintainer_pushes_workflow)),
        *((6, World.looks_at_file), (2, World.reads_workflows)),
    ),
    Plot.QUARANTINE: ((8, somebody_sets_an_override),),
    Plot.PUSHES: ((6, writer_pushes_beside_a_landing),),
}
"""What happens beside, by weight."""

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
OVERRIDES_BEFORE = 4
"""Only overrides that are there when a run begins count in it."""
FILES_BEFORE = 2
"""Changes of the target's files before the pull requests that they are about."""


def moves_of(world: World) -> list[Move]:
    """What may happen in a turn of this history: not every player is in each."""
    chance = world.chance
    chosen = [moves for moves in HOSTILE.values() if chance.random() < PLAYER_SHARE]
    chosen.append(PLOTS[world.plot])
    if chance.random() < TROUBLE_SHARE:
        chosen.append(TROUBLE)
    return [move for moves in (HONEST, *chosen) for weight, move in moves for _ in range(weight)]


def begins(world: World) -> None:
    """What has happened when the history begins."""
    if world.plot is Plot.QUARANTINE:
        for _ in range(OVERRIDES_BEFORE):
            somebody_sets_an_override(world)
            world.now += timedelta(seconds=10)
    if world.plot is Plot.PUSHES:
        writer_pushes_beside_a_landing(world)
    world.opens()
    if world.plot is Plot.FILES:
        # Skips count only of jobs that have run on something that landed.
        world.rests()
        for _ in range(FILES_BEFORE):
            world.chance.choice((maintainer_pushes_settings, maintainer_pushes_workflow))(world)
            world.looks_at_file()
        world.opens()


def play(seed: int, plot: Plot | None = None) -> World:
    """Play one history to its end; None: the seed chooses its plot. Raises Violation."""
    world = World(seed, plot)
    begins(world)
    moves = moves_of(world)
    for _ in range(world.turns):
        world.turn(moves)
    world.rests()
    return world
