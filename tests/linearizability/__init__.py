"""Calls at the same time must be answered as if they had come one after another.

Several clients send random calls about one queue while the provider answers slowly. The answers
are right if there is an order of the calls that has both properties: a call that was answered
before another one began comes before it, and a sequential model of a queue (`model.py`) gives
exactly these answers in this order. `search.py` looks for that order. It is the algorithm of Wing
and Gong ("Testing and Verifying Concurrent Objects", 1993) with the memory of Lowe ("Testing for
linearizability", 2017). `playing.py` plays the calls over HTTP on one or several instances.
"""
