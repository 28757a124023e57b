"""Which tests are nearest to which module: a mutant of the module is run against them.

The quickest come first: the first test that fails ends a mutant.
"""

TARGETS: dict[str, tuple[str, ...]] = {
    "service/mergequeue/operations/proving.py": (
        "tests/operations/test_proving.py",
        "tests/operations/test_landing_lanes.py",
    ),
    "service/accounts/access.py": (
        "tests/operations/test_access.py",
        "tests/operations/test_tokens.py",
    ),
    "service/accounts/tokens.py": (
        "tests/operations/test_token_rights.py",
        "tests/operations/test_tokens.py",
    ),
    "service/mergequeue/operations/landing.py": (
        "tests/operations/test_landing.py",
        "tests/operations/test_landing_answers.py",
        "tests/operations/test_landing_lanes.py",
    ),
    "service/mergequeue/operations/permits.py": (
        "tests/operations/test_permits.py",
        "tests/operations/test_landing_undone.py",
        "tests/operations/test_landing.py",
        "tests/operations/test_landing_answers.py",
    ),
    "service/mergequeue/engine/culprits/verdict.py": ("tests/mergequeue/test_verdict.py",),
    "service/mergequeue/engine/state/readiness.py": ("tests/mergequeue/test_readiness.py",),
    "service/mergequeue/engine/planning/landing.py": (
        "tests/mergequeue/test_landing.py",
        "tests/mergequeue/test_units.py",
    ),
    "service/mergequeue/engine/planning/landing_stops.py": (
        "tests/mergequeue/test_landing.py",
        "tests/mergequeue/test_units.py",
        "tests/mergequeue/test_stops.py",
    ),
    "service/testhealth/detector/quarantine.py": ("tests/flaky/test_quarantine.py",),
    "service/testhealth/detector/excuses.py": ("tests/flaky/test_excuses.py",),
    "service/testhealth/detector/completeness.py": ("tests/flaky/test_completeness.py",),
    "service/testhealth/detector/series.py": (
        "tests/flaky/test_hindsight.py",
        "tests/flaky/test_health.py",
        "tests/flaky/test_late_results.py",
    ),
    "service/testhealth/detector/spans.py": (
        "tests/flaky/test_spans.py",
        "tests/flaky/test_health.py",
    ),
    "service/testhealth/detector/health.py": (
        "tests/flaky/test_health.py",
        "tests/flaky/test_hindsight.py",
    ),
    "bot/github/protection.py": (
        "tests/github/test_protected.py",
        "tests/github/test_protection.py",
    ),
    "bot/github/landing.py": (
        "tests/github/test_land_stops.py",
        "tests/github/test_landing.py",
    ),
}

# Modules of which every mutant is caught, or named as equivalent: none may survive again.
HELD = (
    "service/mergequeue/operations/permits.py",
    "service/mergequeue/operations/proving.py",
    "service/accounts/access.py",
    "service/accounts/tokens.py",
    "service/mergequeue/engine/culprits/verdict.py",
    "service/mergequeue/engine/state/readiness.py",
    "service/mergequeue/engine/planning/landing.py",
    "service/mergequeue/engine/planning/landing_stops.py",
    "service/mergequeue/operations/landing.py",
    "service/testhealth/detector/quarantine.py",
    "service/testhealth/detector/excuses.py",
    "service/testhealth/detector/completeness.py",
    "service/testhealth/detector/series.py",
    "service/testhealth/detector/spans.py",
    "service/testhealth/detector/health.py",
    "bot/github/protection.py",
    "bot/github/landing.py",
)
