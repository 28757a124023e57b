"""Plug-ins of test runners, tested in runs of the real runners."""
