"""Everything that changes the world, whoever asks for it.

`refs.py` moves branches and is the only place that does; `heads.py` carries a move over to the
pull requests that hang on the branch, `pull_states.py` opens, closes, merges and looks at them.
`merging.py` makes merges, `pull_requests.py` and `conversation.py` are what people and Apps do
to one pull request, `repositories.py` what they do to a repository, `installations.py` is the
App on an owner. `people.py` and `owners.py` offer all of it by name to the control plane, the
pages and tests; `seeds.py` makes worlds from values; `differences.py` says what a pull request
changes.

The caller holds the lock of the repository. A refusal is `refusal.Refusal`, with the status and
the words of the provider; what was not refused has happened whole, with its events raised.
"""
