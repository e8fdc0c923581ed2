"""What the Kubernetes API server checks in an object: schemas, defaults, validation, policies, CRD rules."""
