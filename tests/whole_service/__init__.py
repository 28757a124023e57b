"""The whole service in one thread under virtual time, with faults in everything it stands on.

Workers, store, adapter, HTTP and the stand-in for GitHub are the real ones. A seed decides what
people do, what goes wrong and when; `python -m tests.whole_service SEED` plays one history.
"""
