"""The rules that CRDs carry (`x-kubernetes-validations`), judged as the API server judges them.

Those of Trainer, JobSet and Kueue are facts of gangplan (facts.py); those of CRDs that a workspace took in
are read from their schemas (structural.py). Source of the semantics: apiextensions-apiserver v0.34,
pkg/apiserver/schema/cel.
"""
