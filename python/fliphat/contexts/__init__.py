"""What policies see: contexts that say what they are made of, and people's rows turned into contexts."""

from fliphat.contexts.crossed import Crossed
from fliphat.contexts.encoder import Encoder

__all__ = ["Crossed", "Encoder"]
