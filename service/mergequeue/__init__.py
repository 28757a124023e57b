"""The merge queue: what lands, when, and why not.

- `engine`: pure rules. Values in, values and actions out.
- `operations`: comments, submissions, test branches, landings, proofs, explanations.
- `store`: queues, entries, runs, journal and landings in the database.
- `wording`: the sentences of comments, check runs and answers.
- `simulation`: the engine in virtual time, for replay and what-if questions.
- `api`: endpoints, request models and answers.
"""
