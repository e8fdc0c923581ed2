"""Fidelity: gangplan and a real control plane are asked the same questions and must agree."""
