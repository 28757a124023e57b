"""The process: settings, keys, log."""
