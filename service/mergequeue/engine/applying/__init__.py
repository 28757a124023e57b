"""The changes of the state by each input; a command may be refused instead."""
