#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""recon by several ranks: the images of one process, guesses composed, and what goes wrong.

usage: test_recon.py LORASTER RANKS TOPIC"""
import atexit, json, os, random, re, shutil, signal, struct, subprocess, sys, time
from pathlib import Path

from ranks import (FULL, GRID, HANG_S, MPIRUN, RING, apart, environment, image, in_folder, mpirun, need_mpirun,
                   preloadable, run_topics, write_nifti)

program = sys.argv[1]
need_mpirun(program)
in_folder()
ENVIRONMENT = dict(environment(program), LORASTER_LIBEXEC=str(Path(program).parent))
os.environ["LORASTER_LIBEXEC"] = str(Path(program).parent)
ON_RING = f"--scanner ring.yaml {GRID}"

# Sums of floats over all LORs, taken in parts, differ by some 1e-7 in each of ten iterations.
CLOSE = 1e-5


def run(command, code=0):
    done = subprocess.run([program, *command.split()], env=ENVIRONMENT, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == code, f"{command}: {done.returncode}\n{done.stderr}"
    return done


def ranks(count, command, code=0, before=()):
    """The command by so many ranks; one needs no mpirun."""
    return run(command, code) if count == 1 else mpirun(program, count, *before, program, *command.split(), code=code)


def simulate(name, number, more="", phantom="spheres"):
    """A file of so many counts, or events with a time of flight."""
    backend = "" if "--tof-ps" in more else "--backend native"
    run(f"simulate {ON_RING} --phantom {phantom} --counts {number} {backend} {more} -o {name}")


def iterations(done):
    """The figures that a run with --json tells of each iteration."""
    return json.loads(done.stdout)["iterations"]


def says_once(done, *words):
    assert done.stderr.count("loraster: error") == 1, done.stderr
    assert all(word in done.stderr for word in words), (words, done.stderr)


def counts(backend="native", grid=GRID):
    """The command of a reconstruction from LOR data."""
    simulate("d.h5", 20000, "--truth truth.nii")
    return f"recon --scanner ring.yaml {grid} --data d.h5 --backend {backend}"


def events():
    simulate("e.petsird", 3000, "--tof-ps 400")
    return f"recon --operator listmode {ON_RING} --events e.petsird --backend native"


def deposit(grid, azimuths):
    events()
    run(f"direct deposit --events e.petsird --grid {grid} --voxel-mm 2 --azimuths {azimuths} --tilts 1 --backend cpu "
        "-o h.h5")
    return "recon --operator direct --data h.h5 --backend cpu --radial-mm 4 --axial-mm 4 --tof-ps 50"


def histo():
    return deposit("20,20,5", 6) + " --fit"


def compare(command, sizes, more=""):
    """Ten iterations of one process and of several ranks."""
    command = f"{command} --iterations 10 {more} -o"
    run(f"{command} one.nii")
    for size in sizes:
        ranks(size, f"{command} x.nii")
        assert apart("one.nii", "x.nii") < CLOSE, f"{size} ranks: {apart('one.nii', 'x.nii')}"


def exact():
    command = f"{counts()} --deterministic"
    compare(command, (2, 3, 5), "--algorithm osem --subsets 4")
    compare(command, (2,), "--algorithm ramla --subsets 4")
    bsrem = "--algorithm bsrem --subsets 3 --prior rdp --beta 1e-3 --psf-mm 3"
    compare(command, (2,), bsrem)
    ranks(2, f"{command} {bsrem} --iterations 10 -o b.nii")
    assert image("x.nii") == image("b.nii"), "two runs of two ranks differ"
    found, alone = (json.loads(ranks(size, f"{command} --iterations 2 --json -o a.nii").stdout) for size in (3, 1))
    assert found["ranks"]["count"] == 3 and found["iterations"][1]["sent_bytes"] > 0
    for key in ("log_likelihood", "measured_counts", "estimated_counts", "sensitive_counts"):
        a, b = found["iterations"][1][key], alone["iterations"][1][key]
        assert abs(a - b) <= 1e-6 * abs(b), f"{key}: {a} and {b}"
    meetings(f"{command} --algorithm osem --subsets 4")


def meetings(command):
    """In an update ranks meet three times: to sum, to gather, and for the fit."""
    if "MPI_COUNTS" not in os.environ:
        return
    library = preloadable(os.environ["MPI_COUNTS"], atexit.register)
    before = ["env", f"LD_PRELOAD={library}", f"ASAN_OPTIONS={ENVIRONMENT['ASAN_OPTIONS']}:verify_asan_link_order=0"]
    counted = []
    for number in (2, 4):
        done = ranks(2, f"{command} --iterations {number} -o x.nii", before=before)
        counted.append(int(re.search(r"meetings: (\d+)", done.stderr).group(1)))
    assert counted[1] - counted[0] == 2 * 4 * 3, counted


def families():
    listmode, direct = events(), histo()
    compare(listmode, (3,), "--algorithm osem --subsets 3")
    compare(direct, (2,), "--algorithm ramla --subsets 3")
    compare(direct, (2,), "--algorithm ramla --views-per-block 2")
    if not FULL:
        return
    for command in (listmode, direct, f"{counts()} --deterministic"):
        for algorithm in ("mlem", "osem --subsets 2", "ramla --subsets 4", "bsrem --subsets 2"):
            compare(command, (2, 3, 5), f"--algorithm {algorithm}")
    compare(counts("cpu"), (2, 3, 5))
    compare(counts("compute"), (2, 3, 5), "--algorithm osem")
    compare(listmode, (2,), "--kernel exact")
    compare(listmode, (2,), "--blobs")
    for size, name in ((1, "f"), (3, "g")):
        ranks(size, f"{listmode} --frames 20,20,20 --iterations 5 -o {name}.nii")
    for k in (1, 2, 3):
        assert apart(f"f-{k}.nii", f"g-{k}.nii") < CLOSE


def siemens():
    """Siemens list mode of random addresses, two in seven of them delayeds, with time marks."""
    draw = random.Random(4)
    bins, views, planes = 24, 20, 16 # 8 modules of 4 crystals and a gap around, 4 rings
    words = []
    for k in range(4000):
        address = draw.randrange(bins * views * planes)
        words += [1 << 31 | k] if k % 40 == 0 else []
        words.append(address if k % 7 < 2 else 1 << 30 | address)
    Path("s.l").write_bytes(struct.pack(f"<{len(words)}I", *words))
    Path("s.l.hdr").write_text(f"!INTERFILE:=\nnumber of rings:=4\n%number of projections:={bins}\n"
        f"%number of views:={views}\n%maximum ring difference:=3\n%axial compression:=1\n")
    return f"{ON_RING} --events s.l --backend native"


def own():
    """What each rank keeps of files of every kind, replicates and delayeds too, is all together."""
    direct, lines, seed = histo(), "--sensitivity-lines 5000", "--bootstrap 7"
    delayed, osem = siemens(), "--algorithm osem --subsets"
    simulate("dense.h5", 300000)
    for command in (f"{direct} {osem} 2 {seed}", f"{events()} {lines} {osem} 3 {seed}", f"{counts()} {seed}",
                    f"recon {ON_RING} --data dense.h5 --backend native --additive d.h5", f"recon {delayed} {osem} 2",
                    f"recon --operator listmode {delayed} --frames 2,1.5 {lines}",
                    f"recon --operator listmode {delayed} --frames 1,1.5 {seed} {lines}"):
        alone, together = (ranks(size, f"{command} --iterations 4 --json -o {name}.nii")
                           for size, name in ((1, "one"), (3, "x")))
        assert sentences(alone) == sentences(together), (alone.stderr, together.stderr)
        one, many = json.loads(alone.stdout), json.loads(together.stdout)
        for name in ("-1.nii", "-2.nii") if "--frames" in command else (".nii",):
            assert apart(f"one{name}", f"x{name}") < CLOSE, (command, apart(f"one{name}", f"x{name}"))
        for key in ("events", "randoms"):
            assert one.get(key) == many.get(key), (one[key], many[key])
        peaks = many["ranks"]["peak_memory_bytes"]
        assert len(peaks) == 3 and min(peaks) > 1e6, peaks


def sentences(done):
    """What is said of a replicate and of the end of frames."""
    return re.findall(r"bootstrap replicate of.*|frame \d+ is from.*", done.stderr)


def ends():
    """Of CASToR the header tells how long a measurement was, whatever its last event is."""
    command = f"{events()} --sensitivity-lines 5000 --iterations 1 --frames 50,45"
    run("events convert e.petsird e.Cdh --scanner ring.yaml")
    header = Path("e.Cdh").read_text()
    longer = re.sub(r"(Duration \(s\): *)\S+", r"\g<1>100", header)
    assert longer != header, header
    Path("e.Cdh").write_text(longer)
    for name, count in (("e.petsird", 1), ("e.Cdh", 0)):
        command = command.replace("e.petsird", name)
        said = [sentences(ranks(size, f"{command} -o {to}.nii")) for size, to in ((1, "f"), (2, "g"))]
        assert said[0] == said[1] and len(said[0]) == count, said


def memory():
    """What a rank has falls with their number: of each event 24 bytes in a list, and as much in an operator."""
    simulate("e.petsird", 400000, "--tof-ps 400")
    command = f"recon --operator listmode {ON_RING} --events e.petsird --backend native --sensitivity-lines 5000 " \
              "--iterations 1 --json -o x.nii"
    two, five = (max(json.loads(ranks(size, command).stdout)["ranks"]["peak_memory_bytes"]) for size in (2, 5))
    print(f"peak memory: {two / 2**20:.1f} MiB of each of 2 ranks, {five / 2**20:.1f} MiB of 5")
    # Lists that all ranks read whole made this 27 bytes an event.
    assert two - five > (1 / 2 - 1 / 5) * 400000 * 40, (two, five)


def compute():
    """On the software renderer, which the ranks share."""
    command = f"{counts('compute')} --iterations 2 -o"
    run(f"{command} one.nii")
    ranks(2, f"{command} x.nii")
    assert apart("one.nii", "x.nii") < CLOSE


def paper():
    command = f"{counts()} --store yes --truth truth.nii"
    errors = []
    for size, more, number in ((3, "--iterations 10", 1),
                               (2, "--algorithm osem --subsets 2 --iterations 6 --local-iterations 2", 3)):
        steps = iterations(ranks(size, f"{command} {more} --combine paper --json -o p.nii"))
        assert len(steps) == number, steps
        for found in (step["composition"] for step in steps):
            assert len(found["weights"]) == size and abs(sum(found["weights"]) - 1) < 1e-9, found
            assert found["residual"] <= min(found["guess_residuals"]) * (1 + 1e-9), found
            assert found["residual"] <= found["clipped_residual"] * (1 + 1e-6), found
        errors.append(steps[-1]["image_error"])
        # The written image is the one that was weighed: its own projection has that residual.
        run("project --scanner ring.yaml --backend cpu --image p.nii -o y.h5")
        again = residual("y.h5", "d.h5")
        assert again is None or abs(again / steps[-1]["composition"]["clipped_residual"] - 1) < 1e-4
    # Not far from the image of all LORs.
    alone = iterations(run(f"{command} --iterations 10 --json -o one.nii"))
    assert errors[0] < 1.5 * alone[-1]["image_error"], errors


def residual(projected, data):
    """|y - A x|^2 of two HDF5 files of dense data; None where h5py is missing."""
    try:
        import h5py
    except ImportError:
        return None
    with h5py.File(projected) as a, h5py.File(data) as b:
        values = a["lor/values"][...].astype(float)
        values[b["lor/index"][...] if "index" in b["lor"] else ...] -= b["lor/values"][...]
        return float((values ** 2).sum())


def distributed():
    """On so coarse a grid the likelihood has one maximum, which ML-EM comes near in hundreds of steps."""
    command = f"{counts(grid='--grid 4,4,3 --voxel-mm 5')} --store yes"
    run(f"{command} --iterations 3000 --quiet -o one.nii")
    for local, size in ((4, 3), (8, 2)) if FULL else ((4, 3),):
        steps = iterations(ranks(size, f"{command} --iterations 1200 --combine distributed --local-iterations {local} "
                                       "--json -o x.nii"))
        print(f"{size} ranks, {len(steps)} exchanges: {apart('one.nii', 'x.nii'):.2g} apart")
        assert apart("one.nii", "x.nii") < 1e-3, apart("one.nii", "x.nii")
        assert len(steps) < 1200 / local + 40, len(steps)
        for a, b in zip(steps, steps[1:]):
            assert b["log_likelihood"] > a["log_likelihood"] - 1e-6 * abs(a["log_likelihood"])
    first_images()
    steps = iterations(ranks(2, f"{events()} --iterations 12 --combine distributed --json -o x.nii"))
    assert steps[-1]["number"] == 12 and len(steps) < 7
    assert steps[-1]["log_likelihood"] > steps[0]["log_likelihood"]


def first_images():
    """Beside an additive term every scheme begins with what it leaves of the counts, of sparse data and
    of dense: the first iteration, which is ML-EM's, is that of one process."""
    simulate("d.h5", 20000)
    simulate("dense.h5", 300000)
    for data, most in (("d.h5", 15000), ("dense.h5", 200000)):
        simulate("b.h5", most, "--expected", phantom="derenzo")
        command = f"recon {ON_RING} --backend native --data {data} --additive b.h5 --iterations 1 --json"
        one = iterations(run(f"{command} -o one.nii"))[0]
        for scheme in ("exact", "distributed"):
            step = iterations(ranks(2, f"{command} --combine {scheme} -o x.nii"))[0]
            assert abs(step["estimated_counts"] / step["measured_counts"] - 1) < 1e-4, (data, scheme, step)
            assert abs(step["log_likelihood"] / one["log_likelihood"] - 1) < 1e-6, (one, step)
            assert apart("one.nii", "x.nii") < CLOSE, (data, scheme, apart("one.nii", "x.nii"))


def other_inputs():
    """Files of the same names that hold other values."""
    for command, file, what in ((f"{counts()} --efficiencies e.txt", "e.txt", "efficiencies"),
                                (f"{events()} --sensitivity-lines 5000 --additive b.h5", "b.h5",
                                 "what is known beside events")):
        for value, resume, code in ((1, "", 0), (2, "--resume", 2)):
            if file == "e.txt":
                Path(file).write_text(f"{value}\n" * 128)
            else:
                simulate(file, 100 * value, "--expected")
            done = run(f"{command} --iterations {1 + value} --checkpoint other.h5 {resume} -o x.nii", code)
        assert f"other contents of: {what}" in done.stderr, done.stderr
        os.remove("other.h5")


def resume():
    plain = f"{counts()} --deterministic"
    command, go_on = f"{plain} --algorithm osem --subsets 2", "--iterations 7 --checkpoint c.h5 --resume -o x.nii"
    ranks(3, f"{command} --iterations 7 -o whole.nii")
    ranks(3, f"{command} --iterations 5 --checkpoint c.h5 --checkpoint-every 2 -o x.nii")
    raw = Path("c.h5").read_bytes()
    for size in (3, 2, 1):
        Path("c.h5").write_bytes(raw)
        done = ranks(size, f"{command} {go_on}")
        assert "goes on after iteration 4, of 3 ranks" in done.stderr, done.stderr
        assert apart("whole.nii", "x.nii") < (0 if size == 3 else CLOSE) + 1e-12
    Path("c.h5").write_bytes(raw)
    done = run(f"{plain} --relaxation 0.5 --algorithm ramla --subsets 2 {go_on}", code=2)
    assert "it was begun with algorithm osem, and now it is algorithm ramla" in done.stderr
    simulate("d.h5", 20000, "--seed 2")
    says_once(ranks(2, f"{command} {go_on}", code=2), "other contents of: measurement")
    other_inputs()
    Path("c.h5").write_bytes(raw)
    # An image to start from, whatever the rest is; it knows how many iterations made it.
    steps = iterations(run(f"{plain} --iterations 1 --initial c.h5 --json -o x.nii"))
    assert steps[0]["number"] == 5, steps
    os.remove("c.h5")
    done = run(f"{command} --iterations 2 --checkpoint c.h5 --resume -o x.nii")
    assert "begins with the first iteration" in done.stderr


def goes_on(size, command, checkpoint_at, every):
    """The image of a run that goes on from a checkpoint made by as many ranks: bit for bit the whole one."""
    Path("c.h5").unlink(missing_ok=True)
    again = f"{command} --checkpoint c.h5 --resume -o x.nii"
    ranks(size, f"{command} --checkpoint c.h5 --checkpoint-every {every} -o whole.nii")
    raw = Path("c.h5").read_bytes()
    done = ranks(size, again)
    assert f"goes on after iteration {checkpoint_at}" in done.stderr, done.stderr
    assert image("whole.nii") == image("x.nii"), (command, apart("whole.nii", "x.nii"))
    Path("c.h5").write_bytes(raw)
    return again


def schemes():
    """Checkpoints of guesses, amid them and where they were composed, and of distributed ML-EM."""
    command = f"{counts()} --deterministic"
    guess = f"{command} --combine paper --local-iterations 2 --iterations 5"
    goes_on(3, guess, 3, 3)
    says_once(ranks(2, goes_on(3, guess, 4, 4), code=2), "start 3 ranks and not 2")
    simulate("b.h5", 15000, "--expected", phantom="derenzo")
    goes_on(2, f"{command} --combine distributed --additive b.h5 --iterations 4", 3, 3)
    done = ranks(2, goes_on(3, f"{command} --combine distributed --iterations 12", 10, 5))
    assert "take another way to the same image" in done.stderr, done.stderr
    assert apart("whole.nii", "x.nii") < 0.05, apart("whole.nii", "x.nii")
    done = ranks(3, f"{command} --iterations 12 --checkpoint c.h5 --resume -o x.nii", code=2)
    assert "begun with combine distributed, local iterations 4, and now it is combine exact" in done.stderr, done.stderr


def frames():
    """Checkpoints of frames and of coefficients of blobs, of one process and of several."""
    ends()
    listmode = f"{events()} --sensitivity-lines 20000"
    run(goes_on(2, f"{listmode} --blobs --iterations 5", 3, 3))
    assert apart("whole.nii", "x.nii") < CLOSE, apart("whole.nii", "x.nii")
    command = f"{listmode} --frames 20,20,20 --algorithm osem --subsets 2"
    os.remove("c.h5")
    run(f"{command} --iterations 5 -o f.nii")
    ranks(3, f"{command} --iterations 5 --checkpoint c.h5 --checkpoint-every 4 -o g.nii")
    raw, made = Path("c.h5").read_bytes(), image("g-3.nii")
    for k in (1, 2, 3):
        assert apart(f"f-{k}.nii", f"g-{k}.nii") < CLOSE
    again = f"{command} --iterations 5 --checkpoint c.h5 --resume -o g.nii"
    for size in (3, 1):
        Path("c.h5").write_bytes(raw)
        os.remove("g-3.nii")
        done = ranks(size, again)
        assert "goes on after iteration 4 of frame 3, of 3 ranks" in done.stderr, done.stderr
        assert image("g-3.nii") == made if size > 1 else apart("f-3.nii", "g-3.nii") < CLOSE
    # The last iteration of a frame is there, and its image may have been lost.
    os.remove("g-3.nii")
    run(again)
    assert apart("f-3.nii", "g-3.nii") < CLOSE
    os.remove("g-1.nii")
    says_once(ranks(2, again, code=3), "the image of frame 1", "is missing")
    frames_killed(f"{command} --iterations 60")


def begin(size, command, until, step_s):
    """The running ranks, once there is a file."""
    job = subprocess.Popen([MPIRUN, "-n", str(size), program, *command.split()], env=ENVIRONMENT,
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    last = time.monotonic() + HANG_S
    while not Path(until).exists():
        assert time.monotonic() < last and job.poll() is None, job.poll()
        time.sleep(step_s)
    return job


def frames_killed(command):
    """Killed once the first frame is there: the frames that follow that of the checkpoint are begun."""
    ranks(2, f"{command} --quiet -o w.nii")
    for name in ("c.h5", "g-1.nii"):
        Path(name).unlink(missing_ok=True)
    job = begin(2, f"{command} --quiet --checkpoint c.h5 --checkpoint-every 7 -o g.nii", "g-1.nii", 0.001)
    os.kill(children(job.pid)[0], signal.SIGKILL)
    job.communicate(timeout=30)
    assert job.returncode != 0
    done = ranks(2, f"{command} --checkpoint c.h5 --resume -o g.nii")
    assert re.search(r"goes on after iteration \d+ of frame [123]", done.stderr), done.stderr
    for k in (1, 2, 3):
        assert image(f"w-{k}.nii") == image(f"g-{k}.nii"), k


def children(pid):
    found = subprocess.run(["ps", "--ppid", str(pid), "-o", "pid="], capture_output=True, text=True)
    return [int(word) for word in found.stdout.split()]


def kill():
    """A rank that dies ends all, soon, with a code; what is on the disk is whole, and goes on to the
    image of a run that was not killed."""
    command = f"{counts()} --deterministic --algorithm osem --subsets 3 --quiet"
    checkpoint = "--checkpoint c.h5 --checkpoint-every 5"
    for moment in range(20 if FULL else 1):
        Path("c.h5").unlink(missing_ok=True)
        kill_once(f"{command} --iterations 1000000 {checkpoint} -o x.nii", moment)
        done = run(f"{command} --iterations 1 {checkpoint} --resume -o x.nii", code=2)
        made = int(re.search(r"has (\d+) iterations already", done.stderr).group(1))
        assert made % 5 == 0 and made > 0, done.stderr
        raw, more = Path("c.h5").read_bytes(), f"{command} --iterations {made + 3}"
        ranks(3, f"{more} -o whole.nii")
        ranks(3, f"{more} {checkpoint} --resume -o x.nii")
        assert image("whole.nii") == image("x.nii"), made
        Path("c.h5").write_bytes(raw)
        ranks(2, f"{more} {checkpoint} --resume -o x.nii")
        assert apart("whole.nii", "x.nii") < CLOSE, made


def kill_once(command, moment):
    job = begin(3, command, "c.h5", 0.01)
    random.seed(moment)
    time.sleep(0.3 * random.random())
    victims = children(job.pid)
    assert len(victims) == 3, victims
    os.kill(random.choice(victims), signal.SIGKILL)
    killed = time.monotonic()
    said = job.communicate(timeout=30)[1]
    assert job.returncode != 0 and "signal 9" in said, (job.returncode, said)
    while any(Path(f"/proc/{victim}").exists() for victim in victims):
        assert time.monotonic() < killed + 30, "a rank lives on"
        time.sleep(0.01)
    print(f"ended {time.monotonic() - killed:.1f} s after a rank was killed")


def mistakes():
    """One message, of one rank, which names itself; the same exit code as of one process."""
    command = counts()
    cases = ((2, "know of no prior", "--combine paper --algorithm bsrem -o x.nii"),
             (3, "rank 0 of 3", "--initial missing.nii -o x.nii"),
             (2, "subsets", "--algorithm osem --subsets 999 -o x.nii"), (None, "rank 0 of 3", "-o /nowhere/x.nii"))
    for code, word, more in cases if FULL else cases[:2]:
        says_once(ranks(3, f"{command} {more}", code=code), word)
    Path("two.yaml").write_text(RING.replace("modules: 8", "modules: 3"))
    two = f"--scanner two.yaml {GRID} --backend native"
    run(f"simulate {two} --phantom spheres --counts 2000 -o two.h5")
    says_once(ranks(5, f"recon {two} --data two.h5 -o x.nii", code=2), "start fewer ranks")
    alike()
    done = run(f"{command} --combine paper -o x.nii", code=2)
    assert "mpirun" in done.stderr
    if os.path.exists("/dev/full"):
        os.symlink("/dev/full", "full.nii")
        says_once(ranks(2, f"{command} --iterations 1 -o full.nii", code=None), "rank 0 of 2")
    # Work that is not shared is done by none of several, but for parts.
    for alone in (f"sensitivity {ON_RING} -o s.nii", "matrix --scanner ring.yaml --grid 2,2,1 --voxel-mm 2 -o s.nii",
                  "info", "demo -o s.nii"):
        says_once(ranks(2, alone, code=2), f"{alone.split()[0]} does not share its work: each of the 2 ranks")
        assert not Path("s.nii").exists()
    assert ranks(2, "sensitivity --help").stdout.count("usage:") == 1
    parts = f'"{program}" matrix --scanner ring.yaml --grid 4,4,2 --voxel-mm 2 --backend cpu ' \
            '--part $((OMPI_COMM_WORLD_RANK + 1))/2 -o part$OMPI_COMM_WORLD_RANK.h5'
    mpirun(program, 2, "sh", "-c", parts)
    run("matrix join part0.h5 part1.h5 -o whole.h5")


def alike():
    """Ranks that read different files, or compute by different numbers (mpirun's MPMD), compute nothing:
    what differs is named."""
    command = counts()
    simulate("e.h5", 20000, "--seed 5")
    Path("one.txt").write_text("1\n" * 128)
    Path("other.txt").write_text("1\n" * 127 + "1.01\n")
    for name, value, voxel_mm in (("one", 0.004, 2), ("other", 0.005, 2), ("wide", 0.004, 2.5)):
        write_nifti(f"{name}.nii", (12, 11, 5), (voxel_mm,) * 3, [value] * 660)
    Path("wide.yaml").write_text(RING.replace("3.8, 3.8", "3.8, 3.7"))
    listmode, ramla = events(), f"{command} --algorithm ramla --subsets 2"
    like = command.replace(GRID, "--like one.nii")
    mu = "--mu one.nii --mu-unit 1/mm"
    # rank 0's command; what another one has instead, and more; what is said
    cases = ((command, ("d.h5", "e.h5"), "another measurement"),
             (command, ("native", "cpu"), "another --backend than"),
             (f"{ramla} --relaxation 0.5", ("0.5", "0.25"), "another --relaxation than"),
             (ramla, ("ramla", "ramla --psf-mm 3"), "another --psf-mm than that of rank 0: 3 here"),
             (command, ("ring.yaml", "wide.yaml"), "another scanner"), (like, ("one.nii", "wide.nii"), "another grid"),
             (listmode, ("recon", "recon --sensitivity-lines 999"), "another --sensitivity-lines than"),
             (listmode, ("recon", "recon --tube-mm 5"), "another --tube-mm than"),
             (f"{command} --efficiencies one.txt", ("one.txt", "other.txt"), "another list of efficiencies"),
             (f"{command} --initial one.nii", ("one.nii", "other.nii"), "another image to start from"),
             (f"{command} {mu}", ("one.nii", "other.nii"), "another map of attenuation"),
             (f"{listmode} {mu}", ("one.nii", "other.nii"), "another map of attenuation"))
    for one, change, word in cases if FULL else cases[::2]:
        refused([program, *f"{one} -o x.nii".split()], [program, *f"{one.replace(*change)} -o x.nii".split()], 3,
                "rank 1 of 2", word)
        assert not Path("x.nii").exists()
    # Each may have its own names, and its own threads.
    shutil.copy("one.txt", "same.txt")
    both = [[program, *f"{command} --efficiencies {name} --iterations 1 --threads {n} -o x.nii".split()]
            for name, n in (("one.txt", 1), ("same.txt", 2))]
    subprocess.run([MPIRUN, "-n", "1", *both[0], ":", "-n", "1", *both[1]], env=ENVIRONMENT, check=True,
                   capture_output=True, timeout=HANG_S)


def refused(one, other, code, *words, **more):
    """Rank 0 runs one command and rank 1 another: one message, of a rank that is named."""
    done = subprocess.run([MPIRUN, "-n", "1", *map(str, one), ":", "-n", "1", *map(str, other)], env=ENVIRONMENT | more,
                          capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == code, (done.returncode, done.stderr)
    says_once(done, *words)


def another_version(target):
    """A copy of the program and its plugins that says it was built from something else."""
    mark = re.compile(rb"\d+\.\d+\.\d+, build ([0-9a-f]+)")
    for name in (Path(program).name, "lr_mpi.so"):
        raw = (Path(program).parent / name).read_bytes()
        for found in set(mark.findall(raw)):
            raw = raw.replace(b", build " + found, b", build " + found[::-1])
        (target / name).write_bytes(raw)
        (target / name).chmod(0o755)
    return target / Path(program).name


def faults():
    """What only one rank meets: another version, a full disk, a device without memory; and pieces()."""
    pieces()
    command = counts()
    good = [program, *f"{command} --iterations 2 -o x.nii".split()]
    other = Path("other").resolve()
    other.mkdir()
    refused(good, ["env", f"LORASTER_PLUGINS={other}", another_version(other), *good[1:]], 3, "rank 1 of 2",
            "another version of LORaster")
    # Rank 0 alone writes: its files may not be longer than a block, which memory that MPI or HDF5's
    # reader shares would be.
    good = [program, *f"{events()} --iterations 2 --sensitivity-lines 10000 -o x.nii".split()]
    by_wire = {"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo"}
    full, checkpoint = ["sh", "-c", 'ulimit -f 1 && exec "$@"', "sh", *good], ["--checkpoint", "c.h5"]
    refused(full, good, 1, "rank 0 of 2", "x.nii", **by_wire)
    refused([*full, *checkpoint], [*good, *checkpoint], 1, "rank 0 of 2", "c.h5", "goes on", "x.nii", **by_wire)
    assert not Path("c.h5").exists() and not Path("x.nii").exists()
    if "FAIL_GL" in os.environ:
        gl = [program, *f"{counts('compute')} --iterations 2 -o x.nii".split()]
        library = preloadable(os.environ["FAIL_GL"], atexit.register)
        # From its 20th buffer on; the device has made some, trials and projections make hundreds.
        no_memory = ["env", f"LD_PRELOAD={library}", "INJECT_KIND=gl", "INJECT_AT=20",
                     "INJECT_NAME=glNamedBufferStorage", "INJECT_EVER=1",
                     f"ASAN_OPTIONS={ENVIRONMENT['ASAN_OPTIONS']}:verify_asan_link_order=0"]
        refused(gl, [*no_memory, *gl], 1, "rank 1 of 2", "memory")


def pieces():
    """More ranks than views, or than events of a subset, or than modules' pairs (mistakes())."""
    for command, word in ((deposit("12,12,5", 2), "3 ranks for 2 views"),
                          (f"{events()} --algorithm osem --subsets 1500", "some would have none")):
        says_once(ranks(3, f"{command} -o x.nii", code=2), word, "rank 0 of 3")


def bench():
    """What the ranks are timed at, and the cluster paper's section V at a size of seconds."""
    command = "bench cluster --scanner ring.yaml --voxels 6 --voxel-mm 4 --counts 5000 --iterations 4 --store " \
              "--backend native --json"
    errors = []
    for size, more, wanted in ((1, "", ["exact"]), (2, "--weak -o bench.json", ["exact", "paper", "distributed"])):
        found = json.loads(ranks(size, f"{command} {more}").stdout)
        assert size == 1 or json.loads(Path("bench.json").read_text())["results"] == found["results"]
        assert [scheme["scheme"] for scheme in found["results"]] == wanted
        for scheme in found["results"]:
            assert scheme["iterations"][-1]["number"] == 4
            assert scheme["project_seconds"] > 0 and (size == 1 or scheme["sent_bytes"] > 0)
        assert found["grid"]["size"] == [6, 6, 6 * size]
        errors.append(found["results"][0]["iterations"][-1]["image_error"])
    strong = json.loads(ranks(2, f"{command} --combine exact").stdout)
    again = strong["results"][0]["iterations"][-1]["image_error"]
    assert abs(again / errors[0] - 1) < 1e-4, "the counts depend on the number of ranks"
    script = Path(__file__).resolve().parents[2] / "tools/reproduce/cluster_ranks.sh"
    done = subprocess.run([script, "--program", program, *"--out out --no-figures --ranks 2 --iterations 4".split()],
                          env=ENVIRONMENT | {"PYTHON": sys.executable}, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Residual: " in Path("out/report.txt").read_text()


run_topics({topic.__name__: topic for topic in (bench, own, memory, exact, families, compute, paper, distributed,
                                                resume, schemes, frames, kill, mistakes, faults)})
