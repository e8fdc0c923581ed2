"""The functions of the admission environment, one module per library; table.py has them by overload id.

Every module has `TABLE`, which holds `Implementation`s by the overload ids of cel-go and the API server
(Kubernetes 1.34: cel-go v0.26, k8s.io/apiserver v0.34 `pkg/cel/library`).
"""
