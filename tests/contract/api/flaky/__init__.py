"""The endpoints about tests, each on both kinds of database."""
