"""A demonstration of the merge queue on one machine, without GitHub.

`headgate demo` starts two servers, the sandbox and the service, which talk to each other over
HTTP only. The sandbox has the repository `octo/widgets`, whose CI runs the repository's own tests.
People comment `/merge`, the service reports, and `git` proves the outcome at the end.

Shared: `widgets.py` is the repository and its CI, `seeding.py` makes it, `stage.py` starts the
servers, `watching.py` is what the service's API reports. `proof.py` compares the sandbox's bare
repository with what the API reported, with the `git` command alone: it never reads the service's
database. `run.py` runs and reports.

* All stories once: `story.py` is what each of eighteen pull requests on six branches changes,
  what must become of it, and which test runs each branch must show. `play.py` submits them.
* The playground: `ground.py` is one queue and what a visitor does with it,
  `playground.py` its page and the stories of its buttons.

Worked example, the branch `release`: #8 to #11 are one batch, which fails. The search tests the
first two, which pass and land, then the first three: #10 lands. #11 is left, fails once more by
itself, and is the only one that is rejected. `docs/explanation/demo.md` has the other branches.
"""
