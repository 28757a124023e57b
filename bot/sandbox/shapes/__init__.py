"""World state as GitHub's JSON, for REST and webhooks alike: one function per shape.

`people.py` has accounts, Apps and installations, and the helpers that every shape uses. Every
field that the published schema of version 2022-11-28 requires is there, because an independent
client parses every answer in the tests; optional fields are there where somebody reads them.
Nothing here decides or changes anything.
"""
