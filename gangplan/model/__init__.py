"""The domain types: frozen, resolved values. Nothing here is optional by accident."""
