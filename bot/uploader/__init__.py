"""Uploads from CI, with the standard library alone: Python 3.9 or newer, nothing installed.

`action/` runs this package from the checkout of the action itself, on machines where Headgate
is not installed, so nothing but the standard library is imported here, and no newer Python is
needed. `headgate upload` is built on the same functions and adds a command to run, a progress
bar and JSON (FLAKY.md 2.2, 2.10).

One upload goes through the files in this order. `ci.py` finds out what was tested, from the CI
system's environment and from git. `files.py` finds the reports and makes requests of them that
keep the limits of API.md 8.4. `sending.py` sends them, again and again while the service is
away. `verdict.py` says how to end: the exit code, a sentence, what the job's page shows.
`__main__.py` is the actions' own command line.

Impacted targets take the same way: `touched.py` asks the repository's build tool, `targets.py`
sends what it says. There a refusal does fail the job, or the pull request would wait in silence.

Nothing that goes wrong with test results fails a job by itself: an upload that cannot be sent is a
warning, unless `strict` asks for an exit code of its own.
"""
