"""Readers of the formats other than JUnit XML; each gives the same cases (FLAKY.md 2.7)."""
