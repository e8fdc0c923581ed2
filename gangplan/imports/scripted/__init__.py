"""Batch scripts of Slurm and PBS: read word by word, never run."""
