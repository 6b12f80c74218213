"""Looking at the robots."""
