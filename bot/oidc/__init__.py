"""OIDC tokens by which jobs of CI prove who they are: one issuer, and the CI systems beside it."""
