"""verl and vLLM without an accelerator. Importing the package does nothing; see `platform` and `settings`."""
