"""The flaky half on values: reports, identity, evidence, health."""
