"""Policies and rules of CRDs: gangplan and a real API server must judge the same objects equally."""
