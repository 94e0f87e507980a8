"""The job manifest: its model, its checks, and the overrides it becomes. Imports neither torch, verl's code nor Ray."""
