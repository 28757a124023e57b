"""Tests of what is computed about tests."""
