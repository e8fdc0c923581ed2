"""ValidatingAdmissionPolicies as the API server applies them, judged without a cluster.

`read.read` turns objects into policies, bindings and what is wrong with them; `judge.judge` tells what they
say of objects. Source of the semantics: k8s.io/apiserver v0.34 pkg/admission/plugin/policy and
k8s.io/kubernetes v1.34 pkg/apis/admissionregistration, held to a running API server in
tests/e2e/test_policies.py.
"""
