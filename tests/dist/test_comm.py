#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Communicators: exchanges of 1 to 5 ranks, what ranks learn of each other's failures, and groups of a program's own
MPI.

usage: test_comm.py LORASTER RANKS TOPIC"""
import sys
from pathlib import Path

from ranks import FULL, mpirun, need_mpirun, run_topics

program, ranks_program = sys.argv[1], sys.argv[2]


def moves():
    for size in (1, 2, 3, 5) if FULL else (2, 5):
        done = mpirun(program, size, ranks_program, "moves")
        assert size == 1 or f"moves of {size} ranks by Open MPI" in done.stdout, done.stdout


def failures():
    mpirun(program, 3, ranks_program, "failure")
    for topic, word in (("difference", "another file than that of rank 0: b.h5 here"),
                        ("mismatch", "works on something else than rank 0")):
        done = mpirun(program, 3, ranks_program, topic)
        assert word in done.stdout, done.stdout
        said = [line for line in done.stdout.splitlines() if line.startswith("rank ")]
        assert len(said) == 1 and said[0].startswith("rank 2: "), done.stdout


def groups():
    mpirun(program, 5, Path(ranks_program).parent / "dist_groups")


need_mpirun(program)
run_topics({"moves": moves, "failures": failures, "groups": groups})
