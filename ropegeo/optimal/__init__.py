"""The best heads that a rotation allows, with bounds that anyone can check."""
