"""What people see of a result: aligned tables, progress of a long task, and the style of figures."""

from fliphat.lab.display.progress import Progress
from fliphat.lab.display.text_table import TextTable

__all__ = ["Progress", "TextTable"]
