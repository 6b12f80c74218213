"""Runs as they lie on the disk: found, read, reported, listed and compared."""
