"""Tasks of the jumper robot."""
