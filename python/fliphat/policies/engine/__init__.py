"""The engine of a policy: inputs, the open episode and its rows, what is known, and saved files."""
