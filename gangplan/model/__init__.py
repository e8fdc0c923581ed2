"""What the program thinks with: frozen, resolved values. Nothing here is optional by accident."""
