"""What Kubeflow Trainer and JobSet say of a run, and what they make of it."""
