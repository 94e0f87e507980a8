"""verl's trainer with the agent's rollout, and what is worth knowing about each step of it."""
