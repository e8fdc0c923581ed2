"""Compare gangplan with a real Kueue: which runs are admitted, why others are not, and where pods go."""
