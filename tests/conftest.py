"""One set of fixtures for all suites. What they are is said in tests/fixtures/."""

pytest_plugins = [
    "tests.fixtures.backend",
    "tests.fixtures.collecting",
    "tests.fixtures.properties",
    "tests.fixtures.schedulers",
    "tests.fixtures.servers",
    "tests.fixtures.stores",
    "tests.fixtures.suites",
    "tests.fixtures.timeouts",
]
