"""Files to read."""

import pytest


@pytest.fixture
def write(tmp_path):
    """Write text or bytes to a new file; its path."""

    def write(content, name="data.csv"):
        path = tmp_path / name
        if isinstance(content, str):
            content = content.encode()
        path.write_bytes(content)
        return path

    return write
