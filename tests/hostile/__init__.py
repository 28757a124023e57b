"""Hostile people, jobs and tenants against the honest rules (docs/design/provenance.md 9).

One seed is one history: pull requests that are tested and landed by the real rules, while players
add the facts that each of them has the power to make.
"""
