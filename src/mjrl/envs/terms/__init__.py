"""The shared library of rows: observations, rewards, terminations, metrics and events."""
