"""Scores and margins: definitions, exact routes, and the choice between them."""
