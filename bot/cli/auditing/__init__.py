"""Inputs of `headgate audit` beside the database, and its output."""
