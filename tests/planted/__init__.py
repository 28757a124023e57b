"""Faults planted into the engine, each of which the simulation must catch by its seeds.

A fault replaces one function of the engine. It never has a test of its own: what catches it is
the checker, or an invariant, in the same histories that the engine as it is survives.
"""
