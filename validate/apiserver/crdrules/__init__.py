"""The rules in CRDs (`x-kubernetes-validations`), evaluated as the API server evaluates them.

Those of Trainer, JobSet and Kueue are facts of gangplan (trainer_facts.py, kueue_facts.py); those of CRDs
that a workspace imported are read from their schemas (structural.py). Source of the semantics:
apiextensions-apiserver v0.34, pkg/apiserver/schema/cel.
"""
