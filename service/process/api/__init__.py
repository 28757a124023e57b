"""The aiohttp application, its route table, and the metrics endpoint."""
