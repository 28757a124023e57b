"""The contract of the specification over HTTP: no test here knows the service's code."""
