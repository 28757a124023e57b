"""`headgate mcp`: the merge queue as tools for coding agents, by the Model Context Protocol.

Each tool is one or two requests to the REST API with the caller's token, so an agent may do
exactly what this token may do over HTTP. Over stdio the token is that of the environment; over
streamable HTTP each request carries its own as `Authorization: Bearer`.

`command.py` has the command. `server.py` makes the server and serves it over either transport.
`tools.py` has the tools; their names, parameters and docstrings are what an agent reads.
`answers.py` has what they answer, as models from which clients get a schema.

A worked example. An agent calls `what_now(number=3)`: #3 was never submitted, so `kind` is SUBMIT
and `call` names `land_pull_request(number=3)`. The tool finds the repository of the checkout and
submits #3. The agent calls `what_now(number=3, seconds=300)`, which uses the long poll, until
`kind` is DONE.
"""
