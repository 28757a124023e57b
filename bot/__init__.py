"""The GitHub App: everything that knows GitHub, the process, and the command line.

`service` is the merge queue and would stay true with another provider. This package puts
GitHub behind it and makes a program of the two. Nothing in `service` imports anything from
here; here, only `wiring` puts the parts together.

How a fact comes in. GitHub calls `/webhooks/github`. `github/webhook.py` checks the signature
over the raw bytes, stores the delivery through `service.process` and answers; it decides
nothing. A worker takes the delivery later, `github/reading.py` reads the few fields we use
(no other file knows GitHub's field names), and `github/translate.py` turns the event into
signals, the words of `service/provider/signals.py`. A comment passes `commands.py`, the
grammar of `/merge` and its kin, on the way.

How an effect goes out. `github/provider.py` implements the protocol of
`service/provider/port.py`. All its calls go through `github/client.py`, the one place that
knows redirects, paging, retries and how an answer becomes an error class. A write whose
answer was lost is never repeated blindly: the verbs read back first.

What stands beside. `settings.py` parses the environment once into a frozen value, `keys.py`
derives and seals, `telemetry.py` sets up the log. `wiring.py` opens the store, builds the
provider, the web application and the workers; `cli/` is the only caller of it besides
`demo`.

The stand-in. `sandbox/` is GitHub as far as the service can see it: real bare repositories,
signed webhooks, App tokens, branch protection, scripted CI. It speaks only HTTP and git and
imports nothing of ours, so that an error of ours cannot hide in it. Tests, demo and local
trials run the same service code against it as production runs against GitHub.
"""
