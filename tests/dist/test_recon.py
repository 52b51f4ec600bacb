#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""recon by several ranks: the images of one process, guesses composed, and what goes wrong.

usage: test_recon.py LORASTER RANKS TOPIC"""
import array, atexit, json, os, random, re, shutil, signal, struct, subprocess, sys, tempfile, time
from pathlib import Path

from ranks import FULL, GRID, HANG_S, MPIRUN, RING, environment, mpirun, need_mpirun, preloadable, run_topics, \
    write_nifti

program = sys.argv[1]
need_mpirun(program)
folder = tempfile.TemporaryDirectory()
ENVIRONMENT = dict(environment(program), LORASTER_LIBEXEC=str(Path(program).parent))
os.environ["LORASTER_LIBEXEC"] = str(Path(program).parent)

# Sums of floats over all LORs, taken in parts, differ by some 1e-7 in each of ten iterations.
CLOSE = 1e-5


def path(name):
    return Path(folder.name) / name


def run(*words, code=0):
    done = subprocess.run([program, *map(str, words)], env=ENVIRONMENT, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stderr}"
    return done


def ranks(count, *words, code=0, before=()):
    return mpirun(program, count, *before, program, *words, code=code)


def image(name):
    return array.array("f", path(name).read_bytes()[352:])


def apart(a, b):
    a, b = image(a), image(b)
    return max(abs(x - y) for x, y in zip(a, b)) / max(a)


def ring():
    path("ring.yaml").write_text(RING)
    return ["--scanner", path("ring.yaml")]


def simulate(name, number, *more, phantom="spheres"):
    """A file of so many counts, or events with a time of flight."""
    backend = [] if "--tof-ps" in more else ["--backend", "native"]
    run("simulate", *ring(), *GRID, "--phantom", phantom, "--counts", number, *backend, *more, "-o", path(name))


def iterations(done):
    """The figures that a run with --json tells of each iteration."""
    return json.loads(done.stdout)["iterations"]


def says_once(done, *words):
    assert done.stderr.count("loraster: error") == 1, done.stderr
    assert all(word in done.stderr for word in words), (words, done.stderr)


def counts():
    """The arguments of a reconstruction from LOR data."""
    words = ring()
    simulate("d.h5", 20000, "--truth", path("truth.nii"))
    return ["recon", *words, *GRID, "--data", path("d.h5"), "--backend", "native"]


def events():
    words = ring()
    simulate("e.petsird", 3000, "--tof-ps", 400)
    return ["recon", "--operator", "listmode", *words, *GRID, "--events", path("e.petsird"), "--backend", "native"]


def histo():
    events()
    run("direct", "deposit", "--events", path("e.petsird"), "--grid", "20,20,5", "--voxel-mm", 2,
        "--azimuths", 6, "--tilts", 1, "--backend", "cpu", "-o", path("h.h5"))
    return ["recon", "--operator", "direct", "--data", path("h.h5"), "--backend", "cpu", "--fit",
            "--tof-ps", 50, "--radial-mm", 4, "--axial-mm", 4]


def compare(words, sizes, *more):
    """Ten iterations of one process and of several ranks."""
    words = [*words, "--iterations", 10, *more]
    run(*words, "-o", path("one.nii"))
    for size in sizes:
        ranks(size, *words, "-o", path("x.nii"))
        assert apart("one.nii", "x.nii") < CLOSE, f"{size} ranks: {apart('one.nii', 'x.nii')}"


def exact():
    words = [*counts(), "--deterministic"]
    compare(words, (2, 3, 5), "--algorithm", "osem", "--subsets", 4)
    compare(words, (2,), "--algorithm", "ramla", "--subsets", 4)
    bsrem = ["--algorithm", "bsrem", "--subsets", 3, "--prior", "rdp", "--beta", 1e-3, "--psf-mm", 3]
    compare(words, (2,), *bsrem)
    ranks(2, *words, *bsrem, "--iterations", 10, "-o", path("b.nii"))
    assert image("x.nii") == image("b.nii"), "two runs of two ranks differ"
    found = json.loads(ranks(3, *words, "--iterations", 2, "--json", "-o", path("a.nii")).stdout)
    alone = json.loads(run(*words, "--iterations", 2, "--json", "-o", path("a.nii")).stdout)
    assert found["ranks"]["count"] == 3 and found["iterations"][1]["sent_bytes"] > 0
    for key in ("log_likelihood", "measured_counts", "estimated_counts", "sensitive_counts"):
        a, b = found["iterations"][1][key], alone["iterations"][1][key]
        assert abs(a - b) <= 1e-6 * abs(b), f"{key}: {a} and {b}"


    meetings([*words, "--algorithm", "osem", "--subsets", 4])


def meetings(words):
    """In an update ranks meet three times: to sum, to gather, and for the fit."""
    if "MPI_COUNTS" not in os.environ:
        return
    library = preloadable(os.environ["MPI_COUNTS"], atexit.register)
    options = f"{ENVIRONMENT['ASAN_OPTIONS']}:verify_asan_link_order=0"
    counted = []
    for iterations in (2, 4):
        done = ranks(2, *words, "--iterations", iterations, "-o", path("x.nii"),
                     before=["env", f"LD_PRELOAD={library}", f"ASAN_OPTIONS={options}"])
        counted.append(int(re.search(r"meetings: (\d+)", done.stderr).group(1)))
    assert counted[1] - counted[0] == 2 * 4 * 3, counted


def families():
    listmode, direct = events(), histo()
    compare(listmode, (3,), "--algorithm", "osem", "--subsets", 3)
    compare(direct, (2,), "--algorithm", "ramla", "--subsets", 3)
    compare(direct, (2,), "--algorithm", "ramla", "--views-per-block", 2)
    if not FULL:
        return
    for words in (listmode, direct, [*counts(), "--deterministic"]):
        for algorithm in (["mlem"], ["osem", "--subsets", 2], ["ramla", "--subsets", 4], ["bsrem", "--subsets", 2]):
            compare(words, (2, 3, 5), "--algorithm", *algorithm)
    compare(counts()[:-2] + ["--backend", "cpu"], (2, 3, 5))
    compare(counts()[:-2] + ["--backend", "compute"], (2, 3, 5), "--algorithm", "osem")
    compare(listmode, (2,), "--kernel", "exact")
    compare(listmode, (2,), "--blobs")
    frames = [*listmode, "--frames", "20,20,20", "--iterations", 5]
    run(*frames, "-o", path("f.nii"))
    ranks(3, *frames, "-o", path("g.nii"))
    for k in (1, 2, 3):
        assert apart(f"f-{k}.nii", f"g-{k}.nii") < CLOSE


def siemens():
    """Siemens list mode of random addresses, two in seven of them delayeds, with time marks."""
    words, draw = ring(), random.Random(4)
    bins, views, planes = 24, 20, 16 # 8 modules of 4 crystals and a gap around, 4 rings
    list_words = []
    for k in range(4000):
        if k % 40 == 0:
            list_words.append(1 << 31 | k)
        address = draw.randrange(bins * views * planes)
        list_words.append(address if k % 7 < 2 else 1 << 30 | address)
    path("s.l").write_bytes(struct.pack(f"<{len(list_words)}I", *list_words))
    path("s.l.hdr").write_text(f"!INTERFILE:=\nnumber of rings:=4\n%number of projections:={bins}\n"
        f"%number of views:={views}\n%maximum ring difference:=3\n%axial compression:=1\n")
    return [*words, *GRID, "--events", path("s.l"), "--backend", "native"]


def own():
    """What each rank keeps of files of every kind, replicates and delayeds too, is all together."""
    direct = [*histo(), "--algorithm", "osem", "--subsets", 2]
    listmode = [*events(), "--sensitivity-lines", 5000]
    dense = ["recon", *ring(), *GRID, "--data", path("dense.h5"), "--backend", "native"]
    delayed = siemens()
    simulate("dense.h5", 300000)
    seed = ["--bootstrap", 7]
    cases = [[*direct, *seed], [*listmode, "--algorithm", "osem", "--subsets", 3, *seed],
             [*counts(), *seed], [*dense, "--additive", path("d.h5")],
             ["recon", *delayed, "--algorithm", "osem", "--subsets", 2],
             ["recon", "--operator", "listmode", *delayed, "--frames", "2,1.5", "--sensitivity-lines", 5000],
             ["recon", "--operator", "listmode", *delayed, "--frames", "1,1.5", *seed, "--sensitivity-lines", 5000]]
    for words in cases:
        words = [*words, "--iterations", 4]
        alone = run(*words, "--json", "-o", path("one.nii"))
        together = ranks(3, *words, "--json", "-o", path("x.nii"))
        assert sentences(alone) == sentences(together), (alone.stderr, together.stderr)
        one, many = json.loads(alone.stdout), json.loads(together.stdout)
        for name in ("-1.nii", "-2.nii") if "--frames" in words else (".nii",):
            assert apart(f"one{name}", f"x{name}") < CLOSE, (words, apart(f"one{name}", f"x{name}"))
        assert one.get("events") == many.get("events"), (one["events"], many["events"])
        assert one.get("randoms") == many.get("randoms"), (one["randoms"], many["randoms"])
        peaks = many["ranks"]["peak_memory_bytes"]
        assert len(peaks) == 3 and min(peaks) > 1e6, peaks


def sentences(done):
    """What is said of a replicate and of the end of frames."""
    return re.findall(r"bootstrap replicate of.*|frame \d+ is from.*", done.stderr)


def ends():
    """Of CASToR the header tells how long a measurement was, whatever its last event is."""
    words = [*events(), "--sensitivity-lines", 5000, "--iterations", 1, "--frames", "50,45"]
    run("events", "convert", path("e.petsird"), path("e.Cdh"), "--scanner", path("ring.yaml"))
    header = path("e.Cdh").read_text()
    longer = re.sub(r"(Duration \(s\): *)\S+", r"\g<1>100", header)
    assert longer != header, header
    path("e.Cdh").write_text(longer)
    for name, count in (("e.petsird", 1), ("e.Cdh", 0)):
        words[words.index("--events") + 1] = path(name)
        said = [sentences(run(*words, "-o", path("f.nii"))), sentences(ranks(2, *words, "-o", path("g.nii")))]
        assert said[0] == said[1] and len(said[0]) == count, said


def memory():
    """What a rank has falls with their number: of each event 24 bytes in a list, and as much in an operator."""
    words = ring()
    simulate("e.petsird", 400000, "--tof-ps", 400)
    words = ["recon", "--operator", "listmode", *words, *GRID, "--events", path("e.petsird"),
             "--backend", "native", "--sensitivity-lines", 5000, "--iterations", 1, "--json", "-o", path("x.nii")]
    two, five = (max(json.loads(ranks(size, *words).stdout)["ranks"]["peak_memory_bytes"]) for size in (2, 5))
    print(f"peak memory: {two / 2**20:.1f} MiB of each of 2 ranks, {five / 2**20:.1f} MiB of 5")
    # Lists that all ranks read whole made this 27 bytes an event.
    assert two - five > (1 / 2 - 1 / 5) * 400000 * 40, (two, five)


def compute():
    """On the software renderer, which the ranks share."""
    words = [*counts()[:-2], "--backend", "compute", "--iterations", 2]
    run(*words, "-o", path("one.nii"))
    ranks(2, *words, "-o", path("x.nii"))
    assert apart("one.nii", "x.nii") < CLOSE


def paper():
    words = [*counts(), "--store", "yes", "--truth", path("truth.nii")]
    errors = []
    for size, more in ((3, ["--iterations", 10]), (2, ["--algorithm", "osem", "--subsets", 2, "--iterations", 6,
                            "--local-iterations", 2])):
        steps = iterations(ranks(size, *words, *more, "--combine", "paper", "--json", "-o", path("p.nii")))
        assert len(steps) == (1 if size == 3 else 3), steps
        for step in steps:
            found = step["composition"]
            assert len(found["weights"]) == size
            assert abs(sum(found["weights"]) - 1) < 1e-9
            assert found["residual"] <= min(found["guess_residuals"]) * (1 + 1e-9), found
            assert found["residual"] <= found["clipped_residual"] * (1 + 1e-6), found
        errors.append(steps[-1]["image_error"])
        # The written image is the one that was weighed: its own projection has that residual.
        run("project", *ring(), "--backend", "cpu", "--image", path("p.nii"), "-o", path("y.h5"))
        again = residual(path("y.h5"), path("d.h5"))
        assert again is None or abs(again / steps[-1]["composition"]["clipped_residual"] - 1) < 1e-4
    # Not far from the image of all LORs.
    alone = json.loads(run(*words, "--iterations", 10, "--json", "-o", path("one.nii")).stdout)
    assert errors[0] < 1.5 * alone["iterations"][-1]["image_error"], errors


def residual(projected, data):
    """|y - A x|^2 of two HDF5 files of dense data; None where h5py is missing."""
    try:
        import h5py
    except ImportError:
        return None
    with h5py.File(projected) as a, h5py.File(data) as b:
        values = a["lor/values"][...].astype(float)
        if "index" in b["lor"]:
            values[b["lor/index"][...]] -= b["lor/values"][...]
        else:
            values -= b["lor/values"][...]
        return float((values ** 2).sum())


def distributed():
    """On so coarse a grid the likelihood has one maximum, which ML-EM comes near in hundreds of steps."""
    words = [*counts(), "--store", "yes"]
    at = words.index("--grid")
    words[at:at + 4] = ["--grid", "4,4,3", "--voxel-mm", "5"]
    run(*words, "--iterations", 3000, "--quiet", "-o", path("one.nii"))
    for local, size in ((4, 3), (8, 2)) if FULL else ((4, 3),):
        done = ranks(size, *words, "--iterations", 1200, "--combine", "distributed",
                     "--local-iterations", local, "--json", "-o", path("x.nii"))
        steps = iterations(done)
        print(f"{size} ranks, {len(steps)} exchanges: {apart('one.nii', 'x.nii'):.2g} apart")
        assert apart("one.nii", "x.nii") < 1e-3, apart("one.nii", "x.nii")
        assert len(steps) < 1200 / local + 40, len(steps)
        for a, b in zip(steps, steps[1:]):
            assert b["log_likelihood"] > a["log_likelihood"] - 1e-6 * abs(a["log_likelihood"])
    first_images()
    done = ranks(2, *events(), "--iterations", 12, "--combine", "distributed", "--json", "-o", path("x.nii"))
    steps = iterations(done)
    assert steps[-1]["number"] == 12 and len(steps) < 7
    assert steps[-1]["log_likelihood"] > steps[0]["log_likelihood"]


def first_images():
    """Beside an additive term every scheme begins with what it leaves of the counts, of sparse data and
    of dense: the first iteration, which is ML-EM's, is that of one process."""
    words = counts()
    simulate("dense.h5", 300000)
    for data, most in (("d.h5", 15000), ("dense.h5", 200000)):
        simulate("b.h5", most, "--expected", phantom="derenzo")
        more = [*words, "--data", path(data), "--additive", path("b.h5"), "--iterations", 1, "--json"]
        more.remove(path("d.h5"))
        more.remove("--data")
        one = iterations(run(*more, "-o", path("one.nii")))[0]
        for scheme in ("exact", "distributed"):
            step = iterations(ranks(2, *more, "--combine", scheme, "-o", path("x.nii")))[0]
            found = step["estimated_counts"] / step["measured_counts"]
            assert abs(found - 1) < 1e-4, (data, scheme, step)
            assert abs(step["log_likelihood"] / one["log_likelihood"] - 1) < 1e-6, (one, step)
            assert apart("one.nii", "x.nii") < CLOSE, (data, scheme, apart("one.nii", "x.nii"))


def other_inputs():
    """Files of the same names that hold other values."""
    checkpoint = ["--checkpoint", path("other.h5")]
    listmode = [*events(), "--sensitivity-lines", 5000, "--additive", path("b.h5")]
    efficient = [*counts(), "--efficiencies", path("e.txt")]
    for words, file, what in ((efficient, "e.txt", "efficiencies"), (listmode, "b.h5", "what is known beside events")):
        for value in (1, 2):
            if file == "e.txt":
                path(file).write_text(f"{value}\n" * 128)
            else:
                simulate(file, 100 * value, "--expected")
            more = ["--resume"] if value == 2 else []
            done = run(*words, "--iterations", 1 + value, *checkpoint, *more, "-o", path("x.nii"),
                       code=2 if value == 2 else 0)
        assert f"other contents of: {what}" in done.stderr, done.stderr
        path("other.h5").unlink()


def resume():
    words = [*counts(), "--deterministic", "--algorithm", "osem", "--subsets", 2]
    checkpoint = ["--checkpoint", path("c.h5")]
    ranks(3, *words, "--iterations", 7, "-o", path("whole.nii"))
    ranks(3, *words, "--iterations", 5, *checkpoint, "--checkpoint-every", 2, "-o", path("x.nii"))
    raw = path("c.h5").read_bytes()
    for size in (3, 2, 1):
        path("c.h5").write_bytes(raw)
        more = [*words, "--iterations", 7, *checkpoint, "--resume", "-o", path("x.nii")]
        done = ranks(size, *more) if size > 1 else run(*more)
        assert "goes on after iteration 4, of 3 ranks" in done.stderr, done.stderr
        assert apart("whole.nii", "x.nii") < (0 if size == 3 else CLOSE) + 1e-12
    path("c.h5").write_bytes(raw)
    done = run(*words[:-4], "--relaxation", 0.5, "--algorithm", "ramla", "--subsets", 2,
               "--iterations", 7, *checkpoint, "--resume", "-o", path("x.nii"), code=2)
    assert "it was begun with algorithm osem, and now it is algorithm ramla" in done.stderr
    simulate("d.h5", 20000, "--seed", 2)
    done = ranks(2, *words, "--iterations", 7, *checkpoint, "--resume", "-o", path("x.nii"), code=2)
    says_once(done, "other contents of: measurement")
    other_inputs()
    path("c.h5").write_bytes(raw)
    # An image to start from, whatever the rest is; it knows how many iterations made it.
    steps = iterations(run(*words[:-4], "--iterations", 1, "--initial", path("c.h5"), "--json", "-o", path("x.nii")))
    assert steps[0]["number"] == 5, steps
    path("c.h5").unlink()
    done = run(*words, "--iterations", 2, *checkpoint, "--resume", "-o", path("x.nii"))
    assert "begins with the first iteration" in done.stderr


def goes_on(size, words, checkpoint_at, *more):
    """The image of a run that goes on from a checkpoint made by as many ranks: bit for bit the whole one."""
    checkpoint = ["--checkpoint", path("c.h5")]
    path("c.h5").unlink(missing_ok=True)
    start = ranks if size > 1 else lambda _, *rest, **how: run(*rest, **how)
    start(size, *words, *checkpoint, *more, "-o", path("whole.nii"))
    raw = path("c.h5").read_bytes()
    done = start(size, *words, *checkpoint, "--resume", "-o", path("x.nii"))
    assert f"goes on after iteration {checkpoint_at}" in done.stderr, done.stderr
    assert image("whole.nii") == image("x.nii"), (words, apart("whole.nii", "x.nii"))
    path("c.h5").write_bytes(raw)
    return [*words, *checkpoint, "--resume", "-o", path("x.nii")]


def schemes():
    """Checkpoints of guesses, amid them and where they were composed, and of distributed ML-EM."""
    words = [*counts(), "--deterministic"]
    guess = [*words, "--combine", "paper", "--local-iterations", 2, "--iterations", 5]
    goes_on(3, guess, 3, "--checkpoint-every", 3)
    again = goes_on(3, guess, 4, "--checkpoint-every", 4)
    done = ranks(2, *again, code=2)
    says_once(done, "start 3 ranks and not 2")
    simulate("b.h5", 15000, "--expected", phantom="derenzo")
    goes_on(2, [*words, "--combine", "distributed", "--additive", path("b.h5"), "--iterations", 4],
            3, "--checkpoint-every", 3)
    again = goes_on(3, [*words, "--combine", "distributed", "--iterations", 12], 10, "--checkpoint-every", 5)
    done = ranks(2, *again)
    assert "take another way to the same image" in done.stderr, done.stderr
    assert apart("whole.nii", "x.nii") < 0.05, apart("whole.nii", "x.nii")
    done = ranks(3, *words, "--iterations", 12, *again[-5:], code=2)
    assert "begun with combine distributed, local iterations 4, and now it is combine exact" in \
        done.stderr, done.stderr


def frames():
    """Checkpoints of frames and of coefficients of blobs, of one process and of several."""
    ends()
    listmode = [*events(), "--sensitivity-lines", 20000]
    again = goes_on(2, [*listmode, "--blobs", "--iterations", 5], 3, "--checkpoint-every", 3)
    run(*again)
    assert apart("whole.nii", "x.nii") < CLOSE, apart("whole.nii", "x.nii")
    words = [*listmode, "--frames", "20,20,20", "--algorithm", "osem", "--subsets", 2]
    checkpoint = ["--checkpoint", path("c.h5")]
    path("c.h5").unlink()
    run(*words, "--iterations", 5, "-o", path("f.nii"))
    ranks(3, *words, "--iterations", 5, *checkpoint, "--checkpoint-every", 4, "-o", path("g.nii"))
    raw, made = path("c.h5").read_bytes(), [image(f"g-{k}.nii") for k in (1, 2, 3)]
    for k in (1, 2, 3):
        assert apart(f"f-{k}.nii", f"g-{k}.nii") < CLOSE
    for size in (3, 1):
        path("c.h5").write_bytes(raw)
        path("g-3.nii").unlink()
        again = [*words, "--iterations", 5, *checkpoint, "--resume", "-o", path("g.nii")]
        done = ranks(size, *again) if size > 1 else run(*again)
        assert "goes on after iteration 4 of frame 3, of 3 ranks" in done.stderr, done.stderr
        assert size > 1 or apart("f-3.nii", "g-3.nii") < CLOSE
        assert size == 1 or image("g-3.nii") == made[2]
    # The last iteration of a frame is there, and its image may have been lost.
    path("g-3.nii").unlink()
    run(*again)
    assert apart("f-3.nii", "g-3.nii") < CLOSE
    path("g-1.nii").unlink()
    done = ranks(2, *again, code=3)
    says_once(done, "the image of frame 1", "is missing")
    frames_killed([*words, "--iterations", 60, "--quiet"], checkpoint)


def frames_killed(words, checkpoint):
    """Killed once the first frame is there: the frames that follow that of the checkpoint are begun."""
    ranks(2, *words, "-o", path("w.nii"))
    for name in ("c.h5", "g-1.nii"):
        path(name).unlink(missing_ok=True)
    job = subprocess.Popen([MPIRUN, "-n", "2", program, *map(str, words), *checkpoint, "--checkpoint-every", "7", "-o",
                            path("g.nii")], env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + HANG_S
    while not path("g-1.nii").exists():
        assert time.monotonic() < until and job.poll() is None, job.poll()
        time.sleep(0.001)
    os.kill(children(job.pid)[0], signal.SIGKILL)
    job.wait(timeout=30)
    assert job.returncode != 0
    done = ranks(2, *[word for word in words if word != "--quiet"], *checkpoint, "--resume", "-o", path("g.nii"))
    assert re.search(r"goes on after iteration \d+ of frame [123]", done.stderr), done.stderr
    for k in (1, 2, 3):
        assert image(f"w-{k}.nii") == image(f"g-{k}.nii"), k


def children(pid):
    found = subprocess.run(["ps", "--ppid", str(pid), "-o", "pid="], capture_output=True, text=True)
    return [int(word) for word in found.stdout.split()]


def kill():
    """A rank that dies ends all, soon, with a code; what is on the disk is whole, and goes on to the
    image of a run that was not killed."""
    words = [*counts(), "--deterministic", "--algorithm", "osem", "--subsets", 3, "--quiet"]
    checkpoint = ["--checkpoint", path("c.h5"), "--checkpoint-every", 5]
    for moment in range(20 if FULL else 1):
        path("c.h5").unlink(missing_ok=True)
        kill_once([*words, "--iterations", 1000000, *checkpoint, "-o", path("x.nii")], moment)
        done = run(*words, "--iterations", 1, *checkpoint, "--resume", "-o", path("x.nii"), code=2)
        made = int(re.search(r"has (\d+) iterations already", done.stderr).group(1))
        assert made % 5 == 0 and made > 0, done.stderr
        raw = path("c.h5").read_bytes()
        ranks(3, *words, "--iterations", made + 3, "-o", path("whole.nii"))
        ranks(3, *words, "--iterations", made + 3, *checkpoint, "--resume", "-o", path("x.nii"))
        assert image("whole.nii") == image("x.nii"), made
        path("c.h5").write_bytes(raw)
        ranks(2, *words, "--iterations", made + 3, *checkpoint, "--resume", "-o", path("x.nii"))
        assert apart("whole.nii", "x.nii") < CLOSE, made


def kill_once(words, moment):
    job = subprocess.Popen([MPIRUN, "-n", "3", program, *map(str, words)], env=ENVIRONMENT,
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + HANG_S
    while not path("c.h5").exists():
        assert time.monotonic() < until and job.poll() is None, job.poll()
        time.sleep(0.01)
    random.seed(moment)
    time.sleep(0.3 * random.random())
    victims = children(job.pid)
    assert len(victims) == 3, victims
    os.kill(random.choice(victims), signal.SIGKILL)
    begin = time.monotonic()
    said = job.communicate(timeout=30)[1]
    assert job.returncode != 0 and "signal 9" in said, (job.returncode, said)
    while any(Path(f"/proc/{victim}").exists() for victim in victims):
        assert time.monotonic() < begin + 30, "a rank lives on"
        time.sleep(0.01)
    print(f"ended {time.monotonic() - begin:.1f} s after a rank was killed")


def mistakes():
    """One message, of one rank, which names itself; the same exit code as of one process."""
    words = counts()
    cases = ((2, "know of no prior", ["--combine", "paper", "--algorithm", "bsrem"]),
             (3, "rank 0 of 3", ["--initial", path("missing.nii")]),
             (2, "subsets", ["--algorithm", "osem", "--subsets", 999]), (3, "rank 0 of 3", ["-o", "/nowhere/x.nii"]))
    for code, word, more in cases if FULL else cases[:2]:
        done = ranks(3, *words, *more, *([] if "-o" in more else ["-o", path("x.nii")]), code=None)
        says_once(done, word)
        assert done.returncode == (code if "/nowhere/x.nii" not in more else done.returncode)
    two = path("two.yaml")
    two.write_text(RING.replace("modules: 8", "modules: 3"))
    run("simulate", "--scanner", two, *GRID, "--phantom", "spheres", "--counts", 2000, "--backend",
        "native", "-o", path("two.h5"))
    done = ranks(5, "recon", "--scanner", two, *GRID, "--data", path("two.h5"), "--backend", "native", "-o",
                 path("x.nii"), code=2)
    says_once(done, "start fewer ranks")
    alike()
    done = run(*words, "--combine", "paper", "-o", path("x.nii"), code=2)
    assert "mpirun" in done.stderr
    if os.path.exists("/dev/full"):
        os.symlink("/dev/full", path("full.nii"))
        done = ranks(2, *words, "--iterations", 1, "-o", path("full.nii"), code=None)
        says_once(done, "rank 0 of 2")
    # Work that is not shared is done by none of several, but for parts.
    alone = ["sensitivity", *ring(), *GRID, "-o", path("s.nii")]
    for verb in (alone, ["matrix", *ring(), "--grid", "2,2,1", "--voxel-mm", 2, "-o", path("s.nii")],
                 ["info"], ["demo", "-o", path("s.nii")]):
        done = ranks(2, *verb, code=2)
        says_once(done, f"{verb[0]} does not share its work: each of the 2 ranks")
        assert not path("s.nii").exists()
    assert ranks(2, "sensitivity", "--help").stdout.count("usage:") == 1
    parts = f'"{program}" matrix --scanner {path("ring.yaml")} --grid 4,4,2 --voxel-mm 2 --backend cpu ' \
            f'--part $((OMPI_COMM_WORLD_RANK + 1))/2 -o {path("part")}$OMPI_COMM_WORLD_RANK.h5'
    mpirun(program, 2, "sh", "-c", parts)
    run("matrix", "join", path("part0.h5"), path("part1.h5"), "-o", path("whole.h5"))


def alike():
    """Ranks that read different files, or compute by different numbers (mpirun's MPMD), compute nothing:
    what differs is named."""
    words = counts()
    simulate("e.h5", 20000, "--seed", 5)
    path("one.txt").write_text("1\n" * 128)
    path("other.txt").write_text("1\n" * 127 + "1.01\n")
    for name, value, voxel_mm in (("one", 0.004, 2), ("other", 0.005, 2), ("wide", 0.004, 2.5)):
        write_nifti(path(f"{name}.nii"), (12, 11, 5), (voxel_mm,) * 3, [value] * 660)
    path("wide.yaml").write_text(RING.replace("3.8, 3.8", "3.8, 3.7"))
    listmode = events()
    osem = [*words, "--algorithm", "ramla", "--subsets", 2]
    like = [word for word in words if word not in GRID]
    cases = ((words, [*words[:-3], path("e.h5"), *words[-2:]], "another measurement"),
             (words, [*words[:-1], "cpu"], "another --backend than"),
             ([*osem, "--relaxation", 0.5], [*osem, "--relaxation", 0.25], "another --relaxation than"),
             (osem, [*osem, "--psf-mm", 3], "another --psf-mm than that of rank 0: 3 here"),
             (words, [*words[:2], path("wide.yaml"), *words[3:]], "another scanner"),
             ([*like, "--like", path("one.nii")], [*like, "--like", path("wide.nii")], "another grid"),
             (listmode, [*listmode, "--sensitivity-lines", 999], "another --sensitivity-lines than"),
             (listmode, [*listmode, "--tube-mm", 5], "another --tube-mm than"),
             *(([*words, option, path("one" + ending)], [*words, option, path("other" + ending)], word)
               for option, ending, word in (("--efficiencies", ".txt", "another list of efficiencies"),
                                            ("--initial", ".nii", "another image to start from"))),
             *(([*case, "--mu", path("one.nii"), "--mu-unit", "1/mm"],
                [*case, "--mu", path("other.nii"), "--mu-unit", "1/mm"], "another map of attenuation")
               for case in (words, listmode)))
    for one, other, word in cases if FULL else cases[::2]:
        refused([program, *one, "-o", path("x.nii")], [program, *other, "-o", path("x.nii")], 3, "rank 1 of 2", word)
        assert not path("x.nii").exists()
    # Each may have its own names, and its own threads.
    shutil.copy(path("one.txt"), path("same.txt"))
    both = [[program, *map(str, words), "--efficiencies", path(name), "--iterations", "1", "--threads", n, "-o",
             path("x.nii")] for name, n in (("one.txt", "1"), ("same.txt", "2"))]
    subprocess.run([MPIRUN, "-n", "1", *both[0], ":", "-n", "1", *both[1]], env=ENVIRONMENT, check=True,
                   capture_output=True, timeout=HANG_S)


def refused(one, other, code, *words, **more):
    """Rank 0 runs one command and rank 1 another: one message, of a rank that is named."""
    def command(words):
        return ["-n", "1", *map(str, words)]
    done = subprocess.run([MPIRUN, *command(one), ":", *command(other)], env=ENVIRONMENT | more,
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
    words = [*counts(), "--iterations", 2]
    good = [program, *words, "-o", path("x.nii")]
    other = path("other")
    other.mkdir()
    copy = another_version(other)
    refused(good, ["env", f"LORASTER_PLUGINS={other}", copy, *good[1:]], 3, "rank 1 of 2",
            "another version of LORaster")
    # Rank 0 alone writes: its files may not be longer than a block, which memory that MPI or HDF5's
    # reader shares would be.
    good = [program, *events(), "--iterations", 2, "--sensitivity-lines", 10000, "-o", path("x.nii")]
    by_wire = {"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo"}
    full = ["sh", "-c", 'ulimit -f 1 && exec "$@"', "sh", *good]
    refused(full, good, 1, "rank 0 of 2", "x.nii", **by_wire)
    checkpoint = ["--checkpoint", path("c.h5")]
    refused([*full, *checkpoint], [*good, *checkpoint], 1, "rank 0 of 2", "c.h5", "goes on", "x.nii", **by_wire)
    assert not path("c.h5").exists() and not path("x.nii").exists()
    if "FAIL_GL" in os.environ:
        gl = [*words[:-3], "compute", *words[-2:], "-o", path("x.nii")]
        library = preloadable(os.environ["FAIL_GL"], atexit.register)
        # From its 20th buffer on; the device has made some, trials and projections make hundreds.
        no_memory = ["env", f"LD_PRELOAD={library}", "INJECT_KIND=gl", "INJECT_AT=20",
                     "INJECT_NAME=glNamedBufferStorage", "INJECT_EVER=1",
                     f"ASAN_OPTIONS={ENVIRONMENT['ASAN_OPTIONS']}:verify_asan_link_order=0"]
        refused([program, *gl], [*no_memory, program, *gl], 1, "rank 1 of 2", "memory")


def pieces():
    """More ranks than views, or than events of a subset, or than modules' pairs (mistakes())."""
    listmode = events()
    run("direct", "deposit", "--events", path("e.petsird"), "--grid", "12,12,5", "--voxel-mm", 2,
        "--azimuths", 2, "--tilts", 1, "--backend", "cpu", "-o", path("h.h5"))
    direct = ["recon", "--operator", "direct", "--data", path("h.h5"), "--backend", "cpu", "--tof-ps",
              50, "--radial-mm", 4, "--axial-mm", 4]
    for words, word in ((direct, "3 ranks for 2 views"),
                        ([*listmode, "--algorithm", "osem", "--subsets", 1500], "some would have none")):
        says_once(ranks(3, *words, "-o", path("x.nii"), code=2), word, "rank 0 of 3")


def bench():
    """What the ranks are timed at, and the cluster paper's section V at a size of seconds."""
    ring()
    words = ["bench", "cluster", "--scanner", path("ring.yaml"), "--voxels", 6, "--voxel-mm", 4,
             "--counts", 5000, "--iterations", 4, "--store", "--backend", "native", "--json"]
    errors = []
    for size in (1, 2):
        done = run(*words) if size == 1 else ranks(size, *words, "--weak", "-o", path("bench.json"))
        found = json.loads(done.stdout)
        assert size == 1 or json.loads(Path(path("bench.json")).read_text())["results"] == found["results"]
        schemes = [scheme["scheme"] for scheme in found["results"]]
        assert schemes == (["exact"] if size == 1 else ["exact", "paper", "distributed"])
        for scheme in found["results"]:
            assert scheme["iterations"][-1]["number"] == 4
            assert scheme["project_seconds"] > 0 and (size == 1 or scheme["sent_bytes"] > 0)
        assert found["grid"]["size"] == [6, 6, 6 * size]
        errors.append(found["results"][0]["iterations"][-1]["image_error"])
    strong = json.loads(ranks(2, *words, "--combine", "exact").stdout)
    again = strong["results"][0]["iterations"][-1]["image_error"]
    assert abs(again / errors[0] - 1) < 1e-4, "the counts depend on the number of ranks"
    source = Path(__file__).resolve().parents[2]
    script = [source / "tools/reproduce/cluster_ranks.sh", "--program", program, "--out",
              path("out"), "--no-figures", "--ranks", 2, "--iterations", 4]
    done = subprocess.run([*map(str, script)], env=ENVIRONMENT | {"PYTHON": sys.executable},
                          capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Residual: " in path("out/report.txt").read_text()


topics = {topic.__name__: topic for topic in (bench, own, memory, exact, families, compute, paper, distributed, resume,
                                              schemes, frames, kill, mistakes, faults)}
if __name__ == "__main__":
    run_topics(topics)
