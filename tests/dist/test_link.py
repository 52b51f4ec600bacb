#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Communicators: exchanges of 1 to 5 ranks, what ranks learn of each other's failures, and groups of a program's own
MPI. Exchanges among devices that are the machine's memory: by a library in the place of NCCL, by an MPI that is said to
take such memory, and through the host; and what comes of each that is missing or fails.

usage: test_link.py LORASTER RANKS TOPIC FOLDER"""
import atexit, json, subprocess, sys
from pathlib import Path

from ranks import (FULL, GRID, HANG_S, apart, command, environment, in_folder, mpirun, need_mpirun, preloadable,
                   run_topics)

program, ranks_program, built = sys.argv[1], sys.argv[2], Path(sys.argv[4])
need_mpirun(program)
NCCL = {"LORASTER_NCCL": str(built / "nccl_stand_in.so")}
TAKES_CUDA = {"LD_PRELOAD": preloadable(built / "mpi_takes_cuda.so", atexit.register)}
WITHOUT = {"LORASTER_NCCL": "/nowhere/libnccl.so.2"}


def start(size, words, code=0, **more):
    """What the ranks print together. Nothing of the machine's own NCCL, MPI and devices decides."""
    env = dict(environment(program), **{**WITHOUT, "OMPI_MCA_opal_cuda_support": "0", **more})
    env["ASAN_OPTIONS"] += ":verify_asan_link_order=0"  # what is loaded before it calls nothing of it
    done = subprocess.run(command(size, words), env=env, text=True, capture_output=True, timeout=HANG_S)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def ask(size, *words, **more):
    return start(size, [ranks_program, *words], **more)


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


def devices():
    """The same bits by all ways: the ranks compare them with sums in their order."""
    for size in (2, 3, 5) if FULL else (3,):
        assert "by NCCL 2.21.5: \n" in ask(size, "device", "nccl", **NCCL)
        assert "by host memory: so it was asked for" in ask(size, "device", "host", **NCCL)
        assert "by CUDA-aware MPI: " in ask(size, "device", "mpi", **TAKES_CUDA, **NCCL)
        assert "by NCCL 2.21.5: \n" in ask(size, "drawn", LR_TEST_FAKE_RENDERS="1", **NCCL)
    assert "by host memory: rank 0 on " in ask(2, "drawn", **NCCL)


def link_faults():
    """What is missing is said, and the next way taken; what is asked for and missing is one error."""
    old = dict(NCCL, LR_TEST_NCCL_VERSION="21302")
    lacking = {"LORASTER_NCCL": str(built / "nccl_without_receive.so")}
    for more, word in ((WITHOUT, "no NCCL (/nowhere/libnccl.so.2: cannot open"),
                       (lacking, "has no ncclRecv"), (old, "is NCCL of the version 21302"),
                       (dict(NCCL, LR_TEST_SHARED_GPU="1"), "ranks 0 and 1 share the GPU fake:0.0"),
                       (dict(NCCL, LR_TEST_NCCL="init 1"), "rank 1 on "),
                       (dict(NCCL, LR_TEST_NCCL="late 1"), "NCCL says unhandled system error")):
        said = ask(2, "which", **more)
        assert "by host memory: " in said and word in said, said
    assert "by CUDA-aware MPI: rank 0 on " in ask(2, "which", **TAKES_CUDA, **WITHOUT)
    # An exchange that fails at one rank ends all, with one sentence, of that rank.
    for transfer in (1, 4):
        said = ask(3, "broken", "nccl", **NCCL, LR_TEST_NCCL=f"transfer 1 {transfer}")
        lines = [line for line in said.splitlines() if line.startswith("rank ")]
        assert len(lines) == 1 and lines[0].startswith("rank 1: an exchange among devices: "), said
    # A device that is lost while others wait for what it was to send: they are ended, after it has spoken.
    said = start(3, [ranks_program, "broken", "nccl"], code=1, **NCCL, LR_TEST_NCCL="lose 1 3")
    assert "rank 1 is alone" in said and "CUDA says" in said, said


PLUGINS = {"LORASTER_PLUGINS": str(built / "plugins"), "LR_TEST_SHARED_BYTES": "50000",
           "LR_TEST_FAKE_RENDERS": "1", **NCCL}


def loraster(size, command, code=0, **more):
    words, more = [program, *command.split()], {**PLUGINS, **more}
    if size > 1:
        return start(size, words, code=code, **more)
    done = subprocess.run(words, env=dict(environment(program), **more), text=True, capture_output=True, timeout=HANG_S)
    assert done.returncode == code, f"{command}: {done.returncode}\n{done.stderr}"
    return done.stdout + done.stderr


def prepare():
    in_folder()
    ring = f"--scanner ring.yaml {GRID}"
    loraster(1, f"simulate {ring} --phantom spheres --counts 20000 --backend native -o d.h5")
    loraster(1, f"simulate {ring} --phantom spheres --counts 3000 --tof-ps 400 -o e.petsird")
    loraster(1, "direct deposit --events e.petsird --grid 20,20,5 --voxel-mm 2 --azimuths 6 --tilts 1 --backend cpu "
                "-o h.h5")
    # The device of that number, for all ranks: else each takes one of its own of the machine's.
    osem = "--algorithm osem --subsets 2 --device 0"
    return {"listmode": f"recon --operator listmode {ring} --events e.petsird --backend cuda --iterations 10 {osem}",
            "correspondence": f"recon {ring} --data d.h5 --backend compute --iterations 2 {osem}",
            "direct": "recon --operator direct --data h.h5 --backend compute --fit --tof-ps 50 --radial-mm 4 "
                      f"--axial-mm 4 --iterations 3 {osem}"}


def images():
    """recon of the three families gives images of one process, and of list mode the same bits by NCCL as by
    the host: its sums have an order here."""
    families = prepare()
    for name, command in families.items():
        loraster(1, f"{command} -o one.nii")
        for size in (2, 3) if name == "listmode" or FULL else (2,):
            said = loraster(size, f"{command} --exchange nccl --json --verbose -o nccl.nii")
            found = json.JSONDecoder().raw_decode(said)[0]
            assert found["ranks"]["exchange"] == "NCCL 2.21.5", found["ranks"]
            assert "ranks exchange images by NCCL 2.21.5" in said, said
            if name == "listmode":  # the sums of two subsets alone cross: fit, image before and after
                last = found["iterations"][-1]
                assert (last["to_device_bytes"], last["to_host_bytes"]) == (0, 2 * 3 * 48), last
            print(f"{name}, {size} ranks: {apart('one.nii', 'nccl.nii'):.2g} from one process")
            assert apart("one.nii", "nccl.nii") < 1e-5, apart("one.nii", "nccl.nii")
            if name == "listmode" or FULL:
                loraster(size, f"{command} --exchange host -o host.nii")
                least = 0 if name == "listmode" else 1e-6
                assert apart("nccl.nii", "host.nii") <= least, apart("nccl.nii", "host.nii")
    command = families["listmode"]
    said = loraster(2, f"{command} -o x.nii", LR_TEST_SHARED_GPU="1")
    assert said.count("not by NCCL: ranks 0 and 1 share the GPU") == 1, said
    # Devices of a machine with two GPUs, where each rank takes the next one (cluster_choose).
    own = ["sh", "-c", 'exec "$@" --device "$OMPI_COMM_WORLD_LOCAL_RANK"', "rank", program,
           *command.removesuffix(" --device 0").split(), *"--json -o x.nii".split()]
    for more, exchange in (({}, "NCCL 2.21.5"), ({"LR_TEST_SHARED_GPU": "1"}, "host memory")):
        found = json.JSONDecoder().raw_decode(start(2, own, **{**PLUGINS, **more}))[0]
        assert found["operator"]["device"] == "fake device 0", found["operator"]
        assert found["ranks"]["exchange"] == exchange, found["ranks"]
    said = loraster(2, f"{command} --exchange nccl -o x.nii", code=4, **WITHOUT)
    assert said.count("loraster: error") == 1 and "rank 0 of 2" in said, said
    said = loraster(2, f"{command} -o x.nii", code=1, LR_TEST_NCCL="transfer 1 5")
    assert said.count("loraster: error") == 1 and "rank 1 of 2" in said and "NCCL says" in said, said


run_topics({"moves": moves, "failures": failures, "groups": groups, "devices": devices, "link_faults": link_faults,
            "images": images})
