"""What queues commonly do, oracles as bounds, and a prototype of what is feasible."""
