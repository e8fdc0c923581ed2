"""Options of the launchers of training frameworks, as their own argument parsers list them."""

from __future__ import annotations

from gangplan.plan.launchers.table import LauncherOption, LauncherProgram, OptionRow, build_option_table

# horovod/runner/launch.py of Horovod 0.28.1.
HOROVODRUN = LauncherProgram(
    "horovodrun",
    "horovod",
    "argparse",
    "Horovod 0.28.1",
    build_option_table(
        ("count", 1, "np num-proc"),
        ("hosts", 1, "H hosts host-discovery-script"),
        ("hostfile", 1, "hostfile"),
        ("port", 1, "p ssh-port"),
        ("extra", 1, "mpi-args binding-args"),
        ("elastic", 1, "min-np min-num-proc max-np max-num-proc slots-per-host elastic-timeout reset-limit"),
        ("elastic", 2, "blacklist-cooldown-range"),
        ("agent", 0, "jsrun"),
        ("nothing", 0, "v version cb check-build h help"),
        ("", 0, "autotune disable-cache gloo hierarchical-allgather hierarchical-allreduce mpi"),
        ("", 0, "log-hide-timestamp log-with-timestamp log-without-timestamp mpi-threads-disable"),
        ("", 0, "no-autotune no-hierarchical-allgather no-hierarchical-allreduce no-log-hide-timestamp"),
        ("", 0, "no-mpi-threads-disable no-stall-check no-timeline-mark-cycles no-torus-allreduce"),
        ("", 0, "prefix-output-with-timestamp prefix-timestamp stall-check tcp timeline-mark-cycles"),
        ("", 0, "torus-allreduce verbose"),
        ("", 1, "autotune-bayes-opt-max-samples autotune-gaussian-process-noise autotune-log-file"),
        ("", 1, "autotune-steps-per-sample autotune-warmup-samples cache-capacity config-file"),
        ("", 1, "cycle-time-ms fusion-threshold-mb gloo-timeout-seconds i log-level network-interface"),
        ("", 1, "network-interfaces num-nccl-streams output-filename ssh-identity-file"),
        ("", 1, "stall-check-shutdown-time-seconds stall-check-warning-time-seconds start-timeout"),
        ("", 1, "thread-affinity timeline-filename"),
    ),
    joined=frozenset("Hpi"),
    label="horovodrun",
)

# deepspeed/launcher/runner.py of DeepSpeed 0.19.8.
DEEPSPEED = LauncherProgram(
    "deepspeed",
    "deepspeed",
    "argparse",
    "DeepSpeed 0.19.8",
    build_option_table(
        ("workers", 1, "num_nodes"),
        ("per-host", 1, "num_gpus num_accelerators"),
        ("hosts", 1, "i include e exclude"),
        ("hostfile", 1, "H hostfile"),
        ("rendezvous", 1, "master_addr node_rank"),
        ("rendezvous", 0, "no_ssh"),
        ("port", 1, "ssh_port"),
        ("agent", 1, "launcher"),
        ("module", 0, "module"),
        ("no-python", 0, "no_python"),
        ("nothing", 0, "h help"),
        ("", 0, "bind_cores_to_rank force_multi no_local_rank no_ssh_check q quiet save_pid"),
        ("", 1, "autotuning bind_core_list enable_each_rank_log launcher_args log_level master_port"),
        ("", 1, "venv_script"),
    ),
    joined=frozenset("Hie"),
    label="deepspeed",
)


def _add_underscored_options(table: dict[str, LauncherOption]) -> dict[str, LauncherOption]:
    """Add the names with underscores instead of dashes, which these parsers accept too."""
    return {**table, **{name.replace("-", "_"): option for name, option in table.items()}}


_TORCH: tuple[OptionRow, ...] = (
    ("workers", 1, "nnodes"),
    ("per-host", 1, "nproc-per-node"),
    ("rendezvous", 1, "rdzv-endpoint rdzv-backend node-rank master-addr local-addr"),
    ("standalone", 0, "standalone"),
    ("module", 0, "m module"),
    ("no-python", 0, "no-python"),
    ("nothing", 0, "h help"),
    ("", 0, "run-path"),
    ("", 1, "duplicate-stderr-filters duplicate-stdout-filters event-log-handler local-ranks-filter"),
    ("", 1, "log-dir logs-specs master-port max-restarts monitor-interval numa-binding r rdzv-conf"),
    ("", 1, "rdzv-id redirects role shutdown-timeout signals-to-handle start-method t tee"),
    ("", 1, "virtual-local-rank"),
)

# torch/distributed/run.py and launch.py of PyTorch 2.x. Every option but the last two can also come from the
# environment as PET_<NAME>, which is how Trainer passes on hosts and counts (torch.go, v2.3.0).
TORCHRUN = LauncherProgram(
    "torchrun",
    "torch",
    "argparse",
    "PyTorch 2.9",
    _add_underscored_options(build_option_table(*_TORCH)),
    joined=frozenset("rt"),
    label="torchrun",
)
TORCH_LAUNCH = LauncherProgram(
    "torch.distributed.launch",
    "torch",
    "argparse",
    "PyTorch 2.9",
    _add_underscored_options(build_option_table(*_TORCH, ("", 0, "use-env"), ("", 1, "logdir"))),
    joined=frozenset("rt"),
    label="torch.distributed.launch",
)

# paddle/distributed/launch/context/args_envs.py of paddlepaddle 3.3.1; fleetrun is the same (its entry points).
PADDLE_LAUNCH = LauncherProgram(
    "paddle.distributed.launch",
    "paddle",
    "argparse",
    "paddlepaddle 3.3.1",
    build_option_table(
        ("workers", 1, "nnodes"),
        ("per-host", 1, "nproc_per_node"),
        ("rendezvous", 1, "master rank"),
        ("hosts", 1, "ips servers trainers"),
        ("mode", 1, "devices gpus npus xpus run_mode server_num trainer_num legacy elastic_level"),
        ("mode", 1, "sort_ip auto_tuner_json auto_parallel_config auto_cluster_config"),
        ("logs", 1, "log_dir"),
        ("nothing", 0, "h help"),
        ("", 1, "log_level log_overwrite enable_gpu_log job_id host start_port gloo_port with_gloo"),
        ("", 1, "max_restart elastic_timeout"),
    ),
    label="Paddle's launcher",
)

# accelerate/commands/launch.py of Accelerate 1.15.0.
ACCELERATE = LauncherProgram(
    "accelerate launch",
    "accelerate",
    "argparse",
    "Accelerate 1.15.0",
    _add_underscored_options(
        build_option_table(
            ("count", 1, "num-processes"),
            ("workers", 1, "num-machines"),
            ("rendezvous", 1, "machine-rank main-process-ip rdzv-backend"),
            ("hosts", 1, "deepspeed-hostfile deepspeed-exclusion-filter deepspeed-inclusion-filter"),
            ("hosts", 1, "mpirun-hostfile"),
            ("", 1, "config-file"),  # options on the command line override it
            ("module", 0, "m module"),
            ("no-python", 0, "no-python"),
            ("nothing", 0, "h help"),
            ("", 0, "cpu debug downcast-bf16 dynamo-use-dynamic dynamo-use-fullgraph enable-cpu-affinity"),
            ("", 0, "dynamo-use-regional-compilation fp8-use-autocast-during-eval multi-gpu"),
            ("", 0, "no-tpu-cluster q quiet same-network tpu tpu-cluster tpu-use-sudo use-deepspeed"),
            ("", 0, "use-fsdp use-megatron-lm use-parallelism-config"),
            ("", 1, "aws-access-key-id aws-secret-access-key deepspeed-config-file"),
            ("", 1, "deepspeed-moe-layer-cls-names deepspeed-multinode-launcher dynamo-backend"),
            ("", 1, "dynamo-mode env fp8-amax-compute-algo fp8-amax-history-len fp8-backend"),
            ("", 1, "fp8-enable-fsdp-float8-all-gather fp8-format fp8-interval fp8-margin fp8-opt-level"),
            ("", 1, "fp8-override-linear-precision fsdp-activation-checkpointing fsdp-version"),
            ("", 1, "fsdp-activation-checkpointing-offload fsdp-auto-wrap-policy"),
            ("", 1, "fsdp-backward-prefetch fsdp-cpu-ram-efficient-loading fsdp-forward-prefetch"),
            ("", 1, "fsdp-min-num-params fsdp-offload-params fsdp-reshard-after-forward"),
            ("", 1, "fsdp-sharding-strategy fsdp-state-dict-type fsdp-sync-module-states"),
            ("", 1, "fsdp-transformer-layer-cls-to-wrap fsdp-use-orig-params gpu-ids"),
            ("", 1, "gradient-accumulation-steps gradient-clipping log-dir main-process-port"),
            ("", 1, "main-training-function max-restarts mixed-precision monitor-interval"),
            ("", 1, "num-cpu-threads-per-process offload-optimizer-device offload-optimizer-nvme-path"),
            ("", 1, "offload-param-device offload-param-nvme-path rdzv-conf role t tee vm"),
            ("", 1, "zero-stage zero3-init-flag zero3-save-16bit-model"),
            ("", 1, "parallelism-config-cp-backend parallelism-config-cp-comm-strategy"),
            ("", 1, "parallelism-config-cp-size parallelism-config-dp-replicate-size"),
            ("", 1, "parallelism-config-dp-shard-size parallelism-config-sp-attn-implementation"),
            ("", 1, "parallelism-config-sp-backend parallelism-config-sp-seq-length"),
            ("", 1, "parallelism-config-sp-seq-length-is-variable parallelism-config-sp-size"),
            ("", 1, "parallelism-config-tp-size megatron-lm-attention-backend"),
            ("", 1, "megatron-lm-attention-dropout megatron-lm-attention-softmax-in-fp32"),
            ("", 1, "megatron-lm-calculate-per-token-loss megatron-lm-context-parallel-size"),
            ("", 1, "megatron-lm-decoder-last-pipeline-num-layers megatron-lm-eod-mask-loss"),
            ("", 1, "megatron-lm-expert-model-parallel-size megatron-lm-expert-tensor-parallel-size"),
            ("", 1, "megatron-lm-gradient-clipping megatron-lm-hidden-dropout megatron-lm-no-load-optim"),
            ("", 1, "megatron-lm-no-save-optim megatron-lm-num-micro-batches megatron-lm-pp-degree"),
            ("", 1, "megatron-lm-optimizer-cpu-offload megatron-lm-overlap-cpu-optimizer-d2h-h2d"),
            ("", 1, "megatron-lm-recompute-activations megatron-lm-recompute-granularity"),
            ("", 1, "megatron-lm-recompute-method megatron-lm-recompute-num-layers"),
            ("", 1, "megatron-lm-sequence-parallelism megatron-lm-tp-degree megatron-lm-use-custom-fsdp"),
            ("", 1, "megatron-lm-use-distributed-optimizer megatron-lm-use-precision-aware-optimizer"),
            ("", 1, "megatron-lm-use-rotary-position-embeddings"),
        )
    ),
    label="accelerate launch",
)
