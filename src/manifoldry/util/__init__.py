"""What every other package uses: checks, threads, progress, warnings."""
