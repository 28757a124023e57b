"""Organizations, repositories, API tokens, roles and audit.

`access.py` decides what a caller may do, `tokens.py` issues and revokes API tokens, `jobs.py`
accepts GitHub's OIDC tokens of CI jobs, `installations.py` follows where the App is installed,
`repeats.py` answers a repeated request (idempotency key) with its first answer, `audit_log.py` says
who did what. `tenants.py` has the values that are stored.
"""
