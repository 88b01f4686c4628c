"""What pytest does not collect here: pages are doctests, the machinery of the site is not."""

collect_ignore = ["conf.py", "versions.py", "_ext", "_templates", "api", "gallery", "pictures"]
