"""A stand-in for GitHub over real bare git repositories, reached over HTTP only.

Serves the demo, the end-to-end tests, the conformance suite and the benchmarks. Written from the
provider's published descriptions; it imports nothing of the service and nothing of the adapter,
so a mistake made there cannot be repeated here.

Where to look, from the ground up:

* Time: `timeline.py`. Everything that happens later is a job of it, so a test that owns the clock
  decides when CI ends, a webhook is sent or a branch is renamed.
* Git: `git.py`, `merges.py`, `command.py` are real repositories: objects in git's own format,
  refs, and the git command. A fork shares its parent's objects.
* State: `records.py` and `world.py`, as plain mutable values.
* A rule that refuses a merge or a push: `merge_rules.py` and `rules.py`, with `standing.py` for
  the reports that count. They change nothing. GitHub's sentences: `refusals.toml`, `refusal.py`.
* A fault that a test plants: `faults.py`; its effects: `rest/door.py` and `deliver.py`.
* The shape of an answer or a webhook: `shapes/`. Sending a webhook: `deliver.py`.
* What CI does: `ci.py`, with `ci_file.py` for the grammar of `.sandbox/ci.yml`, `reports.py` for
  check runs and statuses, and `artifacts.py`.
* A change of the world: `acts/`. A branch moves in `acts/refs.py` and nowhere else, and the move
  changes its pull requests and starts events and CI.
* A REST route: the table at the end of a file of `rest/`; every call passes `rest/door.py`. The
  other ways in: `graph/` (GraphQL), `smart_http.py` (git), `app.py` (the control plane) and
  `pages.py` (people).
* What it may begin with: `acts/seeds.py`.
* `app.py` starts it: `running(SandboxOptions(…))`.

A world serves one event loop. A change of a repository needs its lock, which its forks share: the
REST door, GraphQL's mutation, a push, an act of a person and the late jobs each take it once, and
nothing below them does.
"""
