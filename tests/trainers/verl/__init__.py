"""Real verl jobs on a CPU."""
