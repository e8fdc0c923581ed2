"""What Kubeflow Trainer and JobSet refuse in a run, and what they turn it into."""
