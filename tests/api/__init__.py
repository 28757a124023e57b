"""The HTTP interface: its parts as values, and the whole over real connections."""
