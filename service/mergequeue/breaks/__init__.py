"""A check that turns red on the target branch: which landing broke it (docs/design/red-target.md).

`search.py` has the values of one break and decides what to do next: `decide` looks at all results
so far and returns which commits to test, or how the search ends. It does no I/O and reads no clock.
`service/mergequeue/operations/breaks.py` carries the decisions out.
"""
