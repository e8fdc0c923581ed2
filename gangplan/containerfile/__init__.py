"""A Containerfile (Dockerfile) in; what of it would fail or open a training run, at its line, out. Nothing is built."""
