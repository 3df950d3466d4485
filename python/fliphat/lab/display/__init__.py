"""What people see of a result: aligned tables, progress of a long task, and the style of figures."""

from fliphat.lab.display.terminal import Progress, TextTable

__all__ = ["Progress", "TextTable"]
