"""verl's FSDP engines, registered for device `cpu`.

verl/workers/engine/fsdp/transformer_impl.py registers them for cuda and npu. Two things in them need an accelerator:
a forward-only (reference) engine pins memory for CPU offload, which needs CUDA's driver, and the value model asks for
flash attention (verl/utils/model.py, load_valuehead_model).
"""

import dataclasses
from typing import Any

import torch
from transformers import AutoModelForTokenClassification
from verl.workers.engine import EngineRegistry
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead, FSDPEngineWithValueHead


@EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device="cpu")
class CpuFSDPEngineWithLMHead(FSDPEngineWithLMHead):
    """Actor and reference."""

    def _build_fsdp_module(self, module: Any) -> Any:
        return _without_offload(self, lambda: super(CpuFSDPEngineWithLMHead, self)._build_fsdp_module(module))


@EngineRegistry.register(model_type="value_model", backend=["fsdp", "fsdp2"], device="cpu")
class CpuFSDPEngineWithValueHead(FSDPEngineWithValueHead):
    """Critic."""

    def _build_fsdp_module(self, module: Any) -> Any:
        return _without_offload(self, lambda: super(CpuFSDPEngineWithValueHead, self)._build_fsdp_module(module))

    def _build_module(self) -> Any:
        config = self.model_config.hf_config
        config.num_labels, config.classifier_dropout = 1, 0.0
        return AutoModelForTokenClassification.from_pretrained(
            self.model_config.local_path, dtype=torch.float32, config=config, attn_implementation="sdpa"
        )


def _without_offload(engine: Any, build: Any) -> Any:
    """What `build` gives while the engine's config asks for no offload: parameters are in CPU memory anyway."""
    config = engine.engine_config
    engine.engine_config = dataclasses.replace(config, forward_only=False, offload_policy=False)
    try:
        return build()
    finally:
        engine.engine_config = config
