"""Moving from another merge queue: files in, files and a list out."""
