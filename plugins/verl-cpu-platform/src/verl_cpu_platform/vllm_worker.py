"""vLLM worker extension that takes the trainer's weights into vLLM's CPU layers.

vLLM's CPU linear layers repack a weight into a oneDNN handle and drop the original
(vllm/model_executor/layers/utils.py, dispatch_cpu_unquantized_gemm), so the plain `load_weights` of
verl/workers/rollout/vllm_rollout/utils.py has nothing to write to. vLLM's layerwise reload restores a layer, loads it
and packs it again. It is selected with `rollout.engine_kwargs.vllm.worker_extension_cls` (see `settings`).
"""

from typing import Any

import torch
from verl.workers.rollout.vllm_rollout.bucketed_weight_transfer import BucketedWeightReceiver
from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension


class CpuWorkerExtension(vLLMColocateWorkerExtension):
    """verl's extension, with its weight update replaced for full weights."""

    @torch.inference_mode()
    def update_weights_from_ipc(
        self, peft_config: dict[str, Any] | None = None, base_sync_done: bool = False, use_shm: bool = False
    ) -> None:
        """Takes one whole set of weights from the trainer."""
        if peft_config:
            super().update_weights_from_ipc(peft_config, base_sync_done, use_shm)
            return
        from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

        model = self.model_runner.get_model()
        initialize_layerwise_reload(model)
        receiver = BucketedWeightReceiver(zmq_handle=self._get_zmq_handle(), device=self.device, use_shm=use_shm)
        receive(receiver, model)
        finalize_layerwise_reload(model, self.model_runner.model_config)
        pack_tied_heads(model)


def receive(receiver: BucketedWeightReceiver, model: Any) -> None:
    """Loads every bucket. After a fault the rest is still taken from the wire, then the fault is raised.

    The sender waits for an answer to each bucket (bucketed_weight_transfer.py), so a receiver that stopped answering
    would leave it waiting, and the fault untold.
    """
    faults: list[Exception] = []

    def load(weights: list[tuple[str, torch.Tensor]], _is_last: bool) -> None:
        if faults:
            return
        try:
            # Copies: what arrives are views of the shared bucket, and layers keep them until they are complete.
            model.load_weights([(name, tensor.clone()) for name, tensor in weights])
        except Exception as fault:  # noqa: BLE001  whatever vLLM raises is raised below
            faults.append(fault)

    receiver.receive_weights(load)
    if faults:
        raise faults[0]


def pack_tied_heads(model: torch.nn.Module) -> None:
    """Packs an lm_head that shares the embedding's weight.

    Such a head has no weight of its own to load, so the reload leaves it with the packed copy of what was there before
    (at first, dummy weights): every logit is then wrong, and the probabilities of the sampled tokens still look alike.
    """
    from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead

    for module in model.modules():
        if isinstance(module, ParallelLMHead):
            module.quant_method.process_weights_after_loading(module)
