"""Mutants that behave as the original does, by module and name, each with its reason.

An entry whose mutant cannot be made any more fails a test: its code is gone, and so is its reason.
"""

EQUIVALENT: dict[str, dict[str, str]] = {
    "service/operations/access.py": {
        "look_up: record is None or not is_its_own -> not is_its_own": (
            "A token without a record matches no digest: the dummy has no secret."
        ),
    },
    "service/operations/tokens.py": {
        "_organization_of: org or access.ensure_organization(session, draft.host, None, "
        "draft.org_slug) -> "
        "access.ensure_organization(session, draft.host, None, draft.org_slug)": (
            "The organization that was found is the one that would be ensured."
        ),
    },
}
