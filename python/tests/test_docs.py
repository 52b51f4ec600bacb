# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""The documents' Python runs, page by page from top to bottom."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", ["README.md", "docs/guide/python.md"])
def test_a_page_runs(page, tmp_path, monkeypatch):
    pytest.importorskip("scipy.sparse")
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)
    assert blocks
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
