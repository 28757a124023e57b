"""World state as the provider's JSON, REST and webhooks alike.

One function per shape: `thing(world, repository, value)`. Every field that the published schema
of version 2022-11-28 requires is set explicitly, also those that nobody here reads, because an
independent client parses every answer in the tests. Nothing here decides or changes anything.
"""
