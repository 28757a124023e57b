"""Uploads from CI, with the standard library alone: Python 3.9 or newer, nothing installed.

`action/` runs this package from the checkout of the action, on machines without Headgate, so it
imports the standard library alone and needs no newer Python. `headgate upload` uses the same
functions and adds a command to run, a progress bar and JSON output.

One upload takes these steps. `ci.py` finds out what was tested, from the CI system's environment
and from git. `files.py` finds the reports and puts them into requests within the API's limits.
`uploading.py` sends one request after the other. `transport.py` does the HTTP and retries while
the service is away; the command line's API client uses it too. `verdict.py` decides the exit
code and writes the sentence and the job's summary. `__main__.py` is the actions' command line.

Impacted targets: `targets.py` asks the repository's build tool and sends the answer.
There a refusal does fail the job, or the pull request would wait in silence.

A failed upload of test results never fails a job by itself: it is a warning, unless `strict` asks
for an exit code of its own.
"""
