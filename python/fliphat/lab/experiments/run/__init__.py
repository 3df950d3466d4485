"""Running experiments: recipes, cells, the sweep over seeds, where it runs, and its results."""
