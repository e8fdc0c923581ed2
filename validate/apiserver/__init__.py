"""What the Kubernetes API server says of an object: schemas, defaults, validation, policies, CRD rules."""
