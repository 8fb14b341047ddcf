"""tools/scripts/profile_table.py on what ncu writes (tests/tools/scripts/ncu), and tools/scripts/profile.sh with
profilers that only note how they were called: python3 tests/tools/scripts/profile_test.py"""
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = HERE.parents[2] / "tools" / "scripts"
RAW, DETAILS = HERE / "ncu/raw.csv", HERE / "ncu/details.csv"


def run(*command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)


def table(*arguments):
    return run(sys.executable, TOOLS / "profile_table.py", *arguments)


class Table(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def result(self, *arguments):
        done = table(*arguments, "--json", self.path / "out.json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads((self.path / "out.json").read_text()), done.stdout

    def test_both_pages_say_the_same(self):
        def rounded(found):
            return json.loads(json.dumps(found), parse_float=lambda text: round(float(text), 9))

        raw, _ = self.result(RAW, "--gpu", "H200")
        details, _ = self.result(DETAILS, "--gpu", "NVIDIA H200")
        self.assertEqual(rounded(raw), rounded(details))

    def test_a_kernel_is_the_sum_of_its_calls(self):
        found, text = self.result(RAW, "--gpu", "H200")
        self.assertAlmostEqual(found["microseconds"], 100)
        kernel = found["kernels"][0]
        self.assertIn("cutlass::Kernel2", kernel["kernel"])
        self.assertEqual(kernel["calls"], 2)
        self.assertAlmostEqual(kernel["microseconds"], 50)
        self.assertAlmostEqual(kernel["share"], 0.5)
        self.assertAlmostEqual(kernel["bytes"], 4e6)
        self.assertAlmostEqual(kernel["gb_per_second"], 80)
        self.assertAlmostEqual(kernel["bandwidth_share"], 80 / 4800)
        # 40 us at 50 % and 10 us at 100 %.
        self.assertAlmostEqual(kernel["tensor_share"], 0.6)
        self.assertAlmostEqual(kernel["tflops"], 0.6 * 989)
        self.assertEqual([line["calls"] for line in found["kernels"]], [2, 1, 1])
        self.assertIn("    1  30.0  30.0 %  96.0  3200     67 %     0 %        0  "
                      "rk::apply_kernel<rk::BatchNormApply<__half>>\n", text)
        self.assertIn("rk::(anonymous namespace)::step_kernel\n", text)

    def test_a_range_is_the_sum_of_its_kernels(self):
        found, text = self.result(RAW, "--gpu", "H200")
        self.assertEqual([(line["range"], line["calls"], round(line["microseconds"])) for line in found["ranges"]],
                         [("layer1.0.conv1", 2, 50), ("layer1.0.bn1", 1, 30), ("", 1, 20)])
        self.assertTrue(text.endswith("(none)\n"))

    def test_without_a_gpu_there_is_no_share_of_a_peak(self):
        found, text = self.result(RAW)
        self.assertNotIn("bandwidth_share", found["kernels"][0])
        self.assertNotIn("tflops", found["kernels"][0])
        self.assertIn("without --gpu", text)
        found, _ = self.result(RAW, "--device-bandwidth", 160, "--tensor-tflops", 10)
        self.assertAlmostEqual(found["kernels"][0]["bandwidth_share"], 0.5)
        self.assertAlmostEqual(found["kernels"][0]["tflops"], 6)

    def test_cards_of_one_name_are_told_apart(self):
        for name, bandwidth in (("NVIDIA A100-SXM4-40GB", 1555), ("NVIDIA A100-SXM4-80GB", 2039),
                                ("NVIDIA H100 80GB HBM3", 3352), ("NVIDIA H100 PCIe", 2039),
                                ("NVIDIA H200", 4800), ("NVIDIA GH200 480GB", 4000), ("NVIDIA GH200 144G HBM3e", 4900)):
            self.assertEqual(self.result(RAW, "--gpu", name)[0]["device_bandwidth"], bandwidth, name)

    def test_a_name_is_no_part_of_another(self):
        done = table(RAW, "--gpu", "NVIDIA XH200")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--gpu NVIDIA XH200: not known", done.stderr)

    def test_tf32_has_half_the_rate(self):
        for precision, tflops in (("tf32", 494.5), ("bf16", 989)):
            found, _ = self.result(RAW, "--gpu", "H200", "--precision", precision)
            self.assertAlmostEqual(found["kernels"][0]["tflops"], 0.6 * tflops)

    def test_top_says_what_it_leaves_out(self):
        self.assertIn("2 more take 50.0 %", self.result(RAW, "--top", 1)[1])

    def test_read_and_written_bytes_and_values_that_are_missing(self):
        head = '"ID","Process ID","Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.sum"'
        (self.path / "a.csv").write_text(head + '\n"","","","Mbyte","byte","us"\n"0","1","a(int)","2","500,000","10"\n'
                                         '"1","1","b(int)","n/a","1","10"\n', encoding="utf-8")
        found, _ = self.result(self.path / "a.csv")
        self.assertAlmostEqual(found["kernels"][0]["bytes"], 2.5e6)
        self.assertNotIn("bytes", found["kernels"][1])
        self.assertEqual(found["ranges"], [])

    def refused(self, text, said, *arguments):
        path = self.path / "bad.csv"
        path.write_text(text, encoding="utf-8")
        done = table(path, *arguments)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stderr, f"error: {path}: {said}\n")

    def test_what_is_no_table_is_refused_in_a_line(self):
        self.refused("", "no table in it; expected the output of ncu --csv")
        self.refused("==PROF== Connected\n==WARNING== No kernels were profiled.\n",
                     "no table in it; ncu profiled no kernel; see that the range of --nvtx-include is in the program")
        self.refused("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n",
                     "no table in it; ncu may not read the GPU's counters (ERR_NVGPUCTRPERM); run it as root")
        self.refused("==ERROR== Failed to find metric sm__x\n", "no table in it; ncu: Failed to find metric sm__x")
        self.refused('"ID","Name"\n', "no column Kernel Name; expected the output of ncu --csv")
        self.refused('"ID","Kernel Name"\n', "the table is cut off below its header; profile again")
        self.refused('"ID","Kernel Name"\n"",""\n"0"\n', "a row has 1 columns, the header 2; profile again")
        self.refused('"ID","Kernel Name"\n"",""\n"0","a"\n',
                     "no kernel with gpu__time_duration.sum in it; give ncu that metric")
        self.refused('"ID","Kernel Name","gpu__time_duration.sum"\n"","","cycle"\n"0","a","5"\n',
                     "gpu__time_duration.sum is in cycle; expected one of "
                     "ns, nsecond, us, usecond, ms, msecond, s, second")

    def test_flags_and_files_that_cannot_be_meant(self):
        for arguments, code, said in (
                ([RAW, "--gpu", "Voodoo"], 2,
                 "error: --gpu Voodoo: not known; give its --device-bandwidth and --tensor-tflops; see --help\n"),
                ([self.path / "none.csv"], 3, f"error: {self.path / 'none.csv'}: cannot be read "
                 "(No such file or directory); give the file that ncu --csv wrote\n")):
            done = table(*arguments)
            self.assertEqual((done.returncode, done.stderr), (code, said))


class Capture(unittest.TestCase):
    """A machine whose commands are made up: each notes its words in the file `said`."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        (self.path / "build/bin").mkdir(parents=True)
        self.command("build/bin/bench", "echo 'note: a word of bench'; echo '53 convolutions by cuDNN'")

    def command(self, name, script):
        path = self.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/bash\necho "{path.name} $*" >>"{self.path}/said"\n{script}\n', encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def with_gpu(self):
        self.command("bin/nvidia-smi", "case $1 in -L) echo 'GPU 0: NVIDIA H200' ;; *) echo 'NVIDIA H200' ;; esac")

    def with_compute(self, script):
        self.command("bin/ncu", """
            [ "$1" = --version ] && echo 'Version 2025.3' && exit
            for word in "$@"; do
              [ "$before" = --log-file ] && csv=$word
              [ "$before" = --export ] && report=$word.ncu-rep
              [ "$word" = build/bin/bench ] && break
              before=$word
            done
            build/bin/bench
            """ + script)

    def calls_of_ncu(self, said):
        return [line for line in said if line.startswith("ncu --nvtx")]

    def with_systems(self):
        self.command("bin/nsys",
                     'for word in "$@"; do case $word in --output=*) echo report >"${word#*=}.nsys-rep" ;; esac; done')

    def profile(self, *arguments, **variables):
        environment = {"PATH": f"{self.path}/bin:/usr/bin:/bin", "HOME": os.environ.get("HOME", "/")} | variables
        done = run("/bin/bash", TOOLS / "profile.sh", *arguments, env=environment, cwd=self.path)
        said = self.path / "said"
        return done, said.read_text().splitlines() if said.exists() else []

    def refused(self, code, said, *arguments):
        done, _ = self.profile(*arguments)
        self.assertEqual((done.returncode, done.stderr), (code, said))

    def test_without_a_gpu_or_profilers_it_says_so_in_a_line(self):
        self.refused(2, "error: what: no such profile; use step or loss\n", "what", "build")
        if not (self.path / "bin/nvidia-smi").exists() and not os.path.exists("/usr/bin/nvidia-smi"):
            self.refused(5, "error: no NVIDIA GPU here (nvidia-smi lists none); run this on a machine that has one\n",
                         "step", "build")
        self.with_gpu()
        self.refused(3, "error: elsewhere/bin/bench is not there; build it with make\n", "step", "elsewhere")
        if not os.path.exists("/usr/local/cuda/bin/ncu") and not os.path.exists("/opt/nvidia"):
            self.refused(5, "error: neither nsys nor ncu was found; install nsight-systems and nsight-compute of "
                         "NVIDIA's repository\n", "step", "build")

    def test_both_profilers_look_at_one_repeat(self):
        self.with_gpu()
        self.with_systems()
        self.with_compute(f'cp {RAW} "$csv"')
        done, said = self.profile("loss", "build", "--loss", "fastap", "--n=64")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        ours = "build/bin/bench loss --device cuda --dim 512 --repeats 3 --loss fastap --n=64"
        systems = next(line for line in said if line.startswith("nsys profile"))
        self.assertIn("--capture-range=nvtx --nvtx-capture=measured@rankine --capture-range-end=stop", systems)
        self.assertTrue(systems.endswith(f"--output=build/profile/loss {ours}"), systems)
        compute, = self.calls_of_ncu(said)
        self.assertIn("--nvtx --nvtx-include rankine@measured/ --clock-control none", compute)
        self.assertTrue(compute.endswith(f"--log-file build/profile/loss.csv {ours}"), compute)
        self.assertIn("4 calls of 3 kernels, 100.0 us; peak: 4800 GB/s", done.stdout)
        for name in ("loss.csv", "loss.txt", "loss.json", "loss.nsys-rep", "loss.kernels.txt"):
            self.assertTrue((self.path / "build/profile" / name).exists(), name)

    def test_the_table_is_taken_from_the_report_where_ncu_prints_none(self):
        self.with_gpu()
        self.command("bin/ncu", f"""[ "$1" = --import ] && exec cat {RAW}
            while [ $# -gt 0 ]; do case $1 in
              --log-file) echo '==PROF== Report: loss.ncu-rep' >"$2" ;;
              --export) echo report >"$2.ncu-rep" ;;
            esac; shift; done""")
        done, said = self.profile("loss", "build")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(said[-1], "ncu --import build/profile/loss.ncu-rep --csv --page raw --print-units base")
        self.assertIn("4 calls of 3 kernels, 100.0 us", done.stdout)

    def test_a_step_is_taken_without_its_graph(self):
        self.with_gpu()
        self.with_compute(f'cp {RAW} "$csv"')
        done, said = self.profile("step", "build", "--bn", "frozen")
        self.assertEqual(done.returncode, 0)
        if not os.path.exists("/usr/local/cuda/bin/nsys"):
            self.assertIn("no time line: nsys was not found", done.stdout)
        compute, = self.calls_of_ncu(said)
        self.assertTrue(compute.endswith("bench step --device cuda --arch resnet50 --batch 128 --precision fp16 "
                                         "--graph off --repeats 3 --bn frozen"), compute)

    def test_the_table_has_what_ran_and_what_that_said(self):
        self.with_gpu()
        self.with_compute(f'cp {RAW} "$csv"')
        for plans in ([], ["--plans", "p.txt"]):
            done, _ = self.profile("step", "build", *plans)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            text = (self.path / "build/profile/step.txt").read_text()
            self.assertTrue(text.startswith("NVIDIA H200: build/bin/bench step --device cuda "))
            self.assertIn("\nnote: a word of bench\n53 convolutions by cuDNN\n", text)
            self.assertEqual("\nwithout plans\n" in text, not plans)
            self.assertIn("\n4 calls of 3 kernels", text)
            self.assertIn("Version 2025.3\n", done.stdout)
            self.assertIn('\n"ID","Process ID"', done.stdout)

    def test_a_table_of_tf32_has_its_rate(self):
        self.with_gpu()
        self.with_compute(f'cp {RAW} "$csv"')
        for flags in (["--precision", "tf32"], ["--precision=tf32"]):
            done, _ = self.profile("step", "build", *flags)
            self.assertIn("peak: 4800 GB/s, 494.5 TFLOP/s", done.stdout)

    # As a terminal would: what is there by then is used. Nothing is left of an earlier profile.
    def test_a_profiler_that_takes_too_long_is_interrupted(self):
        self.with_gpu()
        self.with_compute(f"""sleep 30 & trap 'kill $!; cp {RAW} "$csv"; exit 1' INT; wait""")
        (self.path / "build/profile").mkdir()
        (self.path / "build/profile/step.json").write_text("old", encoding="utf-8")
        done, _ = self.profile("step", "build", LIMIT="1")
        self.assertEqual((done.returncode, done.stderr), (5, ""))
        self.assertIn("ncu was interrupted or failed: the table is of what it has", done.stdout)
        self.assertIn("4 calls of 3 kernels", (self.path / "build/profile/step.txt").read_text())
        self.with_compute("exec sleep 30")
        done, _ = self.profile("step", "build", LIMIT="1")
        self.assertEqual(done.returncode, 5)
        self.assertFalse((self.path / "build/profile/step.json").exists())

    def test_a_failed_profiler_gives_its_reason(self):
        self.with_gpu()
        self.with_compute('echo "==ERROR== ERR_NVGPUCTRPERM - no permission" >"$csv"; exit 1')
        done, _ = self.profile("loss", "build")
        self.assertEqual(done.returncode, 5)
        self.assertEqual(done.stderr, "error: ncu failed: this user may not read the GPU's counters "
                         "(ERR_NVGPUCTRPERM); run it as root (all of it is in build/profile/loss.ncu.log)\n")

    def test_a_gpu_without_the_metric_of_tensor_cores_is_profiled_without_it(self):
        self.with_gpu()
        refuse = 'echo "==ERROR== Failed to find metric sm__pipe" >"$csv"; exit 1'
        self.with_compute(f'case "$*" in *sm__pipe*) {refuse} ;; esac; cp {RAW} "$csv"')
        done, said = self.profile("loss", "build")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        _, without = self.calls_of_ncu(said)
        self.assertIn("--metrics gpu__time_duration.sum,dram__bytes.sum --csv", without)
        self.assertIn("ncu does not know the metric of tensor cores", done.stdout)
        self.assertIn("4 calls of 3 kernels, 100.0 us", done.stdout)

    def test_a_program_without_the_range_is_told_from_a_failure(self):
        self.with_gpu()
        self.with_compute('echo "==WARNING== No kernels were profiled." >"$csv"')
        done, _ = self.profile("loss", "build")
        self.assertEqual(done.returncode, 5)
        self.assertIn("ncu profiled no kernel", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
