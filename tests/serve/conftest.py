import pytest

from postgres_server import running_server


@pytest.fixture(scope="session")
def database():
    """A PostgreSQL server for all tests of these files."""
    with running_server() as server:
        yield server
