"""Policies for robots: one network file, what its numbers mean, and proof that it is the same."""
