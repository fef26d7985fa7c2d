"""Closed forms for how margins fall with length."""
