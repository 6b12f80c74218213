"""Train, replay, measure and export policies for legged robots on MuJoCo."""
