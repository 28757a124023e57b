"""Derive what follows from the state: which runs start, on which base, and what lands."""
