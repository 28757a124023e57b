"""The form of an entry of the test setting `report_issuers`."""

# Plain http is for this machine alone, as the rules for outgoing addresses have it.
ISSUER = (
    r"^(?:buildkite|gitlab) (?:https://[A-Za-z0-9.-]+|http://127\.0\.0\.1)(?::[0-9]{1,5})?"
    r"(?:/[A-Za-z0-9_.-]+)* [A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+$(?!\n)"
)

FORM = (
    "must be `buildkite` or `gitlab`, the https address of the issuer without a slash at its end,"
    " and the project, as `buildkite https://agent.buildkite.com acme/widgets`; tokens of other CI"
    " systems, such as CircleCI, do not name commit and job: use an API token there"
)
"""What must be sent, for people."""
