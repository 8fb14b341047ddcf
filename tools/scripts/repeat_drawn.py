#!/usr/bin/env python3
"""Runs the tests that draw their cases again and again, each time with another seed.

    tools/scripts/repeat_drawn.py [--build build] [--seconds 600] [--jobs 2] [--only TEXT]

A bound that one draw in some thousands breaks passes in every single run of the tests, until it fails in
somebody else's. All tests of the built binaries run once (minutes); those that print a seed are then
repeated until the time is up, each for the same share of it. A failure is printed with its seed,
and the exit code is then 1.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIMEOUT = 900  # seconds for one call of a binary
AT_ONCE = 2  # seconds that one call may take, by the time of the first run
SEED = re.compile(r"drawn with (RK_TEST_SEED=\d+)")


def run(binary, pattern, repeat=1):
    """What the tests print, and a line for each that fails, crashes or does not end."""
    environment = dict(os.environ, OMP_WAIT_POLICY="PASSIVE")  # tests run side by side
    try:
        done = subprocess.run(
            [binary, f"--gtest_filter={pattern}", f"--gtest_repeat={repeat}"], cwd=ROOT, env=environment,
            capture_output=True, text=True, errors="replace", timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return "", [f"{binary.name} {pattern}: does not end within {TIMEOUT} s"]
    return done.stdout, failures(binary, done.stdout, done.returncode)


def failures(binary, output, code):
    """A line for each failed test, with the seed printed last before and what was found."""
    seed, found, lines = "no seed", "", []
    for line in output.splitlines():
        if line.startswith("[ RUN "):
            seed, found = "no seed", ""
        if match := SEED.search(line):
            seed = match[1]
        if "Failure" in line and not found:
            found = line.rsplit("/", 1)[-1]
        if line.startswith("[  FAILED  ]") and " ms)" in line:
            lines.append(f"{binary.name} {line.split()[3].rstrip(',')}: {seed}: {found}")
    if code != 0 and not lines:
        started = [line.split()[3] for line in output.splitlines() if line.startswith("[ RUN ")]
        lines.append(f"{binary.name} {started[-1] if started else ''}: {seed}: ended with code {code}")
    return lines


class Drawn:
    def __init__(self, binary, name, seconds):
        self.binary, self.name = binary, name
        self.repeat = max(1, min(50, int(AT_ONCE / (seconds + 0.02))))
        self.seconds = 0.0  # used so far
        self.runs = 0


def drawn_tests(binary, only):
    listed = subprocess.run([binary, "--gtest_list_tests"], capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        return [], []  # race_test is none of GoogleTest's
    suite, names = "", []
    for line in listed.stdout.splitlines():
        if not line.startswith(" "):
            suite = line.split()[0] if line.endswith(".") or ".  #" in line else ""
        elif suite:
            names.append(suite + line.split()[0])
    names = [name for name in names if only in f"{binary.name}:{name}"]
    if not names:
        return [], []
    output, lines = run(binary, ":".join(names) if only else "*")
    tests, name, draws = [], "", False
    for line in output.splitlines():
        if line.startswith("[ RUN "):
            name, draws = line.split()[3], False
        draws = draws or SEED.search(line) is not None
        if draws and (took := re.match(r"\[       OK \] .*\((\d+) ms\)", line)):
            tests.append(Drawn(binary, name, int(took[1]) / 1000))
    return tests, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="tests that hold this text, as in losses_test:Loss")
    options = parser.parse_args()
    binaries = sorted((ROOT / options.build / "bin").glob("*_test"))
    tests, failed = [], 0
    for binary in binaries:
        found, lines = drawn_tests(binary, options.only)
        tests += found
        failed += len(lines)
        for line in lines:
            print(line, flush=True)
    if not tests:
        sys.exit(f"no test in {options.build}/bin draws its cases and holds {options.only!r}")
    print(f"{len(tests)} tests draw their cases", flush=True)
    end, lock = time.monotonic() + options.seconds, threading.Lock()

    def work():
        nonlocal failed
        while time.monotonic() < end:
            with lock:
                test = min(tests, key=lambda each: each.seconds)
                test.seconds += 1e-3  # so that the next worker takes another
            start = time.monotonic()
            _, lines = run(test.binary, test.name, test.repeat)
            with lock:
                test.seconds += time.monotonic() - start
                test.runs += test.repeat
                failed += len(lines)
                for line in lines:
                    print(line, flush=True)

    workers = [threading.Thread(target=work) for _ in range(options.jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    runs = [test.runs for test in tests]
    print(f"{sum(runs)} runs, of each test {min(runs)} to {max(runs)}; {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
