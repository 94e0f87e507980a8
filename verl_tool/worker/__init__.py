"""The rollout worker: verl's actor–rollout–reference worker with a loop in it, and the engine it samples from."""
