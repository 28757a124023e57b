"""Flaky tests."""
