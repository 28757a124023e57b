"""The flaky-test half on values: reports to results, evidence to health."""
