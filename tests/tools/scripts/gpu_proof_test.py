"""tools/scripts/gpu_proof.sh on machines that are made up: python3 tests/tools/scripts/gpu_proof_test.py"""
import os
import pathlib
import shutil
import stat
import subprocess
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Proof(unittest.TestCase):
    """A copy of the script in a folder of its own, where `bin/` comes first on the path."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        for folder in ("tools/scripts", "bin", "build/bin"):
            (self.path / folder).mkdir(parents=True)
        shutil.copy(ROOT / "tools/scripts/gpu_proof.sh", self.path / "tools/scripts")

    def command(self, name, script):
        path = self.path / name
        path.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def with_gpu(self):
        self.command("bin/nvidia-smi", """case "$*" in
            -L) echo 'GPU 0: NVIDIA H200' ;;
            *clocks*) echo '1980 MHz, 3201 MHz, 1980 MHz, 95 W, 34' ;;
            *) echo 'NVIDIA H200, 143771 MiB, 580.65' ;;
            esac""")

    def run_script(self, script, *arguments, **variables):
        environment = {"PATH": f"{self.path}/bin:/usr/bin:/bin", "HOME": "/", "RESULTS": "results"} | variables
        return subprocess.run(["/bin/bash", str(self.path / "tools/scripts" / script), *arguments], capture_output=True,
                              text=True, check=False, env=environment, cwd=self.path)

    def run_proof(self, *arguments, **variables):
        return self.run_script("gpu_proof.sh", *arguments, **variables)

    def result(self, name):
        lines = (self.path / "results" / f"{name}.txt").read_text().splitlines()
        return dict(line.split(": ", 1) for line in lines[:lines.index("")])

    def test_list_needs_no_gpu_and_every_piece_has_its_function(self):
        done = self.run_proof("list")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = [line.split() for line in done.stdout.splitlines()]
        groups = [words[0] for words in lines if len(words) == 1]
        self.assertEqual(groups, ["first:", "second:", "third:", "rest:"])
        names = [words[0] for words in lines if len(words) > 1]
        self.assertEqual(names[:3], ["starts", "conformance", "golden"])
        self.assertEqual(len(names), len(set(names)))
        script = (ROOT / "tools/scripts/gpu_proof.sh").read_text()
        for name in names:
            self.assertIn(f"\npiece_{name}() {{", script)
        self.assertEqual(script.count("\npiece_"), len(names))

    def test_a_piece_nobody_knows(self):
        for words in (["golden", "sorcery"], ["sorcery"], ["gold"]):
            done = self.run_proof(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (2, "", f"error: {words[-1]}: no such piece; tools/scripts/gpu_proof.sh list shows them\n"))
        self.assertEqual(self.run_proof().returncode, 2)

    def test_without_a_gpu_it_says_so_in_a_line(self):
        said = "error: no NVIDIA GPU here (nvidia-smi lists none); run this on a machine that has one\n"
        if not os.path.exists("/usr/bin/nvidia-smi"):
            done = self.run_proof("all")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (5, "", said))
        self.command("bin/nvidia-smi", "echo 'No devices were found'")
        done = self.run_proof("golden")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (5, "", said))

    def test_programs_that_do_not_start_here_are_found_before_any_piece(self):
        self.with_gpu()
        for script, said in (("echo 'libfmt.so.9: cannot open shared object file' >&2; exit 127",
                              "libfmt.so.9: cannot open shared object file"),
                             ("exit 132", "it ended at once, as programs do that were built for another processor: "
                              "-DRK_NATIVE=OFF builds for any")):
            self.command("build/bin/train", script)
            done = self.run_proof("all")
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (3, "", f"error: build/bin/train does not start here: {said}\n"))

    # Four tests, what becomes of the second depends on SECOND.
    def made_up_tests(self):
        self.command("build/bin/cuda_test", """
            [ "$1" = --gtest_list_tests ] &&
              printf 'One.\\n  A\\nAll/Two.  # TypeParam = x\\n  B\\n  C/0  # GetParam() = 3\\nThree.\\n  D\\n' && exit
            for word in "$@"; do case $word in
            --gtest_filter=*) test=${word#*=} ;;
            --gtest_output=json:*) output=${word#*json:} ;;
            esac; done
            [ "$test" = 'All/Two.B' ] && eval "${SECOND:-}"
            echo "ran $test"
            printf '{\\n  "tests": 1,\\n  "failures": 0,\\n' >"$output"
            exit ${code:-0}""")

    def test_a_piece_leaves_its_result_with_the_machine(self):
        self.with_gpu()
        self.made_up_tests()
        done = self.run_proof("conformance")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = self.result("conformance")
        self.assertEqual((found["result"], found["finding"]), ("passed", "4 tests"))
        self.assertEqual(found["device"], "NVIDIA H200, 143771 MiB, 580.65")
        self.assertTrue(found["clocks after"].startswith("1980 MHz"))
        self.assertIn("commit", found)
        self.assertIn("| conformance | passed | ", (self.path / "results/summary.md").read_text())

    # An error that stays, a signal or a barrier that hangs takes no test but its own.
    def test_tests_beside_one_that_fails_are_run(self):
        self.with_gpu()
        self.made_up_tests()
        for second, finding in (("code=1", "All/Two.B"), ("kill -SEGV $$", "All/Two.B (exit code 139)"),
                                ("exec sleep 30", "All/Two.B (over 1 s)"), ("exit 0", "All/Two.B (did not run)")):
            for parallel in ("1", "3"):
                done = self.run_proof("conformance", SECOND=second, TEST_LIMIT="1", PARALLEL=parallel)
                self.assertEqual(done.returncode, 1)
                self.assertEqual((self.result("conformance")["result"], self.result("conformance")["finding"]),
                                 ("failed", "1 of 4 tests failed: " + finding))
                text = (self.path / "results/conformance.txt").read_text()
                for name in ("One.A", "All/Two.C/0", "Three.D"):
                    self.assertIn(f"ran {name}\n", text)

    def test_results_so_far_are_in_the_archive_and_nothing_begins_after_the_time(self):
        self.with_gpu()
        self.made_up_tests()
        self.command("build/bin/golden", "[ $# = 0 ] && echo --device >&2 && exit 2; tar -tzf all.tar.gz; sleep 30")
        done = self.run_proof("conformance", "golden", "replay", ARCHIVE="all.tar.gz", TIME="4", COMMIT="abc, with changes")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("replay and what comes after it: not begun, 4 s are over", done.stdout)
        self.assertIn("./conformance.txt", (self.path / "results/golden.txt").read_text())
        self.assertRegex(self.result("golden")["result"], "over [1-4] s")
        self.assertEqual(self.result("golden")["commit"], "abc, with changes")
        self.assertFalse((self.path / "results/replay.txt").exists())
        with tarfile.open(self.path / "all.tar.gz") as archive:
            self.assertEqual(sorted(archive.getnames()), [".", "./conformance.txt", "./golden.txt", "./summary.md"])

    def test_in_the_package_it_finds_all_beside_it(self):
        shutil.copy(ROOT / "tools/scripts/gpu_package_run.sh", self.path / "run")
        (self.path / "COMMIT").write_text("abc\n", encoding="utf-8")
        environment = {"PATH": f"{self.path}/bin:/usr/bin:/bin", "HOME": "/"}

        def run(*words):
            return subprocess.run([self.path / "run", *words], capture_output=True, text=True, check=False,
                                  env=environment, cwd="/")

        self.assertIn("conformance", run("list").stdout)
        self.command("bin/nvidia-smi", "echo 'No devices were found'")
        done = run("all")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (5, "", 1))
        self.with_gpu()
        self.made_up_tests()
        shutil.copy(self.path / "build/bin/cuda_test", self.path / "bin")
        self.assertEqual(run("conformance").returncode, 0)
        with tarfile.open(self.path / "results.tar.gz") as archive:
            self.assertIn("./conformance.txt", archive.getnames())
        self.assertIn("\ncommit: abc\n", (self.path / "results/conformance.txt").read_text())

    def test_a_group_is_its_pieces(self):
        self.with_gpu()
        done = self.run_proof("second")
        self.assertEqual(done.returncode, 0, done.stderr)
        table = done.stdout[done.stdout.index("| piece |"):]
        self.assertEqual([line.split()[1] for line in table.splitlines()[2:]], ["step", "step-compile", "tuned-train", "tuned-frozen"])

    # What comes out of compute-sanitizer is OUTPUT, after what the program says.
    def made_up_sanitizer(self):
        self.command("bin/compute-sanitizer", """
            echo "$*" >>sanitized
            while [ ! -x "$1" ]; do shift; done
            "$@"
            echo "$OUTPUT"; exit ${CODE:-0}""")
        self.made_up_train()
        self.made_up_tests()

    def test_initcheck_judges_readers_of_ours_alone(self):
        self.with_gpu()
        self.made_up_sanitizer()
        block = ("========= Uninitialized __global__ memory read of size 4 bytes\n=========     at {}+0x50 in a.cu:12\n"
                 "=========     by thread (0,0,0) in block (0,0,0)\n=========     Host Frame: rk::x() [0x1] in b\n")
        theirs = "".join(block.format(name) for name in
                         ("void cub::Sort<rk::Row>(int *)", "cudnn::bn(float *)")) + "========= ERROR SUMMARY: 2 errors"
        self.assertEqual(self.run_proof("initcheck", OUTPUT=theirs).returncode, 0)
        self.assertEqual(self.result("initcheck")["result"], "passed")
        calls = (self.path / "sanitized").read_text()
        self.assertNotIn("--kernel-name", calls)
        for ours in ("rk::<unnamed>::rows_kernel(float *)", "void rk::rows_kernel<rk::Row>(float *)"):
            done = self.run_proof("initcheck", OUTPUT=theirs + "\n" + block.format(ours))
            self.assertEqual(done.returncode, 1)
            self.assertEqual(self.result("initcheck")["finding"],
                             "initcheck: fp32 train, fp16 train, fp16 frozen, kernels, see above")
            text = (self.path / "results/initcheck.txt").read_text()
            self.assertIn(ours, text)
            self.assertNotIn("cub::", text)
        self.assertEqual(self.run_proof("initcheck", OUTPUT="", CODE="3").returncode, 1)

    def test_the_other_sanitizers_see_our_kernels_and_fp32(self):
        self.with_gpu()
        self.made_up_sanitizer()
        self.assertEqual(self.run_proof("memcheck", OUTPUT="").returncode, 0)
        calls = (self.path / "sanitized").read_text()
        self.assertIn("--precision fp32 --bn train", calls)
        self.assertIn("--gtest_filter=CudaKernels.*:", calls)
        self.assertEqual(self.run_proof("memcheck", OUTPUT="", CODE="9").returncode, 1)

    # Started one by one or together, and whatever happens to one of them.
    def test_a_failed_piece_does_not_stop_the_others(self):
        self.with_gpu()
        self.command("build/bin/cuda_test", "exit 1")
        self.command("build/bin/golden", "[ $# = 0 ] && echo --device >&2 && exit 2; echo '9 passed, 0 failed'")
        done = self.run_proof("conformance", "golden", "losses-peers")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.result("conformance")["result"], "failed")
        self.assertEqual(self.result("conformance")["finding"], "no test ran")
        self.assertEqual(self.result("golden")["finding"], "9 passed, 0 failed")
        self.assertEqual(self.result("losses-peers")["finding"], "build/bin/bench is not there; build it first")
        table = done.stdout[done.stdout.index("| piece |"):]
        self.assertEqual([line.split(" | ")[1] for line in table.splitlines()[2:]], ["failed", "passed", "skipped"])
        # A later call keeps what the earlier ones found.
        self.assertIn("| golden | passed |", self.run_proof("omniglot").stdout)

    def test_what_is_missing_is_skipped_with_a_reason(self):
        self.with_gpu()
        for program in ("bench", "train", "probe", "golden", "cuda_test"):
            self.command(f"build/bin/{program}", "echo old" if program == "golden" else "exit 0")
        done = self.run_proof("golden", "replay", "omniglot", "step", "eval", PYTHON="/nowhere/python3")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.result("golden")["finding"], "golden has no --device; build a newer version")
        self.assertEqual(self.result("replay")["finding"], "train has no --graph; build a newer version")
        self.assertEqual(self.result("step")["finding"], "bench step has no --precision; build a newer version")
        self.assertEqual(self.result("eval")["finding"], "/nowhere/python3 has no torch; PYTHON=... names another")
        for name in ("golden", "replay", "omniglot", "step", "eval"):
            self.assertEqual(self.result(name)["result"], "skipped")

    def test_the_loader_leaves_its_numbers(self):
        self.with_gpu()
        self.command("build/bin/bench", """
            case "$*" in *--version) exit ;; *--help) echo --precision; exit ;; esac
            [[ "$*" == loader*"--device cuda"* ]] || exit 2
            for word in "$@"; do [ "$before" = --json ] && echo '{"share": 1}' >"$word"; before=$word; done
            echo '900 images/s'; exit ${BROKEN:-0}""")
        self.assertEqual(self.run_proof("loader").returncode, 0)
        self.assertEqual((self.result("loader")["result"], self.result("loader")["finding"]), ("passed", "900 images/s"))
        self.assertEqual((self.path / "results/loader.json").read_text(), '{"share": 1}\n')
        self.assertEqual(self.run_proof("loader", BROKEN="4").returncode, 1)
        self.assertEqual(self.result("loader")["finding"], "bench loader ended with exit code 4")

    # `train` made up: what it finds depends on the graph alone where BROKEN is set.
    def made_up_train(self):
        self.command("build/bin/train", """
            [ "$1" = --version ] && exit
            [ "$1" = --help ] && echo --graph --precision && exec seq 50000  # more than a pipe holds
            for word in "$@"; do [ "$before" = --graph ] && graph=$word; [ "$before" = --out ] && out=$word
              before=$word; done
            mkdir -p "$out"
            echo "{\\"loss\\": 0.25${BROKEN:+$graph}, \\"seconds\\": $RANDOM.5}" >"$out/metrics.jsonl" """)

    def test_replay_compares_all_but_the_times(self):
        self.with_gpu()
        self.made_up_train()
        self.assertEqual(self.run_proof("replay").returncode, 0)
        self.assertEqual(self.result("replay")["result"], "passed")
        self.assertEqual(self.run_proof("replay", BROKEN="1").returncode, 1)
        self.assertEqual(self.result("replay")["finding"],
                         "graph on and off, batch norm train: the runs differ, see above")

    def test_a_piece_that_takes_too_long_is_ended(self):
        self.with_gpu()
        self.command("build/bin/golden", "[ $# = 0 ] && echo --device >&2 && exit 2; sleep 30")
        done = self.run_proof("golden", LIMIT="1")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.result("golden")["result"], "over 1 s")

    # The words come in pieces, and what was looked for is in the first.
    def test_test_gpu_finds_the_gpu_and_the_tests_of_either_generator(self):
        shutil.copy(ROOT / "tools/scripts/test_gpu.sh", self.path / "tools/scripts")
        slowly = "sleep 0.2; for i in $(seq 20000); do echo another; done"
        self.command("bin/nvidia-smi", f"echo 'GPU 0: NVIDIA H200'; {slowly}")
        self.command("bin/ctest", 'echo "tests $RK_REQUIRE_GPU"')
        for target in ("cuda_test: phony", "... cuda_test"):
            self.command("bin/cmake", f"echo '{target}'; {slowly}")
            done = self.run_script("test_gpu.sh", "build", "1")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(done.stdout.endswith("tests 1\n"))
        self.command("bin/cmake", "echo 'cuda_tester: phony'")
        done = self.run_script("test_gpu.sh", "build", "1")
        self.assertEqual((done.returncode, done.stderr),
                         (5, "error: this build has no GPU tests; it was configured without CUDA\n"))


if __name__ == "__main__":
    unittest.main()
