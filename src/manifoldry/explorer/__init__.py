"""The explorer: look at maps in a browser or a notebook."""

from manifoldry.explorer.explore import Explorer, explore

__all__ = ["Explorer", "explore"]
