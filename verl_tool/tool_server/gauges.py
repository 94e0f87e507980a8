"""What `/metrics` shows, in Prometheus' form."""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

from verl_tool.tool_server.admission import Admission


class Gauges:
    """The server's numbers. A registry of its own, so that two servers in one test do not meet."""

    def __init__(self, admission: Admission) -> None:
        self.registry = CollectorRegistry()
        self.calls = Counter(
            "verl_tool_calls", "Tool calls by how they came out", ["tool", "outcome"], registry=self.registry
        )
        self.seconds = Histogram(
            "verl_tool_call_seconds",
            "Time of a tool call once it has a slot",
            ["tool"],
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120),
            registry=self.registry,
        )
        self.timeouts = Counter(
            "verl_tool_timeouts", "Tool calls ended at a time limit", ["tool"], registry=self.registry
        )
        self.refused = Counter(
            "verl_tool_refused_requests", "Requests that were not carried out", ["status"], registry=self.registry
        )
        running = Gauge("verl_tool_running_calls", "Tool calls that hold a slot", registry=self.registry)
        running.set_function(lambda: admission.running)
        waiting = Gauge("verl_tool_waiting_calls", "Tool calls that wait for a slot", registry=self.registry)
        waiting.set_function(lambda: admission.waiting)

    def page(self) -> bytes:
        return generate_latest(self.registry)
