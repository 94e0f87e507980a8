"""The trainer: verl's synchronous PPO trainer over workers that call tools. Imports nothing heavy by itself."""
