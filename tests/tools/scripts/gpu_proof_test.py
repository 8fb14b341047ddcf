"""tools/scripts/gpu_proof.sh on machines that are made up, and what it runs beside PyTorch, with a torch that is:
python3 tests/tools/scripts/gpu_proof_test.py"""
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Machine(unittest.TestCase):
    """A folder of its own, where commands are made up: those in `bin/` come first on the path."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        for folder in ("tools/scripts", "bin", "build/bin"):
            (self.path / folder).mkdir(parents=True)

    def command(self, name, script):
        path = self.path / name
        path.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


class Proof(Machine):
    """With a copy of the script."""

    def setUp(self):
        super().setUp()
        shutil.copy(ROOT / "tools/scripts/gpu_proof.sh", self.path / "tools/scripts")

    def with_gpu(self):
        self.command("bin/nvidia-smi", """case "$*" in
            -L) echo 'GPU 0: NVIDIA H200' ;;
            *clocks*) echo '1980 MHz, 3201 MHz, 1980 MHz, 95 W, 34' ;;
            *) echo 'NVIDIA H200, 143771 MiB, 580.65' ;;
            esac""")

    def run_script(self, script, *arguments, **variables):
        environment = {"PATH": f"{self.path}/bin:/usr/bin:/bin", "HOME": "/",
                       "RESULTS": str(self.path / "results")} | variables
        # By its name alone: a script changes to the root, where its own path no longer leads to it.
        return subprocess.run(["/bin/bash", script, *arguments], capture_output=True, text=True, check=False,
                              env=environment, cwd=self.path / "tools/scripts")

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
        self.assertEqual(groups, ["first:", "second:", "third:", "fourth:", "rest:"])
        names = [words[0] for words in lines if len(words) > 1]
        self.assertEqual(names[:3], ["starts", "conformance", "golden"])
        third = lines[lines.index(["third:"]) + 1:lines.index(["fourth:"])]
        self.assertEqual([words[0] for words in third], ["profile-train", "fusions", "eval", "losses"])
        for one, after in zip(groups, groups[1:]):  # a call of nine minutes holds a group
            kept = [int(words[1]) for words in lines[lines.index([one]) + 1:lines.index([after])]]
            self.assertLessEqual(sum(kept), 540, one)
        for words in lines:
            self.assertTrue(len(words) == 1 or 30 <= int(words[1]) <= 540 and words[2] == "s", words)
        self.assertEqual(len(names), len(set(names)))
        script = (ROOT / "tools/scripts/gpu_proof.sh").read_text()
        for name in names:
            self.assertIn(f"\npiece_{name}() {{", script)
        self.assertEqual(script.count("\npiece_"), len(names))

    def test_a_piece_nobody_knows(self):
        for words in (["golden", "sorcery"], ["sorcery"], ["gold"]):
            done = self.run_proof(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (
                2, "", f"error: {words[-1]}: no such piece; tools/scripts/gpu_proof.sh list shows them\n"))
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

    def test_what_fails_in_the_smallest_step_is_said_once(self):
        self.with_gpu()
        for said in ("error: cuBLAS cannot be loaded: libcublas.so.13 is not in /usr/lib; install it",
                     "error: cuDNN: fp32 conv: no engine runs it here"):
            self.command("build/bin/bench", f"""case "$1" in
                step) echo 'note: slow' >&2; echo '{said}' >&2; exit ${{CODE:-5}} ;;
                esac""")
            done = self.run_proof("all")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (5, "", said + "\n"))
        self.assertEqual(self.run_proof("omniglot", CODE="4").returncode, 0)
        done = self.run_proof("omniglot", ANYWAY="yes")
        self.assertEqual((done.returncode, done.stderr), (0, said + "\n"))

    def test_a_smallest_step_that_crashes_or_hangs_ends_the_call(self):
        self.with_gpu()
        self.command("build/bin/bench", "[ $1 != step ] || { echo 'note: slow' >&2; exit 139; }")
        done = self.run_proof("all")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (5, "", "error: the smallest step ends with exit code 139, a signal's; it last said: "
                          "note: slow\n"))
        self.command("build/bin/bench", "[ $1 != step ] || { echo begun >>begun; exec sleep 20; }")
        done = self.run_proof("all", TEST_LIMIT="1")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (5, "", "error: the smallest step does not end within 1 s\n"))
        self.assertEqual((self.path / "begun").read_text(), "begun\nbegun\n")

    def test_a_smallest_step_that_is_slow_once_is_tried_again(self):
        self.with_gpu()
        self.command("build/bin/bench", "[ $1 = step ] || exit 0; [ -e begun ] && exit 0; : >begun; exec sleep 20")
        self.assertEqual(self.run_proof("omniglot", TEST_LIMIT="1").returncode, 0)

    # Not by a piece, whose time it would take.
    def test_torch_is_read_before_the_first_piece(self):
        self.with_gpu()
        self.command("build/bin/bench", "sleep 0.5")
        self.command("bin/python", 'echo "$*" >>asked; exec sleep 30')
        self.run_proof("omniglot", PYTHON=str(self.path / "bin/python"))
        self.assertEqual((self.path / "asked").read_text(), "-c import torch, torchvision\n")

    def test_several_gpus_need_a_build_with_mpi(self):
        self.command("bin/nvidia-smi", "echo 'GPU 0: NVIDIA H200'; echo 'GPU 1: NVIDIA H200'")
        self.command("build/bin/train", "echo --precision")
        for said, code, result in (("error: started as one of 2 processes, but this build has no MPI; install it", 2,
                                    "skipped"), ("error: NCCL failed", 5, "failed")):
            self.command("bin/mpirun", f"echo '{said}' >&2; exit {code}")
            self.run_proof("two-gpus")
            self.assertEqual(self.result("two-gpus")["result"], result)

    # Four tests, what becomes of the second depends on SECOND.
    def made_up_tests(self):
        self.command("build/bin/cuda_test", """
            [ "$1" = --gtest_list_tests ] &&
              printf 'One.\\n  A\\nAll/Two.  # TypeParam = x\\n  B\\n  C/0  # GetParam() = 3\\nThree.\\n  D\\n' && exit
            for word in "$@"; do case $word in
            --gtest_filter=*) test=${word#*=} ;;
            --gtest_output=json:*) output=${word#*json:} ;;
            esac; done
            result=COMPLETED
            [ "$test" = 'All/Two.B' ] && eval "${SECOND:-}"
            eval "${EACH:-}"
            echo "ran $test"
            printf '{\\n  "tests": 1,\\n  "failures": 0,\\n          "result": "%s",\\n' $result >"$output"
            exit ${code:-0}""")

    def test_a_piece_leaves_its_result_with_the_machine(self):
        self.with_gpu()
        self.made_up_tests()
        done = self.run_proof("conformance")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = self.result("conformance")
        self.assertEqual((found["result"], found["finding"]), ("passed", "4 ran"))
        self.assertEqual(found["device"], "NVIDIA H200, 143771 MiB, 580.65")
        self.assertTrue(found["clocks after"].startswith("1980 MHz"))
        self.assertIn("commit", found)
        self.assertIn("| conformance | passed | ", (self.path / "results/summary.md").read_text())

    # An error that stays, a signal or a barrier that hangs takes no test but its own.
    def test_tests_beside_one_that_fails_are_run(self):
        self.with_gpu()
        self.made_up_tests()
        for second, finding in (("code=1", "All/Two.B"), ("kill -SEGV $$", "All/Two.B (exit code 139)"),
                                ("exec sleep 30", "All/Two.B (over 1 s)"), ("exit 0", "All/Two.B (ran no test)")):
            for parallel in ("1", "3"):
                done = self.run_proof("conformance", SECOND=second, TEST_LIMIT="1", PARALLEL=parallel)
                self.assertEqual(done.returncode, 1)
                self.assertEqual((self.result("conformance")["result"], self.result("conformance")["finding"]),
                                 ("failed", "4 of 4 ran, failed: " + finding))
                text = (self.path / "results/conformance.txt").read_text()
                for name in ("One.A", "All/Two.C/0", "Three.D"):
                    self.assertIn(f"ran {name}\n", text)

    def test_tests_that_are_skipped_have_not_run(self):
        self.with_gpu()
        self.made_up_tests()
        self.assertEqual(self.run_proof("conformance", SECOND="result=SKIPPED").returncode, 0)
        self.assertEqual(self.result("conformance")["finding"], "3 ran, 1 skipped: All/Two.B")
        self.assertEqual(self.run_proof("conformance", EACH="result=SKIPPED").returncode, 1)
        self.assertEqual(self.result("conformance")["finding"],
                         "no test ran; skipped: One.A, All/Two.B, All/Two.C/0, Three.D")

    def test_an_ended_conformance_says_what_is_known(self):
        self.with_gpu()
        self.made_up_tests()
        done = self.run_proof("conformance", PARALLEL="1", LIMIT="3",
                              EACH="case $test in One.A) code=1 ;; Three.D) exec sleep 30 ;; esac")
        self.assertEqual(done.returncode, 1)
        found = self.result("conformance")
        self.assertEqual((found["result"], found["finding"]),
                         ("over 3 s", "cut off: 3 of 4 ran, failed: One.A; not run: Three.D"))
        self.assertLess(int(found["seconds"]), 10)

    def test_results_so_far_are_in_the_archive_and_nothing_begins_after_the_time(self):
        self.with_gpu()
        self.made_up_tests()
        self.command("build/bin/golden", "[ $1 = --help ] && echo --device && exit; tar -tzf all.tar.gz; sleep 30")
        done = self.run_proof("conformance", "golden", "replay", ARCHIVE=str(self.path / "all.tar.gz"), TIME="4",
                              COMMIT="abc, with changes")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("replay and what comes after it: not begun, 4 s are over", done.stdout)
        self.assertIn("./conformance.txt", (self.path / "results/golden.txt").read_text())
        self.assertRegex(self.result("golden")["result"], "over [1-4] s")
        self.assertEqual(self.result("golden")["commit"], "abc, with changes")
        self.assertFalse((self.path / "results/replay.txt").exists())
        with tarfile.open(self.path / "all.tar.gz") as archive:
            self.assertEqual(sorted(archive.getnames()), [".", "./conformance.txt", "./golden.txt", "./summary.md"])

    def test_a_call_on_an_empty_machine_goes_on_from_the_archive(self):
        self.with_gpu()
        self.made_up_tests()
        archive = self.path / "all.tar.gz"
        self.run_proof("conformance", ARCHIVE=str(archive))
        shutil.rmtree(self.path / "results")
        done = self.run_proof("omniglot", ARCHIVE=str(archive))
        self.assertIn("| conformance | passed |", done.stdout)
        with tarfile.open(archive) as packed:
            self.assertLessEqual({"./conformance.txt", "./omniglot.txt"}, set(packed.getnames()))

    def test_names_are_those_of_the_folder_it_is_called_from(self):
        self.with_gpu()
        self.assertEqual(self.run_proof("omniglot", RESULTS="here", ARCHIVE="new/all.tar.gz").returncode, 0)
        self.assertTrue((self.path / "tools/scripts/here/omniglot.txt").exists())
        self.assertTrue(tarfile.is_tarfile(self.path / "tools/scripts/new/all.tar.gz"))

    def test_a_place_that_takes_no_results_is_refused_before_anything_runs(self):
        self.with_gpu()
        for variable, file in (("RESULTS", "/proc/nowhere"), ("ARCHIVE", "/proc/nowhere/all.tar.gz")):
            done = self.run_proof("omniglot", **{variable: file})
            self.assertEqual((done.returncode, done.stdout, done.stderr), (
                3, "", "error: /proc/nowhere: nothing can be written there; name another with RESULTS=... or "
                "ARCHIVE=...\n"))

    # A card that a test broke.
    def test_a_piece_does_not_wait_for_an_nvidia_smi_that_hangs(self):
        self.with_gpu()
        self.made_up_tests()
        smi = (self.path / "bin/nvidia-smi").read_text().split("\n", 1)[1]
        self.command("bin/nvidia-smi", smi.replace("*clocks*)", "*clocks*) [ ! -e broken ] || exec sleep 300;"))
        began = time.monotonic()
        done = self.run_proof("conformance", EACH="touch broken")
        self.assertLess(time.monotonic() - began, 60)
        self.assertEqual((done.returncode, self.result("conformance")["finding"]), (0, "4 ran"))

    def test_libraries_of_the_wheels_take_the_place_of_one_that_is_too_old(self):
        self.with_gpu()
        said = "error: cuDNN 9.1 is too old; install that, or name its folder in RK_CUDA_LIBRARIES"
        self.command("build/bin/bench", f"""[ "$1" != step ] || [ "$RK_CUDA_LIBRARIES" = /wheels/lib ] ||
            {{ echo '{said}' >&2; exit 5; }}""")
        self.command("bin/python3", "[[ $2 != *glob* ]] || echo $WHEELS")
        done = self.run_proof("omniglot", WHEELS="/wheels/lib")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"{said}\nonce more with the libraries of python3's wheels: RK_CUDA_LIBRARIES=/wheels/lib\n",
                      done.stdout)
        for variables in ({"WHEELS": ""}, {"WHEELS": "/wheels/lib", "RK_CUDA_LIBRARIES": "/others"}):
            done = self.run_proof("omniglot", **variables)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (5, "", said + "\n"))

    # Whoever ends the call asks nobody.
    def test_a_killed_call_leaves_what_its_piece_said(self):
        self.with_gpu()
        self.made_up_tests()
        environment = {"PATH": f"{self.path}/bin:/usr/bin:/bin", "HOME": "/", "RESULTS": "results", "PARALLEL": "1",
                       "ARCHIVE": "all.tar.gz", "PACK_EVERY": "1", "EACH": '[ "$test" = Three.D ] && exec sleep 30'}
        script = ["/bin/bash", str(self.path / "tools/scripts/gpu_proof.sh"), "conformance", "golden"]

        def packed():
            try:
                with tarfile.open(self.path / "all.tar.gz") as archive:
                    return archive.extractfile("./conformance.part").read().decode()
            except (FileNotFoundError, KeyError):
                return ""

        with subprocess.Popen(script, env=environment, cwd=self.path, stdout=subprocess.DEVNULL) as call:
            until = time.monotonic() + 20
            while "ran All/Two.C/0" not in packed() and time.monotonic() < until:
                time.sleep(0.1)
            self.assertIn("ran All/Two.C/0", packed())
            self.assertTrue(packed().startswith("device: NVIDIA H200, 143771 MiB, 580.65\n"))
            call.terminate()
            self.assertEqual(call.wait(20), 1)
        self.assertEqual((self.result("conformance")["result"], self.result("conformance")["finding"]),
                         ("unfinished", "cut off: 3 of 4 ran; not run: Three.D"))
        self.assertEqual(sorted(path.name for path in (self.path / "results").iterdir()),
                         ["conformance.txt", "summary.md"])
        with tarfile.open(self.path / "all.tar.gz") as archive:
            self.assertIn("./conformance.txt", archive.getnames())

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
        self.assertEqual([line.split()[1] for line in table.splitlines()[2:]],
                         ["step", "step-compile", "tuned-train"])

    # What comes out of compute-sanitizer is OUTPUT, after what the program says.
    def made_up_sanitizer(self):
        self.command("bin/compute-sanitizer", """
            [ "$1" = --help ] && echo "${HELP-  --error-exitcode arg (=0)
              --print-limit arg (=100)
              --report-api-errors arg (=explicit)
              --leak-check arg (=no)
              --kernel-name arg}" && exit
            echo "$*" >>sanitized
            words=$*
            while [ ! -x "$1" ]; do shift; done
            "$@"
            eval "${THEN:-}"
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
                             "initcheck: kernels, fp32 train, fp16 train, fp16 frozen, see above; "
                             "nothing found in 0 of 4")
            text = (self.path / "results/initcheck.txt").read_text()
            self.assertIn(ours, text)
            self.assertNotIn("cub::", text)
        self.assertEqual(self.run_proof("initcheck", OUTPUT="", CODE="3").returncode, 1)
        self.assertEqual(self.result("initcheck")["result"], "unfinished")

    def test_the_other_sanitizers_see_our_kernels_and_fp32(self):
        self.with_gpu()
        self.made_up_sanitizer()
        self.assertEqual(self.run_proof("memcheck", OUTPUT="").returncode, 0)
        calls = (self.path / "sanitized").read_text()
        self.assertIn("--precision fp32 --bn train", calls)
        self.assertIn("--gtest_filter=CudaKernels.AgreeWithDouble:", calls)
        self.assertIn("--report-api-errors no", calls)
        self.assertLess(calls.index("--gtest_filter"), calls.index("--precision"))
        self.assertEqual(self.run_proof("memcheck", OUTPUT="", CODE="9").returncode, 1)
        self.assertEqual(self.result("memcheck")["result"], "failed")

    def test_a_test_that_fails_under_a_sanitizer_is_no_finding_of_its(self):
        self.with_gpu()
        self.made_up_sanitizer()
        done = self.run_proof("memcheck", OUTPUT="========= ERROR SUMMARY: 0 errors",
                              THEN="[[ $words == *gtest_filter* ]] && exit 1")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.result("memcheck")["result"], "unfinished")
        self.assertEqual(self.result("memcheck")["finding"],
                         "nothing found in 3 of 4; failed without a finding: kernels (exit code 1)")

    def test_a_sanitizer_that_its_limit_ended_has_found_nothing(self):
        self.with_gpu()
        self.made_up_sanitizer()
        for tool in ("memcheck", "initcheck"):
            done = self.run_proof(tool, OUTPUT="", THEN='[[ $words == *"fp32 --bn train"* ]] && exit 124')
            self.assertEqual(done.returncode, 1)
            self.assertEqual(self.result(tool)["result"], "unfinished")
            self.assertRegex(self.result(tool)["finding"],
                             r"^nothing found in 3 of 4; not finished: fp32 train \(over [0-9]+ s\)$")
        self.run_proof("memcheck", OUTPUT="", THEN='case $words in *fp32*) exit 124 ;; *frozen*) exit 9 ;; esac')
        self.assertEqual(self.result("memcheck")["result"], "failed")
        self.assertRegex(self.result("memcheck")["finding"], "^memcheck: fp16 frozen, see above; "
                         "nothing found in 2 of 4; not finished: fp32 train")
        # What was found before the end counts.
        self.run_proof("memcheck", OUTPUT="", THEN="[[ $words == *fp32* ]] && "
                       "echo '========= Invalid __global__ read of size 4 bytes' && exit 124")
        self.assertEqual(self.result("memcheck")["finding"], "memcheck: fp32 train, see above; nothing found in 3 of 4")

    def test_a_sanitizer_is_given_what_it_knows(self):
        self.with_gpu()
        self.made_up_sanitizer()
        self.assertEqual(self.run_proof("memcheck", OUTPUT="", HELP="  --error-exitcode arg (=0)").returncode, 0)
        self.assertNotIn("--report-api-errors", (self.path / "sanitized").read_text())
        self.assertIn("this compute-sanitizer has no --leak-check: left out\n",
                      (self.path / "results/memcheck.txt").read_text())
        self.assertEqual(self.run_proof("memcheck", OUTPUT="", HELP="").returncode, 0)
        self.assertEqual(self.result("memcheck")["result"], "skipped")

    def test_a_sanitizer_is_not_begun_for_nothing(self):
        self.with_gpu()
        self.made_up_sanitizer()
        self.assertEqual(self.run_proof("memcheck", OUTPUT="", LIMIT="59").returncode, 0)
        self.assertEqual(self.result("memcheck")["finding"], "59 s are too little for it; give it a call of its own")

    def test_a_sanitizer_does_not_outlive_its_piece(self):
        self.with_gpu()
        self.made_up_sanitizer()
        # The piece is the parent of `timeout`, which is that of the sanitizer.
        self.run_proof("memcheck", OUTPUT="", THEN="""
            [[ $words == *gtest_filter* ]] && exit 0
            sleep 60 & echo $! >running
            read -r _ _ _ piece _ <"/proc/$PPID/stat"
            kill -TERM "$piece"
            wait""")
        left = pathlib.Path("/proc", (self.path / "running").read_text().strip(), "stat")
        self.assertTrue(not left.exists() or ") Z " in left.read_text(), "the sanitizer still runs")
        self.assertEqual(self.result("memcheck")["finding"], "cut off: nothing found in 1 of 4")

    # Started one by one or together, and whatever happens to one of them.
    def test_a_failed_piece_does_not_stop_the_others(self):
        self.with_gpu()
        self.command("build/bin/cuda_test", "exit 1")
        self.command("build/bin/golden", """[ $1 = --help ] && echo --device && exit
            [ $2 != "$BROKEN" ] || echo "FAIL $2/b.h5  is off"; echo "pass $2/a.h5  0.1"; [ $2 != "$BROKEN" ]""")
        done = self.run_proof("conformance", "golden", "losses-peers")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.result("conformance")["result"], "failed")
        self.assertEqual(self.result("conformance")["finding"], "no test ran")
        self.assertEqual(self.result("golden")["finding"], "3 passed, 0 failed")
        self.run_proof("golden", BROKEN="metrics")
        self.assertEqual((self.result("golden")["result"], self.result("golden")["finding"]), (
            "failed", "3 passed, 1 failed: metrics/b.h5; ended with an exit code: metrics 1"))
        self.run_proof("golden")
        self.assertEqual(self.result("losses-peers")["finding"], "build/bin/bench is not there; build it first")
        table = done.stdout[done.stdout.index("| piece |"):]
        self.assertEqual([line.split(" | ")[1] for line in table.splitlines()[2:]], ["failed", "passed", "skipped"])
        # A later call keeps what the earlier ones found.
        self.assertIn("| golden | passed |", self.run_proof("omniglot").stdout)

    def test_what_is_missing_is_skipped_with_a_reason(self):
        self.with_gpu()
        for program in ("bench", "train", "probe", "golden", "cuda_test"):
            self.command(f"build/bin/{program}", "echo old" if program == "golden" else "exit 0")
        names = ("golden", "replay", "omniglot", "step", "losses-peers")
        done = self.run_proof(*names, PYTHON="/nowhere/python3")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.result("golden")["finding"], "golden has no --device; build a newer version")
        self.assertEqual(self.result("replay")["finding"], "train has no --graph; build a newer version")
        self.assertEqual(self.result("step")["finding"], "bench step has no --precision; build a newer version")
        self.assertEqual(self.result("losses-peers")["finding"],
                         "/nowhere/python3 has no pytorch_metric_learning; PYTHON=... names another")
        for name in names:
            self.assertEqual(self.result(name)["result"], "skipped")

    def test_without_pytorch_ours_is_measured_alone(self):
        self.with_gpu()
        self.command("build/bin/bench", """
            case "$*" in *--version) exit ;; *--help) echo --precision --tune-seconds; exit ;; esac
            echo "$*" >>asked
            [[ "$*" == *"${STOP:-never}"* ]] && exit 4
            for word in "$@"; do [ "$before" = --json ] && printf '{\\n  "step_ms": 40.5,\\n  "total_ms": 380\\n}\\n' >"$word"
              before=$word; done""")
        nowhere = "/nowhere/python3"
        results = self.path / "results"
        self.assertEqual(self.run_proof("step", "step-compile", "tuned-train", "eval", PYTHON=nowhere).returncode, 0)
        alone = f"ours alone, because {nowhere} has no torch"
        self.assertEqual(self.result("step")["finding"], f"{alone}vision: train 256: 40.5 ms, frozen 256: 40.5 ms")
        self.assertEqual(self.result("step-compile")["result"], "skipped")
        self.assertEqual(self.result("tuned-train")["finding"], f"{alone}vision: train 256: 40.5 ms")
        self.assertEqual(self.result("eval")["finding"], f"{alone}: 380 ms")
        asked = (self.path / "asked").read_text().splitlines()
        self.assertEqual(asked[1:4], [
            "step --device cuda --precision fp16 --bn train --batch 256 --repeats 50 --json "
            f"{results}/step-train-256.json",
            "step --device cuda --precision fp16 --bn frozen --batch 256 --repeats 50 --json "
            f"{results}/step-frozen-256.json",
            f"step --device cuda --precision fp16 --bn train --batch 256 --tune {results}/nvidia-h200/"
            "plans-resnet50-fp16-train-256.txt --tune-seconds 100 --repeats 10 --json "
            f"{results}/tuned-train-train-256.json"])
        self.assertEqual(self.run_proof("step", PYTHON=nowhere, STOP="--bn train").returncode, 1)
        self.assertEqual(self.result("step")["finding"], f"{alone}vision: frozen 256: 40.5 ms; not: train 256")

    def test_the_loader_leaves_its_numbers(self):
        self.with_gpu()
        self.command("build/bin/bench", """
            case "$*" in *--version) exit ;; *--help) echo --precision; exit ;; esac
            [[ "$*" == loader*"--device cuda"* ]] || exit 2
            for word in "$@"; do [ "$before" = --json ] && echo '{"share": 1}' >"$word"; before=$word; done
            echo '900 images/s'; exit ${BROKEN:-0}""")
        self.assertEqual(self.run_proof("loader").returncode, 0)
        skipped = self.result("loader")
        self.assertEqual((skipped["result"], skipped["finding"]),
                         ("skipped", "tests/golden/images/files/q75_420.jpg is missing"))
        (self.path / "tests/golden/images/files").mkdir(parents=True)
        (self.path / "tests/golden/images/files/q75_420.jpg").touch()
        self.assertEqual(self.run_proof("loader").returncode, 0)
        found = self.result("loader")
        self.assertEqual((found["result"], found["finding"]), ("passed", "900 images/s"))
        for name in "loader", "loader-photos":
            self.assertEqual((self.path / f"results/{name}.json").read_text(), '{"share": 1}\n')
        self.assertEqual(self.run_proof("loader", BROKEN="4").returncode, 1)
        self.assertEqual(self.result("loader")["finding"], "bench loader --data glyphs ended with exit code 4")

    # `train` made up: what it finds depends on the graph alone where BROKEN is set.
    def made_up_train(self):
        self.command("build/bin/train", """
            [ "$1" = --version ] && exit
            [ "$1" = --help ] && echo --graph --precision && exec seq 50000  # more than a pipe holds
            for word in "$@"; do [ "$before" = --graph ] && graph=$word; [ "$before" = --out ] && out=$word
              before=$word; done
            mkdir -p "$out"
            [ "$graph" = "${NOTE:-}" ] && echo 'note: the step cannot be captured: no; its kernels are' >&2
            eval "salt=${BROKEN:-}"
            echo "{\\"loss\\": 0.25${BROKEN:+$graph$salt}, \\"seconds\\": $RANDOM.5}" >"$out/metrics.jsonl" """)

    def test_replay_compares_all_but_the_times(self):
        self.with_gpu()
        self.made_up_train()
        self.assertEqual(self.run_proof("replay").returncode, 0)
        self.assertEqual(self.result("replay")["result"], "passed")
        self.assertEqual(self.run_proof("replay", BROKEN="1").returncode, 1)
        self.assertEqual(self.result("replay")["finding"],
                         "graph on and off, batch norm train: the runs differ, see above")
        self.assertEqual(self.run_proof("replay", BROKEN="$RANDOM").returncode, 1)
        self.assertEqual(self.result("replay")["finding"],
                         "batch norm train: not deterministic without a graph either, see above")

    def test_a_replay_that_was_none_proves_nothing(self):
        self.with_gpu()
        self.made_up_train()
        self.assertEqual(self.run_proof("replay", NOTE="off").returncode, 0)
        self.assertEqual(self.run_proof("replay", NOTE="on").returncode, 1)
        self.assertEqual(self.result("replay")["finding"],
                         "graph on, batch norm train: the step was not captured, see above")

    # A run that is stopped times only some of the batches of an epoch.
    def test_resume_compares_a_stopped_run_with_a_whole_one(self):
        self.with_gpu()
        self.command("build/bin/train", """
            [ "$1" = --version ] && exit
            [ "$1" = --help ] && echo --precision && exit
            for word in "$@"; do [ "$before" = --out ] && out=$word; before=$word; done
            mkdir -p "$out"
            timed=
            [[ "$*" == *--resume* ]] && timed='"timed_batches":7,'
            for i in 1 2 3 4; do
              echo "{\\"epoch\\":$i,\\"seconds\\":$RANDOM.5,$timed\\"eval_seconds\\":0.$RANDOM}"
              [[ "$*" != *parts* || "$*" == *--resume* || $i != 3 ]] || ${STOP:-exec sleep 30}
            done >"$out/metrics.jsonl"
            echo weights >"$out/last.h5" """)
        self.assertEqual(self.run_proof("resume").returncode, 0, (self.path / "results/resume.txt").read_text())
        self.assertEqual(self.result("resume")["finding"], "last.h5 has the same bytes")
        self.assertEqual(self.run_proof("resume", STOP=":").returncode, 1)
        self.assertEqual(self.result("resume")["result"], "unfinished")
        self.assertRegex(self.result("resume")["finding"], "^the run was through before it could be stopped")

    def test_a_piece_that_takes_too_long_is_ended(self):
        self.with_gpu()
        self.command("build/bin/golden", "[ $1 = --help ] && echo --device && exit; sleep 30")
        done = self.run_proof("golden", LIMIT="1")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.result("golden")["result"], "over 1 s")

    def test_a_piece_has_a_limit_of_its_own(self):
        self.with_gpu()
        script = self.path / "tools/scripts/gpu_proof.sh"
        script.write_text(re.sub(r"(?m)^golden +[0-9]+ s", "golden              1 s", script.read_text()))
        self.command("build/bin/golden", "[ $1 = --help ] && echo --device && exit; echo 'pass a'; exec sleep 30")
        self.assertEqual(self.run_proof("golden").returncode, 1)
        self.assertEqual((self.result("golden")["result"], self.result("golden")["finding"]),
                         ("over 1 s", "cut off: 1 passed, 0 failed"))

    def test_a_piece_has_the_time_that_nothing_after_it_needs(self):
        self.with_gpu()
        script = self.path / "tools/scripts/gpu_proof.sh"
        script.write_text(re.sub(r"(?m)^(golden|replay) +[0-9]+ s", r"\1          2 s", script.read_text()))
        self.command("build/bin/golden", "[ $1 = --help ] && echo --device && exit; exec sleep 30")
        for words, seconds in ((("golden",), "[345]"), (("golden", "replay"), "[23]")):
            self.run_proof(*words, TIME="5")
            self.assertRegex(self.result("golden")["result"], f"^over {seconds} s$", words)

    # `bench` made up: a step is captured as it was asked for, or as CAPTURED says.
    def made_up_bench(self):
        self.command("build/bin/bench", """
            case "$*" in
              *--version) exit ;;
              *--help) echo --graph --precision --tune-seconds; exit ;;
            esac
            eval "${FIRST:-}"
            for word in "$@"; do [ "$before" = --graph ] && graph=$word; [ "$before" = --json ] && out=$word
              before=$word; done
            [ "${CAPTURED:-$graph}" = on ] && captured=true
            printf '{\\n  "captured": %s,\\n  "share": 0.4\\n}\\n' ${captured:-false} >"$out" """)

    def test_a_start_with_a_graph_is_a_replay_and_one_without_is_none(self):
        self.with_gpu()
        self.made_up_bench()
        self.assertEqual(self.run_proof("starts").returncode, 0)
        rows = (self.path / "results/starts.jsonl").read_text().splitlines()
        self.assertEqual([json.loads(row)["captured"] for row in rows], 4 * [True, False])
        for captured, other in (("off", "on"), ("on", "off")):
            self.assertEqual(self.run_proof("starts", CAPTURED=captured).returncode, 1)
            self.assertEqual(self.result("starts")["finding"], "8 of 8 ran; graph not as asked: " + ", ".join(
                f"{precision} {bn} graph {other}" for precision in ("fp16", "fp32") for bn in ("train", "frozen")))
        self.run_proof("starts", TEST_LIMIT="1", FIRST='[[ "$*" == *fp16*train*off* ]] && exec sleep 30')
        self.assertEqual(self.result("starts")["finding"], "7 of 8 ran, not: fp16 train graph off (over 1 s)")

    def test_losses_keep_their_rows_when_they_are_cut_off(self):
        self.with_gpu()
        self.made_up_bench()
        self.command("build/bin/probe", """
            [ "$1" = --version ] && exit
            [ "$1" = --help ] && printf 'Losses\\n  fastap text\\n  softmax_of_scores text\\n  triplet text\\n' && exit
            [ "$2" != softmax_of_scores ] && echo 'reads /embeddings'""")
        self.assertEqual(self.run_proof("losses").returncode, 0)
        text = (self.path / "results/losses.txt").read_text()
        self.assertEqual([line.split(":")[0] for line in text.splitlines() if "share of its floor" in line],
                         [f"{loss} {n}" for n in (4096, 384, 1024, 8192, 128) for loss in ("fastap", "triplet")])
        self.assertEqual(self.result("losses")["finding"], "10 measured, 10 more than twice their floor")
        for limit, test_limit, result, finding in (
                ("60", "1", "failed", "9 measured, 9 more than twice their floor; did not run: triplet 384"),
                ("3", "40", "over 3 s", "cut off: 3 measured, 3 more than twice their floor")):
            self.run_proof("losses", LIMIT=limit, TEST_LIMIT=test_limit,
                           FIRST='[[ "$*" == *triplet*384* ]] && exec sleep 30')
            self.assertEqual((self.result("losses")["result"], self.result("losses")["finding"]), (result, finding))
            rows = (self.path / "results/losses.jsonl").read_text().splitlines()
            self.assertEqual([json.loads(row)["share"] for row in rows], int(finding.split(" measured")[0][-1]) * [0.4])

    def test_a_profile_takes_the_plans_and_leaves_what_it_has(self):
        self.with_gpu()
        self.made_up_bench()
        self.command("tools/scripts/profile.sh", """
            echo "$*" >>asked
            mkdir -p build/profile
            echo '"ID"' >build/profile/step.csv
            echo 'a word of the profiler'
            ${STOP:-:}
            printf 'p.txt names an engine for 2 graphs\\n4 calls of 3 kernels, 9 us\\n' >build/profile/step.txt
            echo '{}' >build/profile/step.json""")
        self.assertEqual(self.run_proof("profile-train").returncode, 0)
        self.assertEqual(self.result("profile-train")["finding"],
                         "p.txt names an engine for 2 graphs; 4 calls of 3 kernels, 9 us")
        plans = "nvidia-h200/plans-resnet50-fp16-frozen-256.txt"
        for plan in (plans, plans.replace("h200", "h100")):
            (self.path / "results" / plan).parent.mkdir(exist_ok=True)
            (self.path / "results" / plan).write_text("# plans\n", encoding="utf-8")
        for name in ("profile-train", "profile-frozen"):
            self.run_proof(name)
        self.assertEqual((self.path / "asked").read_text().splitlines(),
                         2 * ["step build --batch 256 --bn train"] +
                         [f"step build --batch 256 --bn frozen --plans {self.path}/results/{plans}"])
        shutil.rmtree(self.path / "build/profile")
        self.run_proof("profile-train", LIMIT="1", STOP="exec sleep 30")
        self.assertEqual((self.result("profile-train")["result"], self.result("profile-train")["finding"]),
                         ("over 1 s", "cut off; last: a word of the profiler"))
        self.assertEqual((self.path / "results/table-profile-train.csv").read_text(), '"ID"\n')
        self.assertFalse((self.path / "results/table-profile-train.json").exists())

    def test_large_files_of_profilers_are_packed_apart(self):
        self.with_gpu()
        self.made_up_bench()
        self.command("tools/scripts/profile.sh", """
            mkdir -p build/profile
            head -c 3000000 /dev/urandom >build/profile/step.ncu-rep
            echo '{}' >build/profile/step.json""")
        for name in ("eval", "profile-train"):  # without and with such files
            self.run_proof(name, ARCHIVE=str(self.path / "all.tar.gz"))
        with tarfile.open(self.path / "all.tar.gz") as archive:
            names = archive.getnames()
        self.assertIn("./table-profile-train.json", names)
        self.assertNotIn("./table-profile-train.ncu-rep", names)
        with tarfile.open(self.path / "all-profiles.tar.gz") as archive:
            self.assertEqual(archive.getnames(), ["table-profile-train.ncu-rep"])

    def test_the_gpu_is_held_until_the_end(self):
        self.with_gpu()
        smi = (self.path / "bin/nvidia-smi").read_text()
        self.command("bin/nvidia-smi", smi.split("\n", 1)[1].replace(
            "-L)", "--loop=600) echo $$ >holder; exec sleep 30 ;;\n -L)"))
        self.command("build/bin/golden", "[ $1 = --help ] && echo --device && exit; kill -0 $(<holder) && echo held")
        self.run_proof("golden")
        self.assertIn("\nheld\n", (self.path / "results/golden.txt").read_text())
        with self.assertRaises(ProcessLookupError):
            os.kill(int((self.path / "holder").read_text()), 0)

    def test_what_compiles_longest_is_tested_first(self):
        self.with_gpu()
        self.command("build/bin/cuda_test", """case "$*" in
            *list_tests*) printf 'One.\n  A\nAll/GpuBranches.\n  B\nTwo.\n  C\nGpuStepTest.\n  D\n'
              printf 'CudaLosses.\n  AgreeWithTheCpu\n  E\n' ;;
            *) printf '%s\n' "$*" | grep -oE 'filter=[^ ]*' >>order ;;
            esac""")
        self.run_proof("conformance", PARALLEL="1")
        self.assertEqual((self.path / "order").read_text().split(),
                         [f"filter={name}" for name in ("All/GpuBranches.B", "GpuStepTest.D",
                                                        "CudaLosses.AgreeWithTheCpu", "One.A", "Two.C",
                                                        "CudaLosses.E")])

    def test_fusions_end_with_what_they_would_gain(self):
        self.with_gpu()
        self.command("build/bin/bench", """case "$*" in
            *--help) echo --fusions; exit ;;
            --version | *resnet20*) exit ;;
            esac
            echo "$*" >asked
            sums='of a 9 ms step, fusing only where it gains spares 1 ms'
            trap 'echo "$sums; stopped after 1 fusion"; echo stopped >&2; exit 143' TERM
            echo 'sums of the output  3  0.1 0.2 0.1 0.0  fp16 conv'
            ${STOP:-:}
            echo "$sums\"""")
        self.assertEqual(self.run_proof("fusions").returncode, 0)
        sums = "of a 9 ms step, fusing only where it gains spares 1 ms"
        self.assertEqual(self.result("fusions")["finding"], sums)
        self.assertEqual((self.path / "asked").read_text(), "step --device cuda --precision fp16 --batch 256 --bn train "
                         f"--repeats 10 --fusions --json {self.path}/results/fusions.json\n")
        self.run_proof("fusions", LIMIT="1", STOP="sleep 30")
        self.assertEqual((self.result("fusions")["result"], self.result("fusions")["finding"]),
                         ("over 1 s", f"cut off: {sums}; stopped after 1 fusion"))
        self.assertIn("fp16 conv", (self.path / "results/fusions.txt").read_text())

    def test_a_tuning_has_its_part_of_the_time(self):
        self.with_gpu()
        self.made_up_bench()
        self.command("bin/python", '[ "$1" = -c ] || echo "$*"')
        for limit, seconds in (("", 100), ("125", 45)):
            self.run_proof("tuned-train", PYTHON=str(self.path / "bin/python"), LIMIT=limit)
            self.assertRegex((self.path / "results/tuned-train.txt").read_text(),
                             f" --bn train --batch 256 .* --tune {self.path}/results/nvidia-h200 --tune-seconds {seconds} ")
        self.run_proof("tuned-train", PYTHON=str(self.path / "bin/python"), LIMIT="90")
        self.assertEqual(self.result("tuned-train")["result"], "skipped")

    def test_the_package_has_the_programs_that_pieces_call(self):
        pack = (ROOT / "tools/scripts/pack_gpu.sh").read_text()
        packed = " ".join(re.findall(r'(?m)^(?:programs|tests)="([^"]*)"', pack)).split()
        called = re.findall(r"need_bin ([a-z_]+)|need_flag --[a-z-]+ ([a-z]+)|\$bin/([a-z_]+)",
                            (ROOT / "tools/scripts/gpu_proof.sh").read_text())
        self.assertEqual(set(packed), {name for names in called for name in names if name})

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


class BesidePyTorch(Machine):
    """The scripts that need torch, with one that is made up, beside a `bench` that is."""

    def load(self, name):
        torch = mock.MagicMock(__version__="2.0")
        torch.backends.cudnn.version.return_value = 9
        torch.cuda.get_device_name.return_value = "a GPU"
        with mock.patch.dict(sys.modules, {"torch": torch, "torchvision": mock.MagicMock()}):
            spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/scripts/{name}.py")
            module = importlib.util.module_from_spec(spec)
            with mock.patch.object(sys, "dont_write_bytecode", True):
                spec.loader.exec_module(module)
        return module

    def main(self, module, *arguments):
        """Its exit code, what it printed, and what it wrote."""
        written, out = self.path / "out.json", io.StringIO()
        words = ["script", "--bench", str(self.path / "bin/bench"), "--json", str(written), *arguments]
        with mock.patch.object(sys, "argv", words), contextlib.redirect_stdout(out):
            code = module.main()
        return code, out.getvalue().splitlines(), json.loads(written.read_text())

    def bench(self, script):
        self.command("bin/bench", f"""echo "$*" >>"{self.path}/asked"
            for word in "$@"; do [ "$before" = --bn ] && bn=$word; [ "$before" = --json ] && out=$word
              before=$word; done
            {script}""")

    def steps(self, *arguments, theirs=lambda batch, bn, mode: 30):
        module = self.load("bench_pytorch")
        module.step_on_cuda = lambda options, batch, bn, mode: theirs(batch, bn, mode)
        return self.main(module, "--device", "cuda", "--bn", "train,frozen", "--batch", "256", "--rounds", "1",
                         *arguments)

    def test_a_ratio_of_each_batch_and_mode(self):
        self.bench("""[ $bn = train ] && ms=20 || ms=10; echo "{\\"step_ms\\": $ms}" >"$out" """)
        code, said, rows = self.steps("--modes", "eager,compile", theirs=lambda batch, bn, mode: {
            "eager": 30, "compile": 25}[mode])
        self.assertEqual((code, said[-1]),
                         (0, "train 256: 1.50 eager, 1.25 compile; frozen 256: 3.00 eager, 2.50 compile"))
        self.assertEqual(len(rows["rows"]), 4)

    def test_a_row_without_one_of_the_two_is_a_failure(self):
        self.bench("""[ $bn = train ] || { echo 'error: out of memory' >&2; exit 4; }
            echo '{"step_ms": 20}' >"$out" """)
        code, said, _ = self.steps()
        self.assertEqual((code, said[-1]),
                         (1, "1 of 2 did not run: frozen 256 (Rankine: error: out of memory); train 256: 1.50 eager"))
        self.bench("""echo '{"step_ms": 20}' >"$out" """)

        # A compiler raises anything.
        def theirs(batch, bn, mode):
            if bn == "train" or mode == "compile":
                raise AssertionError("of inductor")
            return 30

        code, said, rows = self.steps("--modes", "eager,compile", theirs=theirs)
        self.assertEqual((code, said[-1]), (1, "1 of 2 did not run: train 256 (PyTorch: AssertionError: of inductor); "
                                            "frozen 256: 1.50 eager"))
        self.assertEqual([row.get("why") for row in rows["rows"]],
                         2 * ["AssertionError: of inductor"] + [None, "AssertionError: of inductor"])

    # By events both, where ours also has the time from one result on the host to the next.
    def test_a_ratio_by_the_cards_clock(self):
        self.bench("""echo '{"step_ms": 20, "card_ms": 15}' >"$out" """)
        _, said, rows = self.steps("--rounds", "2")
        self.assertEqual([(row["ratio"], row["ratio_card"]) for row in rows["rows"]], 2 * [(1.5, 2.0)])
        self.assertIn("   ratio 1.50 (2.00 by the card's clock)   images/s", said[2])
        self.bench("""echo '{"step_ms": 20}' >"$out" """)
        self.assertNotIn("ratio_card", self.steps()[2]["rows"][0])

    def test_notes_plans_and_a_step_without_a_graph_are_told(self):
        self.bench("""echo 'note: slow' >&2
            echo '{"step_ms": 20, "graph": "on", "captured": false,
                   "plans": {"file": "/a/plans.txt", "named": 5, "taken": 3}}' >"$out" """)
        _, said, rows = self.steps()
        self.assertEqual([row["notes"] for row in rows["rows"]], 2 * [["note: slow"]])
        self.assertIn("  Rankine: note: slow", said)
        self.assertIn("batch 256, batch norm train: Rankine    20.00 ms, 3 of the 5 engines in plans.txt taken, "
                      "without a CUDA graph", said)

    def test_a_tuning_is_given_its_seconds_and_one_that_hangs_is_ended(self):
        self.bench("""[ $bn = train ] && exec sleep 30; echo '{"step_ms": 20}' >"$out" """)
        code, said, _ = self.steps("--tune", "folder", "--tune-seconds", "1", "--limit", "1")
        self.assertEqual((code, said[-1]), (1, "1 of 2 did not run: train 256 (Rankine: bench step was not through "
                                            "after 2 s); frozen 256: 1.50 eager"))
        asked = (self.path / "asked").read_text()
        self.assertIn("--tune folder/plans-resnet50-fp16-train-256.txt --tune-seconds 1\n", asked)

    def test_retrieval_draws_as_bench_eval_does(self):
        module = self.load("bench_retrieval_peers")

        class Number(float):
            def __getitem__(self, _):
                return self

        module.torch.randn.side_effect = [Number(10), Number(1)]
        module.torch.nn.functional.normalize.side_effect = lambda points: points
        points, _ = module.embeddings(mock.MagicMock(n=4, classes=2))
        self.assertEqual(points, 12)

    def test_another_recall_is_a_failure(self):
        module = self.load("bench_retrieval_peers")
        module.embeddings = lambda options: (None, None)
        module.timed = lambda search, *_: ({"why": "no faiss"} if search is module.with_faiss else
                                           {"total_ms": 50, "recall_at_1": 0.85})
        for recall, code, finding in (
                (0.841, 0, "2.00 times as fast as torch in fp32"),
                (0.83, 1, "R@1 is not that of Rankine (0.8300): torch matmul and topk, fp32 +0.0200, "
                 "torch matmul and topk, tf32 +0.0200")):
            self.bench(f"""echo '{{"total_ms": 25, "recall_at_1": {recall}}}' >"$out" """)
            got, said, _ = self.main(module)
            self.assertEqual((got, said[-1]), (code, finding))
        self.bench("exec sleep 30")
        got, said, _ = self.main(module, "--limit", "1")
        self.assertEqual((got, said[-1]), (1, "nothing to compare: bench eval was not through after 1 s"))


if __name__ == "__main__":
    unittest.main()
