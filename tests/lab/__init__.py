"""A real control plane on one machine, without containers, for tests and people.

``with Lab("new") as lab:`` starts etcd, the API server, scheduler, controller manager, JobSet, Trainer, Kueue
and simulated nodes, all built from Go modules; ``python -m tests.lab up`` does the same for a person.
"""
