"""Words for messages: what other tools call our fields, fields that are taken, and patterns said plainly."""

from __future__ import annotations

# Words of other tools and of Kubernetes, and the one word we use.
SYNONYMS = {
    "replicas": "workers", "nodes": "workers", "numnodes": "workers", "num_nodes": "workers", "workercount": "workers",
    "gpu_count": "gpus", "gpusperworker": "gpus", "gpuspernode": "gpus", "gpus_per_node": "gpus", "gpus_per_worker": "gpus",
    "slotsperworker": "slots", "numprocpernode": "slots", "processes": "slots", "mem": "memory", "ram": "memory",
    "cpus": "cpu", "cores": "cpu", "cmd": "command", "entrypoint": "command", "args": "command", "volumes": "data",
    "pvcs": "data", "environment": "env", "priorityclass": "priority", "cluster": "clusters", "namespace": "team",
    "project": "team", "activedeadlineseconds": "timeout", "backofflimit": "retries", "resources": "cpu, memory and gpus",
}  # fmt: skip
RESERVED = {
    "schedule": "schedules are not part of this version",
    "elastic": "a run keeps its number of workers; elastic training is not supported",
    "suspend": "Kueue owns suspend; set state: archived to keep a run from being applied",
    "backend": "every run is a TrainJob, which needs no MPI operator; MPIJobs are not part of this version",
    "preempt": "a run takes the place of others by its priority alone; write priority: high where the team may",
    "expert": "raw patches are not part of this version; use overlays/<cluster>/kustomization.yaml",
}
KINDS = {"Sweep": "sweeps are not part of this version"}

# Patterns in words; where none is known, the field's example has to do.
FORMS = {
    r"^[a-z]([-a-z0-9]*[a-z0-9])?$": "lower-case letters, digits and '-', starting with a letter, ending with a letter or digit",
    r"^[A-Za-z_][A-Za-z0-9_]*$": "letters, digits and '_', not starting with a digit",
    r"^sha256:[0-9a-f]{64}$": "sha256: and 64 hexadecimal digits",
    r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$": "letters, digits, '-', '_' and '.', starting and ending with a letter or digit",
    r"^v?[0-9]+\.[0-9]+(\.[0-9]+)?$": "two or three numbers, such as 1.34.4",
}
