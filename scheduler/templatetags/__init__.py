"""Template tags for pages that are not ours."""
