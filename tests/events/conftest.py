"""What tests of events share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def directory() -> Iterator[Path]:
    """A folder of its own."""
    path = Path(tempfile.mkdtemp(prefix="tm"))
    yield path
    shutil.rmtree(path)
