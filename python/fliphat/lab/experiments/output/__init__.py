"""What comes out of experiments: tables, figures and the report."""
