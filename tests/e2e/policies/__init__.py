"""Policies and rules of CRDs: gangplan and a real API server judge the same objects, and say the same."""
