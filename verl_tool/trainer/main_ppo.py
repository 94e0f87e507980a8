"""`python -m verl_tool.trainer.main_ppo key=value …`: trains, with verl's settings and overrides and the agent's.

Help and refused settings come before anything heavy is imported.
"""

import os
import sys
import traceback

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console
from rich.markup import escape

from verl_tool.errors import VerlToolError
from verl_tool.job.verl_config import CONFIG_NAME, register, verl_config_folder
from verl_tool.trainer.interrupts import Interrupted
from verl_tool.trainer.preflight import check

register()


@hydra.main(config_path=str(verl_config_folder()), config_name=CONFIG_NAME, version_base=None)
def main(config: DictConfig) -> None:
    """Exits with 1 and one line on stderr for what a person can act on, with a traceback for anything else."""
    try:
        check(config)
        # Named as verl names its own: this is the trainer that the run uses.
        from verl_tool.trainer.ppo.ray_trainer import AgentRayPPOTrainer as RayPPOTrainer
        from verl_tool.trainer.run import run

        run(config, RayPPOTrainer)
    except Interrupted as interrupted:
        sys.exit(interrupted.status)
    except KeyboardInterrupt:  # before the run had handlers of its own
        sys.exit(130)
    except Exception as fault:  # noqa: BLE001  the last place where a fault can be told
        from verl_tool.trainer.faults import told

        known = told(fault)
        if known is None and not isinstance(fault, OmegaConfBaseException):
            traceback.print_exc()
        say(known or fault)
        sys.exit(1)


def say(fault: BaseException) -> None:
    """One line, `error: …`."""
    text = "; ".join(filter(None, map(str.strip, str(fault).splitlines()))) or type(fault).__name__
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"[bold red]error:[/] {escape(text)}")


def entry() -> None:
    """As `main`, where Hydra's own refusals read like ours."""
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # Hydra then raises what it otherwise prints
    try:
        main()
    except (HydraException, OmegaConfBaseException, VerlToolError) as fault:
        say(fault)
        sys.exit(1)


if __name__ == "__main__":
    entry()
