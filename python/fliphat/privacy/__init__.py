"""What the noise costs, what it guarantees, and an audit that can fail."""
