"""Measure the speed and memory of gangplan, next to other programs and a bare Python. Run by `make bench`."""
