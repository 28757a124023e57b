"""The GraphQL endpoint `/api/graphql`, over a part of the provider's published schema.

`schema.graphql` is that part, with the provider's own names; a field that it lacks is a GraphQL
error, like an unknown field at GitHub. `endpoint.py` answers a call: the roots of query and
mutation, and repositories, pull requests and checks as values.

Values are dicts whose entries may be functions of the field's arguments. graphql-core calls only
those of requested fields, so a query costs what it names.
"""
