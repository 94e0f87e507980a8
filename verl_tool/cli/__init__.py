"""The command line: `verl-tool validate | run | serve | call | report`. It starts and stops, and trains nothing."""
