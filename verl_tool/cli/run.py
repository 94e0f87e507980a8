"""`verl-tool run`: prepares, looks, starts the tool server and the trainer, follows them, and leaves nothing behind."""

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from verl_tool.cli import folders
from verl_tool.cli.console import say, warn
from verl_tool.cli.ending import tell_end
from verl_tool.cli.look import look
from verl_tool.cli.machine import Machine, this_machine
from verl_tool.cli.metrics_file import keep_earlier
from verl_tool.cli.plan import check_files, draft_launch, planned_steps, read_text
from verl_tool.cli.prepare import is_prepared, prepare
from verl_tool.cli.progress import RunProgress
from verl_tool.cli.state import Outcome, write_state, write_text
from verl_tool.cli.stopping import Stopped, StopSignals
from verl_tool.cli.tool_server import given_server, local_server
from verl_tool.cli.training import follow, trainer
from verl_tool.errors import RunError, VerlToolError
from verl_tool.job.check import check_launch, read_job
from verl_tool.job.launch import Launch, trainer_overrides
from verl_tool.job.model import TrainingJob
from verl_tool.job.places import Places
from verl_tool.job.run_folder import RunFolder
from verl_tool.job.yaml_source import Document

NO_ROOM = 256 << 20  # bytes; with less, not even a small checkpoint can be counted on


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for beside the manifest."""

    runs: Path = folders.RUNS
    folder: Path | None = None
    resume: bool = False
    extra: tuple[str, ...] = ()
    report: bool = True


def run(manifest: Path, options: Options) -> int:
    """The exit status. Raises VerlToolError for what goes wrong before anything is started."""
    text = read_text(manifest)
    job, document = read_job(text)
    machine = this_machine(job.spec.workers.gpus)
    places = Places(manifest=manifest.absolute().parent, volume=folders.volume_of(options.runs, job.metadata.name))
    check_files(job, places)
    draft = draft_launch(job, places, machine, options.extra)
    check_launch(job, draft, document)
    folder = _folder(job, options)
    write_text(folder.job, text)
    launch = replace(draft, folder=folder, resume=options.resume)
    return asyncio.run(LocalRun(job, document, machine, launch, with_report=options.report).run())


def _folder(job: TrainingJob, options: Options) -> RunFolder:
    if options.folder is not None:
        folder = folders.given_folder(options.folder, resume=options.resume)
    elif options.resume:
        folder = folders.newest_folder(options.runs, job.metadata.name)
    else:
        folder = folders.new_folder(options.runs, job.metadata.name)
    free = shutil.disk_usage(folder.root).free
    if free < NO_ROOM:
        raise RunError(f"{folder.root}: only {free >> 20} MiB are free; make room, or give another place with --runs")
    folders.make(folder.logs)
    return folder


class LocalRun:
    """One run on this machine."""

    def __init__(
        self, job: TrainingJob, document: Document, machine: Machine, launch: Launch, *, with_report: bool
    ) -> None:
        self._job, self._document, self._machine, self._launch = job, document, machine, launch
        self._folder, self._with_report = launch.folder, with_report
        self._environment = {**machine.environment, **job.environment()}

    async def run(self) -> int:
        """The exit status; how the run ended has been told."""
        work: asyncio.Task[None] | None = None

        def hurry() -> None:
            say("Ending at once.")
            if work is not None:
                work.cancel()

        signals = StopSignals(lambda: say("Ending in order; once more to end at once."), hurry)
        signals.install()
        write_state(self._folder, Outcome.RUNNING)
        say(f"[bold]{self._job.metadata.name}[/]  {self._machine.name}  {self._folder.root}")
        outcome, status, reason = Outcome.FINISHED, 0, None
        try:
            with RunProgress(self._job.metadata.name) as progress:
                work = asyncio.create_task(self._until_stopped(progress, signals))
                await work
        except Stopped as stopped:
            outcome, status = Outcome.INTERRUPTED, stopped.status
        except asyncio.CancelledError:
            outcome, status = Outcome.INTERRUPTED, 128 + signals.asked.result()
        except VerlToolError as fault:
            outcome, status, reason = Outcome.FAILED, 1, str(fault)
        with contextlib.suppress(RunError):  # a full disk is what may have ended the run
            write_state(self._folder, outcome, error=reason)
        name = self._job.metadata.name
        tell_end(self._folder, outcome, reason, manifest_name=name, with_report=self._with_report)
        return status

    async def _until_stopped(self, progress: RunProgress, signals: StopSignals) -> None:
        """All of the run, ended early by a signal or the job's deadline."""
        limit = self._job.spec.active_deadline_seconds
        with tempfile.TemporaryDirectory(prefix="verl-tool-", ignore_cleanup_errors=True) as scratch:
            running = asyncio.create_task(self._everything(progress, Path(scratch)))
            waited: set[asyncio.Future[Any]] = {running, signals.asked}
            done, _ = await asyncio.wait(waited, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if running in done:
                return await running
            running.cancel()  # on its way out it ends what it has started, in order
            with contextlib.suppress(asyncio.CancelledError):
                await running
            if signals.asked.done():
                raise Stopped(signals.asked.result())
            raise RunError(f"spec.activeDeadlineSeconds: {limit} s have passed; raise it, and --resume to go on")

    async def _everything(self, progress: RunProgress, scratch: Path) -> None:
        launch, logs = self._launch, self._folder.logs
        if not launch.resume and not is_prepared(self._job, launch.places):
            folders.make(launch.places.volume)
            progress.stage(f"preparing; see {logs / 'prepare.log'}")
            await prepare(self._job, launch.places, logs / "prepare.log")
        check_files(self._job, launch.places, prepared=True)
        progress.stage("looking at data, tokenizer and reward")
        tree = check_launch(self._job, launch, self._document)  # anew: paths may lead to what was prepared
        findings = await look(tree, launch, self._environment, logs / "preflight.log")
        progress.stage("starting the tool server")
        async with self._tool_server(scratch) as (url, keeper):
            launch = replace(launch, tool_server_url=url)
            tree = check_launch(self._job, launch, self._document)
            write_text(self._folder.config, yaml.safe_dump(tree, sort_keys=False, allow_unicode=True))
            steps = planned_steps(tree, findings.train_rows)
            write_state(self._folder, Outcome.RUNNING, steps=steps)
            progress.expect(steps)
            if launch.resume:
                keep_earlier(self._folder)
            progress.stage("starting the trainer and the engine, about a minute")
            overrides = trainer_overrides(self._job, launch)
            async with trainer(overrides, self._folder, self._environment, scratch=scratch / "ray") as child:
                following = asyncio.create_task(follow(child, self._folder.metrics, progress.step))
                await first_to_end(following, keeper)
                if code := following.result():
                    raise child.failure(code)

    @contextlib.asynccontextmanager
    async def _tool_server(self, scratch: Path) -> AsyncIterator[tuple[str | None, asyncio.Task[None] | None]]:
        tools = self._job.spec.tool_server
        if tools is None:
            yield None, None
        elif tools.url is not None:
            await given_server(tools, tools.url, where="spec.toolServer.url")
            yield tools.url, None
        else:
            async with local_server(
                tools,
                manifest=self._launch.places.manifest,
                log=self._folder.logs / "tool-server.log",
                scratch=scratch,
                on_restart=warn,
            ) as (url, keeper):
                yield url, keeper


async def first_to_end(main: asyncio.Task[Any], guard: asyncio.Task[None] | None) -> None:
    """Waits for `main`; raises what `guard` raises before."""
    tasks: set[asyncio.Task[Any]] = {main} if guard is None else {main, guard}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        main.cancel()
        raise
    if main not in done and guard is not None:
        main.cancel()
        guard.result()
