"""The tool server: a FastAPI service that runs what a model's turn asks for and answers with observations."""
