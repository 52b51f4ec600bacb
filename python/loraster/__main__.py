# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""The program loraster: python -m loraster does the same."""

import os
import sys

from ._program import program


def main() -> None:
    path = program()
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    main()
