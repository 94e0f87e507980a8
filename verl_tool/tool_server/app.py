"""The HTTP face: routes, bounded bodies, refusals as JSON, and the end of a run whose client has gone."""

import asyncio
import time
from collections.abc import Sequence

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

import verl_tool
from verl_tool.tool_server.admission import Admission, QueueFull
from verl_tool.tool_server.body import BodyReader
from verl_tool.tool_server.dispatch import Answer, Dispatcher, items_of
from verl_tool.tool_server.faults import BadRequest, parse_request
from verl_tool.tool_server.gauges import Gauges
from verl_tool.tool_server.protocol import (
    Health,
    ObservationRequest,
    ObservationResponse,
    Refusal,
)
from verl_tool.tool_server.settings import ServerSettings
from verl_tool.tool_server.tools.registry import AnyTool

log = structlog.get_logger(__name__)
CLIENT_GONE = 499  # nobody reads it; it is for the log
BODY_SCHEMA = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": ObservationRequest.model_json_schema()}},
    },
}


def create_app(settings: ServerSettings, tools: Sequence[AnyTool]) -> FastAPI:
    """The application over tools that have been started."""
    admission = Admission(settings.max_concurrent, settings.queue_limit)
    gauges = Gauges(admission)
    dispatcher = Dispatcher(
        tools, admission, gauges, done_if_invalid=settings.done_if_invalid, seconds=settings.request_seconds
    )
    app = FastAPI(title="verl-tool tool server", version=verl_tool.__version__)
    bodies = BodyReader(settings.max_body_mib << 20, settings.body_seconds)
    started = time.monotonic()
    requests = 0

    @app.post(
        "/get_observation",
        response_model=ObservationResponse,
        responses={"4XX": {"model": Refusal}, "503": {"model": Refusal}},
        openapi_extra=BODY_SCHEMA,
    )
    async def get_observation(request: Request) -> Response:
        nonlocal requests
        arrived = time.perf_counter()
        requests += 1
        try:
            async with bodies.body_of(request) as body:
                items = items_of(parse_request(body, settings.max_items))
                admission.admit(len(items))
                calls = [asyncio.create_task(dispatcher.conduct(item)) for item in items]
                for call in calls:
                    call.add_done_callback(lambda _: admission.withdraw())
                answers = await _unless_client_leaves(request, calls)
        finally:
            requests -= 1
        if answers is None:
            log.info("client_gone", items=len(items))
            return Response(status_code=CLIENT_GONE)
        seconds = time.perf_counter() - arrived
        log.debug("observation", items=len(items), seconds=round(seconds, 4))
        return Response(
            _response(answers, seconds).model_dump_json(exclude_none=True),
            media_type="application/json",
            headers={"X-Process-Time": f"{seconds:.6f}"},
        )

    @app.get("/healthz")
    async def healthz() -> Health:
        return await health()

    @app.get("/health")
    async def health() -> Health:
        return Health(
            status="healthy",
            tools=[tool.name for tool in tools],
            concurrent_requests=requests,
            active_tasks=admission.running,
            waiting=admission.waiting,
            max_concurrent=settings.max_concurrent,
            queue_limit=settings.queue_limit,
            uptime_seconds=time.monotonic() - started,
        )

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(gauges.page(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.exception_handler(BadRequest)
    async def bad_request(_: Request, fault: BadRequest) -> Response:
        gauges.refused.labels(str(fault.status)).inc()
        return _refusal(fault.status, fault.refusal)

    @app.exception_handler(QueueFull)
    async def queue_full(_: Request, full: QueueFull) -> Response:
        gauges.refused.labels("503").inc()
        refusal = Refusal(error=f"{full}; try again in {full.retry_after} s")
        return _refusal(503, refusal, {"Retry-After": str(full.retry_after)})

    @app.exception_handler(HTTPException)
    async def http_fault(request: Request, fault: HTTPException) -> Response:
        refusal = Refusal(error=f"{request.method} {request.url.path}: {fault.detail}")
        return _refusal(fault.status_code, refusal, dict(fault.headers or {}))

    @app.exception_handler(Exception)
    async def our_fault(request: Request, fault: Exception) -> Response:
        log.error("request_failed", path=request.url.path, exc_info=fault)
        return _refusal(500, Refusal(error=f"the server failed: {type(fault).__name__}; see its log"))

    return app


def _response(answers: Sequence[Answer], seconds: float) -> ObservationResponse:
    return ObservationResponse(
        observations=[answer.outcome.observation for answer in answers],
        dones=[answer.outcome.done for answer in answers],
        valids=[answer.outcome.valid for answer in answers],
        processing_time_ms=1000 * seconds,
        queue_time_ms=1000 * max(answer.queued_seconds for answer in answers),
    )


async def _unless_client_leaves(request: Request, calls: Sequence[asyncio.Task[Answer]]) -> list[Answer] | None:
    """The answers of all calls in order; None, with the calls cancelled, when the client goes away first."""
    all_done = asyncio.gather(*calls)
    gone = asyncio.create_task(_client_gone(request))
    try:
        await asyncio.wait((all_done, gone), return_when=asyncio.FIRST_COMPLETED)
        return await all_done if all_done.done() else None
    finally:
        gone.cancel()
        all_done.cancel()
        await asyncio.gather(gone, *calls, return_exceptions=True)


async def _client_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _refusal(status: int, refusal: Refusal, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse(refusal.model_dump(), status_code=status, headers=headers)
