"""Figures as values in, text out."""
