"""Fidelity of admission: who gets in, why not, and where pods go, asked of gangplan and of a real Kueue."""
