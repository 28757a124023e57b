"""Endpoints of test health: uploads, lists of tests, quarantine, settings, tickets."""
