"""The REST API under `/api/v3`, as far as the sandbox imitates it.

Every call passes `door.py`: faults, rights (`call.py`), paging, headers, the log. The other files
have tables of routes and their handlers, by the chapters of the provider's reference. A
handler reads the world and shapes it, or calls one function of `acts/`; it never sees HTTP and
never changes the world itself.

To add an operation: a line in the table of its chapter with the permission that the provider's
"Permissions required for GitHub Apps" names, a handler of a few lines, a test that reads the
answer with an independent client.
"""
