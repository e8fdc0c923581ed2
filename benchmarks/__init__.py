"""Speed and memory of gangplan, beside kustomize and the bare limit. Run by `make bench`."""
