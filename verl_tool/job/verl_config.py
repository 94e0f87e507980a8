"""verl's own configuration tree with the agent's settings in it, composed by Hydra without importing verl."""

import importlib.util
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from verl_tool.errors import ConfigError
from verl_tool.llm_agent.config import AGENT_PATH, AgentActorConfig

CONFIG_NAME = "agent_ppo_trainer"
_VERL_CONFIG = "ppo_trainer"


def compose(overrides: Sequence[str]) -> DictConfig:
    """verl's `ppo_trainer` and the agent's defaults, with Hydra `overrides` on top; interpolations stay unresolved.

    Raises ConfigError with Hydra's own words when an override is not one, or names no setting.
    """
    register()
    # Hydra is one per process; whatever an application has set up is put back.
    before = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(config_dir=str(verl_config_folder()), version_base=None):
            return hydra_compose(CONFIG_NAME, overrides=list(overrides))
    except (HydraException, OmegaConfBaseException) as fault:
        raise ConfigError(" ".join(str(fault).partition("See https://")[0].split())) from fault
    finally:
        GlobalHydra.instance().clear()
        if before is not None:
            GlobalHydra.instance().initialize(before)


@cache
def defaults() -> DictConfig:
    """The tree without any override; read-only."""
    tree = compose(())
    OmegaConf.set_readonly(tree, True)
    return tree


def register() -> None:
    """Makes `agent_ppo_trainer` known to Hydra; for `hydra.main(config_path=verl_config_folder(), …)` too."""
    ConfigStore.instance().store(
        name=CONFIG_NAME,
        node={"defaults": [_VERL_CONFIG, "_self_"], **_agent_defaults()},
        provider="verl-tool",
    )


@cache
def verl_config_folder() -> Path:
    """verl's `trainer/config`, found without running any of verl's code. Raises ConfigError without verl."""
    spec = importlib.util.find_spec("verl")
    locations = spec.submodule_search_locations if spec is not None else None
    for location in locations or ():
        folder = Path(location) / "trainer" / "config"
        if (folder / f"{_VERL_CONFIG}.yaml").is_file():
            return folder
    raise ConfigError("verl, whose settings these are, is not installed; install verl-tool[train] or verl-tool[cpu]")


def _agent_defaults() -> dict[str, object]:
    tree: dict[str, object] = AgentActorConfig().model_dump(mode="json")
    for name in reversed(AGENT_PATH.split(".")):
        tree = {name: tree}
    return tree
