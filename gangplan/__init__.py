"""gangplan: declarative GitOps configuration generator and validator for distributed training."""

__version__ = "0.1.0"
