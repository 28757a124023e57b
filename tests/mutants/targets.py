"""Which tests are nearest to which module: a mutant of the module is run against them.

The quickest come first: the first test that fails ends a mutant.
"""

TARGETS: dict[str, tuple[str, ...]] = {
    "service/operations/permits.py": ("tests/operations/test_permits.py",),
    "service/operations/proving.py": ("tests/operations/test_proving.py",),
    "service/operations/access.py": (
        "tests/operations/test_access.py",
        "tests/operations/test_tokens.py",
    ),
    "service/operations/tokens.py": (
        "tests/operations/test_token_rights.py",
        "tests/operations/test_tokens.py",
    ),
    "service/operations/landing.py": (
        "tests/operations/test_landing.py",
        "tests/operations/test_landing_answers.py",
        "tests/operations/test_landing_lanes.py",
    ),
    "service/mergequeue/verdict.py": ("tests/mergequeue/test_verdict.py",),
    "service/mergequeue/readiness.py": ("tests/mergequeue/test_readiness.py",),
    "service/mergequeue/landing.py": (
        "tests/mergequeue/test_landing.py",
        "tests/mergequeue/test_units.py",
    ),
    "bot/github/protection.py": ("tests/github/test_protection.py",),
    "bot/github/landing.py": (
        "tests/github/test_land_stops.py",
        "tests/github/test_landing.py",
    ),
}

# Modules of which every mutant is caught, or named as equivalent: none may survive again.
HELD = (
    "service/operations/permits.py",
    "service/operations/proving.py",
    "service/operations/access.py",
    "service/operations/tokens.py",
    "service/mergequeue/verdict.py",
    "service/mergequeue/readiness.py",
    "service/mergequeue/landing.py",
    "service/operations/landing.py",
    "bot/github/protection.py",
    "bot/github/landing.py",
)
