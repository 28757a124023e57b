"""Check landing evidence offline: files, keys and git alone, never the network.

`documents.py` reads evidence and keys, `repository.py` asks git, `judge.py` compares both.
"""
