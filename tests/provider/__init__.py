"""The conformance suite of the provider port, run on every provider."""
