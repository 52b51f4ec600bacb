#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every call fails in its turn: of OpenGL and EGL (gl), CUDA (cuda), our allocations (allocs) and
starts of threads (threads), in small runs of every verb on every backend (cases.py).

What is judged each time: the run ends, by itself and in time; either its output is that of a good
run (what failed was done without or done again), or the exit code is not 0, a sentence says what
failed, and no file is there that a good run would not have made, whole.

usage: test_faults.py KIND PROGRAM FAILING_PROGRAM FAIL_GL_LIBRARY

FAILING_PROGRAM is PROGRAM with the stand-ins of fail_*.c linked in, beside it the programs that it
starts. In the environment:
  LORASTER_FULL     set: every call, and every call with all that follow; else a spread
  INJECT_DEPTH      of all calls, in all cases, that come through the same so many functions, the first
  INJECT_SPREAD     calls of each case in a spread
  INJECT_SEED       any text: another spread
  INJECT_CASES      regular expression of the cases, as NAME.BACKEND; default: all
  INJECT_JOBS       runs at a time; default 1, or the processors with LORASTER_FULL
  INJECT_SECONDS    time for all cases, in equal shares; what they leave out is told
  INJECT_FROM       with INJECT_SECONDS and one case: how many calls an earlier run of it got to; this one goes on
"""
import atexit, concurrent.futures, json, os, random, re, shutil, subprocess, sys, tempfile, threading, time
from collections import Counter
from pathlib import Path

import cases
from program import preloadable, preloading  # on the path by cases

KIND = sys.argv[1]
PROGRAM, FAILING, FAIL_GL = (str(Path(path).resolve()) for path in sys.argv[2:5])
RUN, FAIL_GL = PROGRAM if KIND == "gl" else FAILING, preloadable(FAIL_GL, atexit.register)
FULL = bool(os.environ.get("LORASTER_FULL"))
BY_WAY = bool(os.environ.get("INJECT_DEPTH"))
JOBS = int(os.environ.get("INJECT_JOBS", (os.cpu_count() or 1) if FULL else 1))
WANTED = re.compile(os.environ.get("INJECT_CASES", "."))
SECONDS = float(os.environ.get("INJECT_SECONDS", "inf"))
BEGIN = int(os.environ.get("INJECT_FROM", "0"))
HANG_S = 120
# Calls that fail in a case of the spread, of these kinds.
SPREAD = int(os.environ.get("INJECT_SPREAD", {"gl": 1, "cuda": 12, "allocs": 1, "threads": 1}[KIND]))
# Words of the sentence for each kind of fault; device: the code of a device that is not there.
WORDS = {"gl": r"memory|OpenGL|EGL|device|map|GL_|link|compile|cannot|refuses|stages", "cuda": r"CUDA|memory|device",
         "allocs": r"memory", "threads": r"thread"}[KIND]
CODES = {"gl": (1, 4), "cuda": (1, 4), "allocs": (1,), "threads": (1,)}[KIND]
START = time.monotonic()


def surroundings(**more):
    """Nothing is remembered from run to run, sums are made in one order, and sanitizers take what is preloaded."""
    more.update(LP_NUM_THREADS="1", INJECT_KIND=KIND, LORASTER_LIBEXEC=str(Path(RUN).parent))
    return preloading(FAIL_GL, **more) if KIND == "gl" else dict(os.environ, **more)


def run(folder, command, **more):
    return subprocess.run([RUN, *command.split()], capture_output=True, check=False,
                          cwd=folder, env=surroundings(**more), timeout=HANG_S)


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def first_difference(one, other):
    """Where two texts begin to differ, with what stands before and after."""
    at = next((k for k, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
    return one[max(0, at - 100):at + 200], other[max(0, at - 100):at + 200]


class Trial:
    """A case, what a good run of it makes, and its calls."""

    def __init__(self, case, root):
        self.case, self.root = case, root
        self.name = case.title
        calls = root / "calls.txt"
        for _ in range(3):
            calls.unlink(missing_ok=True)
            folder = self.fresh()
            done = run(folder, case.command, INJECT_CALLS=str(calls), **dict(case.surroundings))
            if b" was reset by its driver" not in done.stderr:
                break  # else an earlier run, in which a call had failed, took the device with it
        if done.returncode != 0:
            raise RuntimeError(f"{self.name}: {case.command}: {done.stderr.decode()}")
        self.files, self.stdout = files_of(folder), done.stdout
        lines = calls.read_text().splitlines() if calls.exists() else []
        self.calls = [line.rsplit(" ", 1)[0] for line in lines]
        self.ways = [line.rsplit(" ", 1)[1] for line in lines]
        if not self.calls and KIND != "threads":
            raise RuntimeError(f"{self.name}: no calls of {KIND} are counted")
        calls.unlink(missing_ok=True)
        shutil.rmtree(folder)
        self.settled = [self.files_with(options) for options in case.choices]

    def files_with(self, options):
        """What a good run makes with more options."""
        folder = self.fresh()
        done = run(folder, f"{self.case.command} {options}", **dict(self.case.surroundings))
        if done.returncode != 0:
            raise RuntimeError(f"{self.name}: {options}: {done.stderr.decode()}")
        files = files_of(folder)
        shutil.rmtree(folder)
        return files

    def fresh(self):
        return Path(tempfile.mkdtemp(dir=self.root))

    def same(self, name, raw):
        """Whether a file, or what is printed, is that of the good run."""
        good = self.stdout if name is None else self.files.get(name)
        if good is None or raw == good:
            return good is not None
        if name is not None and any(raw == files.get(name) for files in self.settled):
            return True
        if self.case.tolerance > 0 and name is not None:
            return cases.same_file(name, good, raw, self.case.tolerance)
        if self.case.tolerance > 0 and cases.same_text(good, raw, self.case.tolerance):
            return True
        times = self.case.is_timed and (name is None or name.endswith((".json", ".txt")))
        return times and cases.without_times(good) == cases.without_times(raw)

    def tells(self, text):
        """Whether a benchmark without a device for its heading says so."""
        return self.case.name == "bench" and re.search(rf"^loraster: (?:error|warning): .*({WORDS})", text, re.M)

    def judge(self, folder, done):
        """What is wrong with a run in which a call failed, or None."""
        text = done.stderr.decode(errors="replace")
        files = files_of(folder)
        if done.returncode < 0:
            return f"killed by signal {-done.returncode}"
        changed = sorted(name for name, raw in files.items() if not self.same(name, raw))
        if done.returncode == 0:
            printed = done.stdout
            if re.search(r"^loraster: warning: .* drawn by backend cpu", text, re.M):
                changed = [name for name in changed if not name.endswith(".png")]
                printed = re.sub(rb"(pictures [0-9.]+ s by backend) cpu\b", rb"\1 raster", printed)
            if self.case.name == "info" and says_unusable(self.stdout, done.stdout, text):
                return None
            if self.tells(text):
                return None
            missing = sorted(set(self.files) - set(files))
            if changed or missing:
                return f"exit code 0, but {changed + missing} is not what it should be"
            if self.same(None, printed):
                return None
            return "exit code 0, but it prints {!r} for {!r}".format(*first_difference(printed, self.stdout))
        if done.returncode not in CODES:
            return f"exit code {done.returncode}, not {CODES}"
        errors = re.findall(r"^loraster: error: (.*)", text, re.M)
        if not errors or not any(len(e) > 12 and re.search(WORDS, e) for e in errors):
            return f"no sentence says what failed: {text[-300:]!r}"
        left = [name for name in changed if not name.endswith(self.case.keeps or ("\0",))]
        return f"exit code {done.returncode}, and it leaves {left}" if left else None

    def fail(self, number, ever):
        """What is wrong when that call fails, or None."""
        folder = self.fresh()
        more = {"INJECT_AT": str(number), **({"INJECT_EVER": "1"} if ever else {}), **dict(self.case.surroundings)}
        try:
            return self.judge(folder, run(folder, self.case.command, **more))
        except subprocess.TimeoutExpired:
            return f"no end after {HANG_S} s"
        finally:
            shutil.rmtree(folder)


def usable_parts(stdout):
    """What `info` tells of each device and backend: whether it works, and why not; of those that "auto"
    takes, also which that is, as it may go by another one."""
    found = json.loads(stdout)
    parts = {("device", d["way"]): (d["usable"], d["reason"]) for d in found["devices"]}
    parts |= {("backend", b["backend"]): (b["works"], b["reason"]) for b in found["backends"]}
    taken = found["auto"]
    parts["auto", "correspondence"] = (taken["works"], taken["reason"], taken["backend"])
    return parts | {(family, name): (b["works"], b["reason"], *([b["backend"]] if name == "auto" else []))
                    for family in ("direct", "listmode") for name, b in found[family].items()}


def says_unusable(good, stdout, text):
    """Whether `info` says why of all that is other than in a good run: devices and backends that do
    not work now, are not there, or do not work for another reason. That "auto" takes another backend is told by a
    new reason beside it, or by a warning."""
    try:
        found = usable_parts(stdout)
    except (ValueError, KeyError):
        return False
    before = usable_parts(good)
    warns = "loraster: warning: " in text
    changed = {name: part for name, part in found.items() if part != before.get(name)}
    is_refused = any(len(part) == 2 and not part[0] for part in changed.values())

    def is_told(name, part):
        if len(part) == 3 and part[0] and part[2] != before[name][2]:
            return warns or is_refused or (part[1] and part[1] != before[name][1])
        return part[1] or (is_refused and len(part) == 3)

    is_gone = any(name not in found for name in before)
    return bool(changed) and (is_refused or warns or not is_gone) and all(is_told(*each) for each in changed.items())


def choose(trial, met):
    """(number, ever) of the calls to fail: all, or so many that all names are met over the cases,
    those that were met least first."""
    numbers = range(1, len(trial.calls) + 1)
    if BY_WAY:
        firsts = {way: n for n, way in reversed(list(zip(numbers, trial.ways)))}
        return [(n, False) for way, n in firsts.items() if not met[way]]
    if FULL and trial.case.is_short:
        return [(n, False) for n in numbers] + [(n, True) for n in (numbers if KIND != "gl" else numbers[::20])]
    generator = random.Random(trial.name + os.environ.get("INJECT_SEED", ""))
    shuffled = generator.sample(numbers, len(numbers))
    always = [(n, False) for n in numbers if n in trial.case.always or trial.calls[n - 1] in trial.case.always]
    first, last = trial.case.ends
    chosen = always[:first] + always[max(first, len(always) - last):]
    for _ in range(min(max(SPREAD, 40) if FULL else SPREAD, len(shuffled))):
        best = min(shuffled, key=lambda n: met[trial.calls[n - 1]])
        shuffled.remove(best)
        met[trial.calls[best - 1]] += 1
        chosen.append((best, generator.random() < 0.25))
    return chosen


def try_case(trial, met, report, until):
    """How many of the faults that are tried until then are bad, and how many are tried."""
    wanted = choose(trial, met)
    if until < float("inf"):
        random.Random(trial.name).shuffle(wanted)
        wanted = wanted[BEGIN:]
    bad, left_out = Counter(), 0
    begin = time.monotonic()

    def attempt(what):
        if time.monotonic() > until:
            return what, "left out"
        return what, trial.fail(*what)

    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for (number, ever), wrong in pool.map(attempt, wanted):
            if wrong == "left out":
                left_out += 1
                continue
            if BY_WAY:
                met[trial.ways[number - 1]] += 1
            if wrong is not None:
                kind = trial.calls[number - 1], re.sub("[0-9.]+ m?s", "#", wrong)
                bad[kind] += 1
                if bad[kind] == 1:
                    report(f"  {trial.name}: call {number}{' and all after it' if ever else ''} "
                           f"({kind[0]}): {wrong}")
    rest = f", {left_out} left out" if left_out else ""
    verdict = "good" if not bad else f"FAILED in {bad.total()}"
    report(f"{trial.name}: {len(wanted) - left_out} faults in {len(trial.calls)} calls: {verdict}"
           f"{rest} ({time.monotonic() - begin:.1f} s)")
    return bad.total(), len(wanted) - left_out


def device_lacks(folder):
    """Why there is nothing to fail on in a folder beside the inputs, or None."""
    if KIND == "gl" and run(folder, "info --json").returncode != 0:
        return "no OpenGL device"
    if KIND == "cuda":
        told = re.search(rb"no CUDA: .*", run(folder, next(cases.all_cases(KIND)).command).stderr)
        return told[0].decode() if told else None
    return None


def main():
    def good(command):
        done = subprocess.run([PROGRAM, *command.split()], capture_output=True, cwd=root, check=False, timeout=HANG_S)
        if done.returncode != 0:
            sys.exit(f"{command}: {done.stderr.decode()}")

    def report(line):
        with lock:
            print(line, flush=True)

    lock = threading.Lock()
    with tempfile.TemporaryDirectory(prefix="loraster-inject-") as root:
        cases.make_inputs(root, good)
        lacks = device_lacks(tempfile.mkdtemp(dir=root))
        if lacks is not None:
            print("skipped:", lacks)
            sys.exit(77)
        met, num_bad, num_tried = Counter(), 0, 0
        wanted = [case for case in cases.all_cases(KIND) if WANTED.search(case.title)]
        if KIND != "cuda" and not (FULL or BY_WAY or "INJECT_CASES" in os.environ):
            # Good runs take most of the time: threads fail in the cases in which allocations do not.
            wanted = [case for k, case in enumerate(wanted)
                      if k % 2 == (KIND == "threads") or (KIND != "threads" and case.always)]
        for k, case in enumerate(wanted):
            share_s = (START + SECONDS - time.monotonic()) / (len(wanted) - k)
            bad, tried = try_case(Trial(case, Path(root)), met, report, time.monotonic() + share_s)
            num_bad, num_tried = num_bad + bad, num_tried + tried
    rest = "" if FULL else "; LORASTER_FULL has every call"
    print(f"{num_tried} faults in {len(wanted)} cases, {num_bad} of them bad{rest}")
    sys.exit(1 if num_bad > 0 or num_tried == 0 else 0)


if __name__ == "__main__":
    main()
