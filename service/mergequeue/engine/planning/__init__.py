"""What follows from the state: who starts, on which base, and what lands."""
