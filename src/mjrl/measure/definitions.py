"""What each figure of measure.json means, in the words that are written beside it."""

DEFINITIONS = {
  "counted steps": "All control steps but those of the first settle_s of each episode and the one "
  "in which an episode fails.  Every mean is over counted steps; falls count from the start.",
  "mean, std, envs": "Each figure is worked out per env; mean and standard deviation are over the "
  "envs that have it, as many as envs says.  null means not measured, or without meaning for this "
  "command.",
  "forward_m_s, left_m_s, yaw_rad_s": "Velocity in the base frame.  achieved is the mean over "
  "time, error = achieved - commanded, ratio = achieved / commanded.",
  "falls": "Episodes that a termination of the task ended, over all envs; the env starts anew.  "
  "envs_failed is the number of envs in which an episode fell or diverged.",
  "diverged": "Episodes that ended because the simulation met a bad number.",
  "drift_m_s": "Standing only: distance between the first and the last counted place of an "
  "episode, over the time between.",
  "height_m, tilt_rad": "Height of the base's origin over the ground, and angle between its z "
  "axis and the vertical; least and greatest are extremes over all envs.",
  "cost_of_transport": "Travelling only: mean over time of the sum over joints of "
  "max(0, torque * velocity), over mass * 9.81 m/s^2 * mean horizontal speed.  Mechanical work "
  "alone: no losses, nothing won back by braking.",
  "clock_match": "Share of counted steps in which a foot's contact is what the gait clock wants.  "
  "Missing when standing and in a task without a gait.",
  "clock_match_strict": "Share of counted steps in which the contacts of all feet match.",
  "clock_match_lenient": "The same, a foot being forgiven in the control step directly before or "
  "after one of its switches.",
  "duty": "Share of counted steps in which the foot touches the ground.",
  "lift_m": "Mean over swings of the greatest height of the foot's lowest point, above the mean "
  "height of that point in stance.  A swing is a flight of at least half of the clock's swing, or "
  "any flight where there is no clock; shorter ones are counted as short_flights.",
  "clearance_m": "The same swings' greatest height over the ground.  Contact is soft: in stance "
  "the lowest point lies some millimetres below the ground, so that lift_m is the greater.",
  "slip_m_s": "Mean horizontal speed of the foot while it touches the ground.",
  "torque": "Sampled once per control step, at its last physics substep.  The peak is that of all "
  "envs, rms and share_at_limit are over all envs and counted steps.",
}
