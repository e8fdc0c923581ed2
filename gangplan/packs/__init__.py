"""Policy packs, which are folders of ValidatingAdmissionPolicies, and a workspace's own policies outside
packs.

A pack comes with gangplan (the folder policies/) or is in the workspace's own policies/. Names of packs and
policies are unique, so that none replaces another. cluster.yaml names the packs; gangplan/policy/ turns them
into what applies to a cluster.
"""
