#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every fuzz target begins with inputs of its own, and together they stay small."""
import sys
from pathlib import Path

here = Path(sys.argv[1])
targets = {path.stem for path in here.glob("*.c")}
sizes = {target: [path.stat().st_size for path in (here / "corpus" / target).glob("*")]
         for target in targets}
for target, found in sizes.items():
    assert len(found) >= 2, f"tests/fuzz/corpus/{target}: {len(found)} inputs"
    assert max(found) <= 1 << 16, f"tests/fuzz/corpus/{target}: an input of {max(found)} bytes"
strangers = {path.name for path in (here / "corpus").iterdir()} - targets
assert not strangers, f"no target reads {strangers}"
total = sum(sum(found) for found in sizes.values())
assert total < 1 << 20, f"{total} bytes in all"
for reader in ("histo_images", "petsird", "scanner_yaml"):
    assert reader in targets, f"no fuzz target {reader}"
print(f"{sum(map(len, sizes.values()))} inputs of {len(targets)} targets, {total} bytes")
