"""Examine the machine of the service: `headgate doctor --host`.

`facts.py` reads settings, folders, database, network and public address; each part that cannot be
read is a text and keeps no other from being read. `audits.py` decides. The audits of the App are
those of `bot/github/audits`.

Example: the disk of the data directory has 200 MB left. `facts.read_data_dir` reads that, and
`audits.data_directory` yields an error.
"""
