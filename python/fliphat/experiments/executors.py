"""Where `open_executor` was in the first version; import it from :mod:`fliphat.experiments`."""

from fliphat.experiments.run.executors import open_executor

__all__ = ["open_executor"]
