"""From the bytes of a report to results: formats, identities, owners. Pure.

`reading.py` finds out the format of a file and reads it: `junit.py` and `xml.py` for XML,
`formats/` for the rest. `identity.py` gives each test its id, `results.py` has the values that all
formats become, `jobs.py` says which CI job an upload belongs to.
"""
