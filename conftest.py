"""Has all tests collected by `tests.collecting`."""

pytest_plugins = ["tests.collecting"]
