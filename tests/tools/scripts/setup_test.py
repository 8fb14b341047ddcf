"""What is looked for before anything is built, and where: tools/scripts/setup.sh, tools/scripts/setup_cudnn.sh and the
Makefile on machines that are made up, and CMake beside a prefix of others' packages, as conda's is:
python3 tests/tools/scripts/setup_test.py"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Machine(unittest.TestCase):
    """A folder of its own, where commands are made up: those in `bin/` come first on the path."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        (self.path / "bin").mkdir()

    def command(self, name, script):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def run_it(self, *command, **variables):
        environment = {"PATH": f"{self.path}/bin:/usr/bin:/bin", "HOME": "/", "LC_ALL": "C"} | variables
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False,
                              env=environment, cwd=self.path)


class Packages(Machine):
    """Nothing but what pkg-config should find is missing."""

    def setUp(self):
        super().setUp()
        self.command("bin/g++", "cat >/dev/null")
        self.command("bin/ninja", "")
        self.command("bin/cmake", "echo cmake version 3.25.1")
        self.command("bin/id", "echo 0")
        self.command("bin/apt-get", f"echo $* >>{self.path}/apt")
        self.command("bin/dpkg-query", "echo -n installed")
        self.command("own/pkg-config", "[ $2 != hdf5 ]")

    def asked(self):
        path = self.path / "apt"
        return path.read_text().splitlines() if path.exists() else []

    def test_what_is_installed_is_not_installed_again(self):
        own = self.path / "own/pkg-config"
        done = self.run_it(ROOT / "tools/scripts/setup.sh", PKG_CONFIG=str(own))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (
            1, "", f"error: {own}: does not find what is installed as libhdf5-dev; unset PKG_CONFIG, which is {own}\n"))
        self.assertEqual(self.asked(), [])

    def test_what_is_not_installed_is(self):
        own = str(self.path / "own/pkg-config")
        self.command("bin/dpkg-query", "echo -n config-files")
        done = self.run_it(ROOT / "tools/scripts/setup.sh", PKG_CONFIG=own)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.asked()[1], "install -y --no-install-recommends libhdf5-dev")
        # One that is installed may not be found for want of one that is not.
        self.command("bin/dpkg-query", "[ ${*: -1} = zlib1g-dev ] || echo -n installed")
        self.command("own/pkg-config", "[ $2 != hdf5 ] && [ $2 != zlib ]")
        done = self.run_it(ROOT / "tools/scripts/setup.sh", PKG_CONFIG=own)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.asked()[3], "install -y --no-install-recommends libhdf5-dev zlib1g-dev")

    def test_a_prefix_is_looked_into_when_it_is_named(self):
        self.command("own/pkg-config", "[ $2 != hdf5 ] || [[ :$PKG_CONFIG_PATH: == *:/a/prefix/lib/pkgconfig:* ]]")
        self.command("bin/g++", 'cat >/dev/null; [[ " $* " == *" -isystem /a/prefix/include "* ]]')
        done = self.run_it(ROOT / "tools/scripts/setup.sh", PKG_CONFIG=str(self.path / "own/pkg-config"),
                           CMAKE_PREFIX_PATH="/none:/a/prefix")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    @unittest.skipUnless(os.path.exists("/usr/bin/pkg-config"), "the system has no pkg-config")
    def test_the_systems_pkg_config_is_asked_before_others(self):
        self.command("bin/pkg-config", f"touch {self.path}/asked; false")
        self.run_it(ROOT / "tools/scripts/setup.sh")
        self.assertFalse((self.path / "asked").exists())


class Cudnn(Machine):
    """A copy of the script on a machine with nvcc. What it fetches is made up."""

    def setUp(self):
        super().setUp()
        for header in ("/usr/include", "/usr/local/include"):
            if os.path.exists(f"{header}/cudnn_frontend.h"):
                self.skipTest("the system has the frontend's headers, so that nothing is fetched")
        self.command("bin/nvcc", "echo release 13.0,")
        self.command("scripts/fetch_wheel.sh", "mkdir -p $1/include; echo >$1/include/cudnn_frontend.h")
        shutil.copy(ROOT / "tools/scripts/setup_cudnn.sh", self.path / "scripts")

    def fetch(self, folder="third", **variables):
        return self.run_it("/bin/bash", "scripts/setup_cudnn.sh", folder, **variables)

    def test_headers_are_fetched_whole_and_once(self):
        done = self.fetch()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(os.listdir(self.path / "third"), ["include"])
        self.command("scripts/fetch_wheel.sh", "exit 1")
        self.assertEqual(self.fetch().stderr, "")

    def test_what_fails_leaves_the_build_going_on_without(self):
        said = "not fetched: nvidia-cudnn-frontend==1.17.0; the programs are built without cuDNN\n"
        (self.path / "file").touch()
        for folder, variables in (("third", {"TMPDIR": "/nonexistent"}), ("file/third", {})):
            done = self.fetch(folder, **variables)
            self.assertEqual((done.returncode, done.stderr[-len(said):]), (0, said), folder)
        self.command("scripts/fetch_wheel.sh", "exit 1")
        done = self.fetch()
        self.assertEqual((done.returncode, done.stderr), (0, said))


class Make(Machine):
    """A copy of the Makefile, whose scripts only note that they were called."""

    def setUp(self):
        super().setUp()
        for name in ("setup", "setup_cudnn"):
            self.command(f"tools/scripts/{name}.sh", f"echo {name} $*")
        shutil.copy(ROOT / "Makefile", self.path)

    def set_up(self, *arguments):
        done = self.run_it("make", "-s", "setup", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def test_nothing_is_fetched_for_the_gpu_where_it_is_left_out(self):
        both = ["setup", "setup_cudnn build/third_party"]
        self.assertEqual(self.set_up(), both)
        self.assertEqual(self.set_up("OPTIONS=-DRK_NATIVE=OFF -DCMAKE_CXX_FLAGS='-O1 -g'"), both)
        self.assertEqual(self.set_up("OPTIONS=-DRK_CUDA=OFF"), both[:1])
        self.assertEqual(self.set_up("OPTIONS=-DRK_NATIVE=OFF -DRK_CUDA:STRING=OFF"), both[:1])
        self.assertEqual(self.set_up("OPTIONS=-DRK_CUDA=OFF -DRK_CUDA=AUTO"), both)
        (self.path / "build").mkdir()
        (self.path / "build/CMakeCache.txt").write_text("RK_CUDA:STRING=OFF\n")
        self.assertEqual(self.set_up(), both[:1])
        self.assertEqual(self.set_up("OPTIONS=-DRK_CUDA=AUTO"), both)
        self.assertEqual(self.set_up("BUILD=other"), ["setup", "setup_cudnn other/third_party"])


class Prefix(Machine):
    """CMake's configuration of the tree, and a prefix with a few packages, a pkg-config and a library."""

    def setUp(self):
        super().setUp()
        self.command("prefix/bin/pkg-config", '[ "$1" = --version ] && echo 0.29.2')
        package = self.path / "prefix/lib/cmake/fmt/fmt-config.cmake"
        package.parent.mkdir(parents=True)
        package.write_text('message(FATAL_ERROR "the fmt of a folder in PATH")')
        self.library = self.path / "prefix/lib/libonnx_proto.so"
        self.library.touch()

    def configure(self, name, *arguments, **variables):
        """Where an installed program looks for libraries."""
        done = subprocess.run(["cmake", "--preset", "release", "-B", self.path / name, "-DRK_CUDA=OFF",
                               "-DBUILD_TESTING=OFF", *arguments], capture_output=True, text=True, check=False,
                              cwd=ROOT, env=os.environ | variables)
        if done.returncode and name == "plain":
            self.skipTest("nothing can be configured here without options")
        self.assertEqual(done.returncode, 0, done.stderr)
        script = (self.path / name / "cmake_install.cmake").read_text()
        return set(re.findall(r'\bRPATH "(.*)"\)', script))

    def test_only_packages_that_are_asked_for_are_not_the_systems(self):
        plain = self.configure("plain")
        path = f"{self.path}/prefix/bin:{os.environ['PATH']}"
        self.assertEqual(self.configure("in_path", PATH=path), plain)
        self.assertNotIn(f"{self.path}/prefix", (self.path / "in_path/build.ninja").read_text())
        shutil.rmtree(self.path / "prefix/lib/cmake")
        for name, arguments, variables in (
                ("option", [f"-DCMAKE_PREFIX_PATH={self.path}/prefix"], {}),
                ("variable", [], {"CMAKE_PREFIX_PATH": f"{self.path}/prefix", "PATH": path})):
            found = self.configure(name, *arguments, **variables)
            self.assertEqual(len(found), 1)
            self.assertIn(f"{self.path}/prefix/lib", found.pop().split(":"))
            self.assertIn(str(self.library), (self.path / name / "build.ninja").read_text())


if __name__ == "__main__":
    unittest.main()
