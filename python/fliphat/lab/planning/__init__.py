"""What to expect before anyone is asked: the policy's episodes, worked out from public numbers alone."""

from fliphat.lab.planning.forecast import Plan, PlannedEpisode, plan

__all__ = ["Plan", "PlannedEpisode", "plan"]
