"""Objects as the API server holds them when policies judge them, from objects as written.

The difference is the defaults of the kind (Kubernetes' own for built-in kinds, the CRD's for others), and
what admission fills in before it validates. tests/e2e/test_policies.py compares the result with a running API
server.
"""
