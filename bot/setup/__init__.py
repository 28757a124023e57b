"""Set-up in a browser: registering the GitHub App, installing it, and the first queue.

`serve` without the App's credentials runs `registering.registered` first. It listens on the
service's address, prints one address with a one-time token, and serves a form. The form becomes a
manifest, which the browser posts to GitHub; GitHub sends the browser back with a code; the code is
exchanged for the credentials, which are written into the data directory. Then the same process goes
on to serve, and the session of the browser stays valid for `first_queue`.

`sessions.py` has the one-time links and the sessions, `manifest.py` the form and the manifest,
`pages.py` makes the pages. They are plain HTML with forms, without scripts
(docs/design/security.md 9).
"""
