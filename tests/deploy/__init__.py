"""Tests of the files in `deploy`: each is built, rendered, linted or run as it is."""
