import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "thread_unsafe: a mark of scikit-learn's own tests")


@pytest.fixture
def global_random_seed():
    """The seed that scikit-learn's own tests ask for."""
    return 42
