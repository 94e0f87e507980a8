"""The HTTP face: routes, bounded bodies, refusals as JSON, and the end of a run whose client has gone."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

import verl_tool
from verl_tool.tool_server.admission import Admission, QueueFull
from verl_tool.tool_server.dispatch import Dispatcher, Item, items_of
from verl_tool.tool_server.faults import BadRequest, parse_request, refuse
from verl_tool.tool_server.gauges import Gauges
from verl_tool.tool_server.protocol import (
    Health,
    ObservationRequest,
    ObservationResponse,
    Refusal,
)
from verl_tool.tool_server.settings import ServerSettings
from verl_tool.tool_server.tools.base import Outcome
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
    started = time.monotonic()
    requests = 0

    @app.post(
        "/get_observation",
        response_model=ObservationResponse,
        responses={"4XX": {"model": Refusal}},
        openapi_extra=BODY_SCHEMA,
    )
    async def get_observation(request: Request) -> Response:
        nonlocal requests
        arrived = time.perf_counter()
        requests += 1
        try:
            body = await _read_body(request, settings.max_body_mib << 20, settings.body_seconds)
            items = items_of(parse_request(body, settings.max_items))
            admission.admit(len(items))
            outcomes = await _unless_client_leaves(request, [_admitted(dispatcher, admission, item) for item in items])
        finally:
            requests -= 1
        if outcomes is None:
            log.info("client_gone", items=len(items))
            return Response(status_code=CLIENT_GONE)
        seconds = time.perf_counter() - arrived
        log.debug("observation", items=len(items), seconds=round(seconds, 4))
        answer = ObservationResponse(
            observations=[outcome.observation for outcome in outcomes],
            dones=[outcome.done for outcome in outcomes],
            valids=[outcome.valid for outcome in outcomes],
            processing_time_ms=1000 * seconds,
        )
        return Response(
            answer.model_dump_json(exclude_none=True),
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


async def _admitted(dispatcher: Dispatcher, admission: Admission, item: Item) -> Outcome:
    try:
        return await dispatcher.conduct(item)
    finally:
        admission.withdraw()


async def _unless_client_leaves(request: Request, calls: Sequence[Any]) -> list[Outcome] | None:
    """The outcomes of all calls in order; None, with the calls cancelled, when the client goes away first."""
    running = [asyncio.create_task(call) for call in calls]
    all_done = asyncio.gather(*running)
    gone = asyncio.create_task(_client_gone(request))
    try:
        await asyncio.wait((all_done, gone), return_when=asyncio.FIRST_COMPLETED)
        return await all_done if all_done.done() else None
    finally:
        gone.cancel()
        all_done.cancel()
        await asyncio.gather(gone, *running, return_exceptions=True)


async def _client_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _read_body(request: Request, limit: int, seconds: float) -> bytes:
    message = f"the body is larger than the limit of {limit} bytes; split the request"
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise refuse(413, "body_too_large", (), message)
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for piece in request.stream():
                body += piece
                if len(body) > limit:
                    raise refuse(413, "body_too_large", (), message)
    except TimeoutError:
        raise refuse(408, "body_too_slow", (), f"the body did not arrive within {seconds:g} s") from None
    return bytes(body)


def _refusal(status: int, refusal: Refusal, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse(refusal.model_dump(), status_code=status, headers=headers)
