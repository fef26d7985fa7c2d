"""Heads made by hand: the theorem as matrices, with the proof beside the weights."""
