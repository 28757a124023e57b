"""The outside world: a look-alike of the provider over real bare git, met over HTTP only.

Serves the demo, the end-to-end tests, the conformance suite and the benchmarks. Written from the
provider's published descriptions; it imports nothing of the service and nothing of the adapter,
so a mistake made there cannot be made here too.

How it stands together, from the ground up:

* `timeline.py` is the world's time. Everything that happens later is a job of it, so a test that
  owns the clock decides when CI ends, a webhook leaves or a branch is renamed.
* `git.py`, `merges.py`, `command.py` are real repositories: objects in git's own format, refs,
  and the git command for whatever needs its judgement. A fork shares its parent's objects.
* `records.py`, `world.py` and `faults.py` are the state, as plain mutable values.
* `standing.py`, `rules.py` and `merge_rules.py` decide and change nothing: which reports count,
  what a branch demands, why a merge is refused, in the provider's words.
* `shapes/` makes JSON; `deliver.py` sends events to the App, each with a payload built at once.
* `reports.py` and `ci.py` report on commits; `ci_file.py` is the grammar of `.sandbox/ci.yml`.
* `acts/` changes the world. A branch moves in `acts/refs.py` and nowhere else, and the move
  carries its pull requests, events and CI along.
* `rest/`, `graph/`, `smart_http.py`, `control.py` and `pages.py` are the ways in. Each call of
  the API passes `rest/door.py`, where faults apply and the log is written.
* `app.py` puts it together: `running(SandboxOptions(…))`.

A world serves one event loop. Whoever changes a repository holds its lock, which its forks
share: the REST door, GraphQL's mutation, a push, an act of a person and the late jobs each take
it once, and nothing below them does.
"""
