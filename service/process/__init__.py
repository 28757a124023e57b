"""The running process: it joins the capabilities and keeps them moving.

`deliveries.py` takes up stored webhook deliveries, `signals.py` gives each signal to its operation,
`effects.py` performs what the outbox holds. `workers` has the loops,
`presence.py` what happens at start and when another instance dies, `retention.py` what is
deleted when. `api` is the aiohttp application with the endpoints of all capabilities.
"""
