"""Benchmarks: each file measures one subject, beside a reference in the same run."""
