"""Policy packs: folders of ValidatingAdmissionPolicies, and what of them applies to a cluster.

A pack comes with gangplan (the folder policies/) or stands in the workspace's own policies/. Names of packs
and policies are unique, so that nothing takes another's place. cluster.yaml names the packs; their policies,
bindings and parameter objects are made here, to be judged by and to be exported.
"""
