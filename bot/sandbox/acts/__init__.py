"""Changes of the world, for REST, GraphQL, git, people and late jobs alike.

`refs.py` moves branches; `pull_states.py` carries a move over to pull requests and is the only
module that changes whether a pull request is open, merged or mergeable. `pull_requests.py`,
`merging.py` and `conversation.py` change pull requests and issues; `repositories.py` changes what
they belong to. `actions_by_people.py` offers all of it by name to the control plane, the pages and
tests; `seeds.py` makes worlds from values. The caller holds the lock of the repository.
"""
