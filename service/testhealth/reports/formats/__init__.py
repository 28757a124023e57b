"""Readers of the formats other than JUnit XML; each gives the same cases.

See docs/design/reports.md 6.
"""
