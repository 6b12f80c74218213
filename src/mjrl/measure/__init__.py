"""Replaying a policy and measuring what the robot does."""
