"""The functions of the admission environment, a module per library; table.py has them by overload id.

Every module has `TABLE`, which holds `Overload`s by the ids that cel-go and the API server give them
(Kubernetes 1.34: cel-go v0.26, k8s.io/apiserver v0.34 `pkg/cel/library`).
"""
