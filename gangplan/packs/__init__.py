"""Policy packs: folders of ValidatingAdmissionPolicies, and a workspace's own policies outside of them.

A pack comes with gangplan (the folder policies/) or stands in the workspace's own policies/. Names of packs
and policies are unique, so that nothing takes another's place. cluster.yaml names the packs; gangplan/policy/
makes of them what applies to a cluster.
"""
