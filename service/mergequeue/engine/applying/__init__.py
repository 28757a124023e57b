"""How each input changes the state; a command may be refused instead."""
