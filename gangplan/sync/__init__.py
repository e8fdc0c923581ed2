"""rendered/ applied to a cluster by gangplan itself, where no Argo CD and no Flux does it."""
