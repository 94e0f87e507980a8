"""What a run without accelerator needs: environment variables and Hydra overrides. Imports neither torch nor verl."""

import sys
from collections.abc import Sequence

UNIPROC_EXECUTOR = "vllm.v1.executor.uniproc_executor.UniProcExecutor"


def environment() -> dict[str, str]:
    """Variables for every process of the run; set before anything of verl is imported."""
    return {
        # verl/__init__.py imports the module, platform_manager.py picks the name.
        "VERL_USE_EXTERNAL_MODULES": "verl_cpu_platform.platform",
        "VERL_PLATFORM": "cpu",
        # vLLM takes half the memory for its KV cache, and binds threads to cores of a NUMA node, unless told otherwise.
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        # Several processes share the cores: OpenMP threads that spin beside each other cost several times the work.
        "OMP_NUM_THREADS": "1",
        # Importing and starting dynamo takes most of an engine's start, and nothing is compiled.
        "TORCHDYNAMO_DISABLE": "1",
    }


def overrides() -> list[str]:
    """Hydra overrides for verl's tree; put before the user's own, so that those win."""
    model, actor, ref = "actor_rollout_ref.model", "actor_rollout_ref.actor", "actor_rollout_ref.ref"
    rollout = "actor_rollout_ref.rollout"
    return [
        # One training process and one engine unless the user asks for more; Ray counts them as logical GPUs.
        "trainer.device=cpu",
        "trainer.nnodes=1",
        "trainer.n_gpus_per_node=1",
        "++ray_kwargs.ray_init.num_gpus=${trainer.n_gpus_per_node}",
        "ray_kwargs.ray_init.num_cpus=32",  # a count of places for actors, most of which are idle at any time
        "++ray_kwargs.ray_init.include_dashboard=False",
        "++ray_kwargs.ray_init.object_store_memory=268435456",
        # As few processes as go: each imports torch anew. No reward worker: the trainer's process runs the function.
        "reward.num_workers=0",
        f"{rollout}.agent.num_workers=1",
        "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
        "data.dataloader_num_workers=0",
        # Trainer: fp32, attention from torch, nothing compiled, no unpadding (it needs flash attention).
        f"++{model}.override_config.attn_implementation=sdpa",
        f"{model}.use_remove_padding=False",
        f"{model}.enable_gradient_checkpointing=False",
        *(line for role in (actor, ref) for line in _fsdp(role)),
        # Micro batches by tokens, so that any number of rows goes; the reference and the log-probabilities follow.
        f"{actor}.use_dynamic_bsz=True",
        f"{actor}.ppo_max_token_len_per_gpu=8192",
        # Engine: fp32, one process, nothing captured or compiled, no sleeping (that frees an accelerator's memory).
        f"{rollout}.name=vllm",
        f"{rollout}.dtype=float32",
        f"{rollout}.tensor_model_parallel_size=1",
        f"{rollout}.enforce_eager=True",
        f"{rollout}.free_cache_engine=False",
        f"++{rollout}.enable_sleep_mode=False",
        f"{rollout}.max_num_batched_tokens=2048",
        f"{rollout}.max_num_seqs=64",
        # By its full name: vLLM makes "mp" of "uni" on CPU (vllm/platforms/cpu.py), which is one process more for each
        # engine, and one that leaves shared memory behind when it is killed.
        f"++{rollout}.engine_kwargs.vllm.distributed_executor_backend={UNIPROC_EXECUTOR}",
        f"++{rollout}.engine_kwargs.vllm.worker_extension_cls=verl_cpu_platform.vllm_worker.CpuWorkerExtension",
        # The shared bucket weights travel in; it must hold the largest tensor.
        f"{rollout}.checkpoint_engine.update_weights_bucket_megabytes=256",
    ]


def _fsdp(role: str) -> list[str]:
    precision = f"++{role}.fsdp_config.mixed_precision"
    return [
        f"{role}.strategy=fsdp2",
        f"{role}.fsdp_config.strategy=fsdp2",
        f"{role}.use_torch_compile=False",
        f"{role}.fsdp_config.use_torch_compile=False",
        f"{precision}.param_dtype=fp32",
        f"{precision}.reduce_dtype=fp32",
        f"{precision}.buffer_dtype=fp32",
    ]


def main(arguments: Sequence[str]) -> int:
    """Prints the variables as `NAME=value`, or the overrides, one a line."""
    match list(arguments):
        case ["--environment"]:
            print("\n".join(f"{name}={value}" for name, value in environment().items()))
        case ["--overrides"]:
            print("\n".join(overrides()))
        case _:
            print("usage: python -m verl_cpu_platform.settings --environment | --overrides", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
