"""Request bodies as pydantic models: the one place where their shape is checked.

Each model is frozen and spells its fields as the API does, by alias. After `common.read` has
made one, nobody looks at a shape again: the handler turns it into the arguments of one
operation. Limits stand in the types, so that a schema made from them states every limit.

What pydantic would bend is refused (docs/design/http.md 2): a model takes JSON's own types only.
The exceptions are the two that the document names, digit strings for pull request numbers and
priorities, and `12.0` for an integer; each is a validator in `common.py` that says so.

Every faulty field is reported at once. `common.read` turns pydantic's findings into
`FieldError`s: a JSON Pointer, one of eight codes (`missing`, `type`, `range`, `length`,
`format`, `enum`, `unknown`, `read_only`), a sentence. Which finding becomes which code is a
table there; what a person should do instead is a table of hints beside the model that knows.

Worked example. `{"repo": {"host": "https://github.com", "owner": "octo"}, "pr": {"number":
"12a"}}` for `/cancelPullRequest` gives four errors in one answer: `/repo/host` format, with
"must be the host alone: `github.com`"; `/repo/name` missing; `/targetBranch` missing;
`/pr/number` type.

May not enter: whether a named thing exists, what the present state allows, anything async.
"""
