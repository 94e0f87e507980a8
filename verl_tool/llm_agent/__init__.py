"""The loop: one trajectory is one coroutine, tokens in and out; knows neither Ray nor FastAPI nor who calls it."""
