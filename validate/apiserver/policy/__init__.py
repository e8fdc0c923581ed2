"""ValidatingAdmissionPolicies as the API server applies them, evaluated without a cluster.

`read.read_policy_objects` turns objects into policies, bindings and the mistakes in them;
`judge.PolicyEvaluator` returns what they decide about objects. Source of the semantics: k8s.io/apiserver
v0.34 pkg/admission/plugin/policy and k8s.io/kubernetes v1.34 pkg/apis/admissionregistration, compared with a
running API server in tests/e2e/test_policies.py.
"""
