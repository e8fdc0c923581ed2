"""An object as it is written in, as the API server holds it when policies look at it, out.

Between the two stand the defaults of the kind (Kubernetes' own for built-in kinds, the CRD's for others), and
what admission fills in before it validates. tests/e2e/test_policies.py holds this to a running API server.
"""
