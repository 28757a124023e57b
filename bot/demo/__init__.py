"""A demonstration of the merge queue on one machine, without GitHub.

`headgate demo` starts two servers, the sandbox and the service, which talk to each other over
HTTP only. The sandbox has the repository `octo/widgets` with five target branches and sixteen
pull requests; its CI runs the repository's own tests. The demo comments `/merge` as people do,
prints what the service reports, and proves the outcome at the end.

`widgets.py` is the repository and its CI. `story.py` is what each pull request changes, what must
become of it, and which test runs each branch must show. `stage.py` starts the servers and fills
the sandbox. `watching.py` is what the service's API reports. `play.py` submits the pull requests
and prints their events. `proof.py` compares the sandbox's bare repository with what the API
reported, with the `git` command alone: it never reads the service's database. `run.py` runs all
of this and reports.

Worked example, the branch `release`: #8 to #11 are one batch, which fails. The search tests the
first two, which pass and land, then the first three: #10 lands. #11 is left, fails once more by
itself, and is the only one that is rejected. `docs/explanation/demo.md` has the other branches.
"""
