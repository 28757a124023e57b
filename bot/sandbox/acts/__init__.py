"""Changes of the world, whoever asks for them: REST, GraphQL, git, people, late jobs.

`refs.py` moves branches; `heads.py` carries a move over to pull requests. `pull_requests.py`,
`pull_states.py`, `merging.py` and `conversation.py` change pull requests and issues;
`repositories.py` and `installations.py` change what they belong to. `actions_by_people.py` offers
all of it by name to the control plane, the pages and tests; `seeds.py` makes worlds from values.
The caller holds the lock of the repository.
"""
