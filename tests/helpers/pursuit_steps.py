"""Pursuit's release step after step, where a test looks at what noise is added to."""

from fliphat.fit import pursuit_release


def watch_steps(monkeypatch):
    """Let rows of this process be released by the steps that the one call consists of."""

    def release(self, sigmas):
        return pursuit_release.in_steps(self._plan, self, self._known, sigmas)

    monkeypatch.setattr(pursuit_release.RowSums, "release", release)
