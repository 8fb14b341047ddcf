#!/usr/bin/env python3
"""Plants faults in the tree, one at a time, and looks whether the tests that should see them do.

    tests/mutation/mutate.py [--build build] [--jobs 2] [--only TEXT] [--unchecked] [--list]

A fault is a table of tests/mutation/faults.toml: a file, a text that stands in it once, what is put
in its place, and the tests that should then fail ("tools_test:TrainSettings.*" is a test binary with
its filter). Each is planted, what depends on it is built, its tests run, and the file is put back.
A table of all is printed; the exit code is 0 only where each was caught or all of its tests are
skipped on this machine. A fault that does not compile, or whose text is no longer there, is an
error: the list is part of the tree.

The tests have to pass before anything is planted, which is tried first (not with --unchecked).
"""

import argparse
import pathlib
import signal
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIMEOUT = 600  # seconds for one run of tests, which a fault may hang
# Suites whose tests start the programs.
RUN_PROGRAMS = ("Run", "TrainProgram", "TrainProcesses", "ProgramFlags", "CheckpointValues", "Convert.", "EvalOfFiles",
                "EvalReport", "fault_test:")


def faults(only):
    with open(ROOT / "tests/mutation/faults.toml", "rb") as file:
        all_faults = [{"file": name, **fault}
                      for name, of_file in tomllib.load(file).items() for fault in of_file]
    wrong = []
    for fault in all_faults:
        count = (ROOT / fault["file"]).read_text().count(fault["text"])
        if count != 1:
            wrong.append(f"{fault['file']}: {fault['text']!r} stands there {count} times")
    if wrong:
        sys.exit("\n".join(wrong))
    chosen = [f for f in all_faults
              if only in " ".join([f["file"], f["what"], f["text"], f["put"], *f["tests"]])]
    if not chosen:
        sys.exit(f"no fault holds {only!r}")
    return chosen


class Builder:
    def __init__(self, folder, jobs):
        self.folder, self.jobs = folder, jobs
        self.skipped = False  # whether the last failing() ran nothing but tests that skip themselves

    def build(self, tests):
        """Whether what the tests need can be built."""
        targets = sorted({test.split(":")[0] for test in tests})
        if any(suite in test for test in tests for suite in RUN_PROGRAMS):
            targets.append("programs")
        done = subprocess.run(
            ["cmake", "--build", self.folder, "-j", str(self.jobs), "--target", *targets],
            cwd=ROOT, capture_output=True, text=True, check=False)
        return done.returncode == 0

    def failing(self, tests):
        """Of the tests, the names of those that fail or do not end."""
        names = []
        self.skipped = True
        for test in tests:
            binary, _, pattern = test.partition(":")
            try:
                done = subprocess.run(
                    [ROOT / self.folder / "bin" / binary, f"--gtest_filter={pattern}",
                     "--gtest_brief=1"],
                    cwd=ROOT, capture_output=True, text=True, errors="replace", timeout=TIMEOUT,
                    check=False)
            except subprocess.TimeoutExpired:
                names.append(f"{test} (does not end)")
                continue
            self.skipped = self.skipped and "[  PASSED  ] 0 tests." in done.stdout
            if "] 0 tests from" in done.stdout and done.returncode == 0:
                sys.exit(f"{test}: no such test")
            failed = {line.split("]")[1].split(",")[0].split("(")[0].strip()
                      for line in done.stdout.splitlines() if line.startswith("[  FAILED  ]")}
            names += sorted(name for name in failed if "." in name)
            if done.returncode != 0 and not failed:
                names.append(f"{test} (code {done.returncode})")
        return names


def planted(fault):
    path = ROOT / fault["file"]
    whole = path.read_text()
    path.write_text(whole.replace(fault["text"], fault["put"]))
    return path, whole


def try_out(fault, builder):
    path, whole = planted(fault)
    try:
        if not builder.build(fault["tests"]):
            return "does not compile", []
        names = builder.failing(fault["tests"])
    finally:
        path.write_text(whole)
    if names:
        return "caught", names
    return "skipped" if builder.skipped else "SURVIVES", []


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="faults that hold this text")
    parser.add_argument("--unchecked", action="store_true", help="the tests are known to pass")
    parser.add_argument("--list", action="store_true", help="only check that the texts are there")
    options = parser.parse_args()
    chosen = faults(options.only)
    if options.list:
        print(f"{len(chosen)} faults in {len({f['file'] for f in chosen})} files")
        return
    for ending in (signal.SIGTERM, signal.SIGHUP):  # through `finally`, which mends the file
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    builder = Builder(options.build, options.jobs)
    tests = sorted({test for fault in chosen for test in fault["tests"]})
    if not builder.build(tests):
        sys.exit("the tree does not build as it is")
    broken = [] if options.unchecked else builder.failing(tests)
    if broken:
        sys.exit("these fail with no fault planted: " + ", ".join(broken))
    results = []
    for fault in chosen:
        start = time.monotonic()
        verdict, names = try_out(fault, builder)
        results.append(verdict)
        print(f"{verdict:16} {time.monotonic() - start:5.0f} s  {fault['file']}: {fault['what']}"
              f"{'  (' + ', '.join(names[:3]) + ')' if names else ''}", flush=True)
    builder.build(tests)
    caught = results.count("caught")
    print(f"{caught} of {len(results)} caught ({100 * caught / max(len(results), 1):.0f} %)")
    sys.exit(caught + results.count("skipped") != len(results))


if __name__ == "__main__":
    main()
