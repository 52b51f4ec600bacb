#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every fuzz target begins with inputs of its own, and together they stay small."""
import re, sys, tarfile
from pathlib import Path

here = Path(sys.argv[1])
targets = set(re.findall(r'^    \{"(\w+)", ', (here / "readers.c").read_text(), re.M))
sizes = {target: [] for target in targets}
with tarfile.open(here / "corpora.tar.gz") as archive:
    for member in filter(tarfile.TarInfo.isfile, archive):
        target = member.name.split("/")[0]
        assert target in targets, f"no target reads {member.name}"
        sizes[target].append(member.size)
for target, found in sizes.items():
    assert len(found) >= 2, f"{target}: {len(found)} inputs"
    assert max(found) <= 1 << 16, f"{target}: an input of {max(found)} bytes"
total = sum(sum(found) for found in sizes.values())
assert total < 1 << 20, f"{total} bytes in all"
for reader in ("histo_images", "petsird", "scanner_yaml"):
    assert reader in targets, f"no fuzz target {reader}"
print(f"{sum(map(len, sizes.values()))} inputs of {len(targets)} targets, {total} bytes")
