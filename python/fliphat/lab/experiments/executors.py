"""Where `open_executor` was in the first version; import it from :mod:`fliphat.lab.experiments`."""

from fliphat.lab.experiments.run.executors import open_executor

__all__ = ["open_executor"]
