"""Learning: PPO through rsl_rl behind a runner of ours, checkpoints and run folders."""
