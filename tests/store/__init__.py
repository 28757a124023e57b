"""The store on both databases: what is written comes back, once and in order."""
