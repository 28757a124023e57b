"""The GitHub adapter: tables on values, and the adapter against the sandbox over HTTP."""
