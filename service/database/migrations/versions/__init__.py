"""One module for each revision of the schema, in order."""
