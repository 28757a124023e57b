"""The command line: what is said, what is sent, how it ends."""
