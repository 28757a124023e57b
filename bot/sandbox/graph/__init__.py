"""The GraphQL endpoint `/api/graphql`, over a part of the provider's published schema.

`schema.graphql` holds that part with the provider's own names; whatever it lacks is a GraphQL
error, as an unknown field is there. `endpoint.py` answers a call and knows the two roots, query
and mutation; `connections.py` pages through lists; `objects.py` shapes repositories, refs and
git objects, `pull_requests.py` pull requests and the checks on their heads.

Values are dicts whose entries may be functions of the field's arguments: graphql-core calls them
only when they are asked for, so a query costs what it names.
"""
