"""The contract of SPECIFICATION.md and API.md over HTTP: no test here knows the service's code."""
