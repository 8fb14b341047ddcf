"""docs/architecture.md against the tree: python3 tests/tools/scripts/architecture_test.py"""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools/scripts"))
import plot_architecture as architecture  # noqa: E402

FOLDERS = ["engine", "kernels", "layers", "losses", "data", "weights", "retrieval", "training", "tools"]
BACK_ENDS = ["cuda", "cudnn", "onednn", "mpi", "nccl", "absent", "gpu"]
SIDE_BY_SIDE = 28


def sources():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".cu", ".cuh"):
                yield path.relative_to(ROOT).as_posix()


def includes():
    """[(file, included)] of all sources."""
    return [(file, included) for file in sources()
            for included in re.findall(r'^#include "([^"]+)"', (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)]


def module_of(path, table):
    """Of a file's path: its folder, or the module in which that is a back end."""
    folder = path.rsplit("/", 1)[0]
    if folder == "kernels/absent":
        folder = "kernels/cuda"
    while folder not in table and folder.rsplit("/", 1)[-1] in BACK_ENDS:
        folder = folder.rsplit("/", 1)[0]
    return folder if folder in table else None


def wrong_arrows(arrows, table):
    """Of [(file, included)] those that the table does not allow."""
    wrong = []
    for file, included in arrows:
        a, b = module_of(file, table), module_of(included, table)
        if a is None or b is None or (a != b and b not in architecture.may_use(table, a)):
            wrong.append(f"{file} includes {included}")
    return wrong


def missing_files(text, folder):
    """Files that comments name by their path, from the root or from `folder`, and that are not there."""
    named = re.findall(r"(?<![\w./*<])((?:[\w.]+/)+\w+\.(?:h|cpp|cu|cuh|md|py|sh|toml))\b",
                       "\n".join(re.findall(r"//.*", text)))
    return [name for name in named if not ((ROOT / name).is_file() or (folder / name).is_file())]


def defined_twice(headers):
    """Of {file: its text} the types that two headers define in one namespace: no compiler sees that they differ."""
    first, twice = {}, []
    for file, text in headers.items():
        space = re.search(r"^namespace (rk\S*) \{", text, re.MULTILINE)
        for name in re.findall(r"^(?:template <.*> )?(?:struct|class|enum class) (\w+)(?: final)?(?: :.*)? \{", text, re.MULTILINE):
            if (other := first.setdefault((space and space[1], name), file)) != file:
                twice.append(f"{name}: {other} and {file}")
    return twice


def asks_for_the_device(text):
    return re.search(r"^(?!\s*//).*\bon_gpu\(\)", text, re.MULTILINE) is not None


class Architecture(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
        cls.table = architecture.modules(cls.page)

    def test_every_include_goes_down(self):
        self.assertGreater(len(includes()), 1000)
        self.assertEqual(wrong_arrows(includes(), self.table), [])

    def test_every_dependency_is_used(self):
        unused = {(module, other) for module in self.table for other in self.table[module]}
        for file, included in includes():
            unused.discard((module_of(file, self.table), module_of(included, self.table)))
        self.assertEqual(unused, set())

    def test_an_include_that_goes_up_is_seen(self):
        for file, included in [("engine/tape/program.cpp", "layers/linear.h"), ("losses/frame/loss.h", "losses/entries.h"),
                               ("kernels/team.h", "kernels/rows/auc_row.h"), ("layers/onednn/x.cpp", "training/trainer.h"),
                               ("engine/device/cuda/graph.cpp", "engine/tape/program.h"), ("engine/new/x.h", "kernels/team.h")]:
            self.assertEqual(wrong_arrows([(file, included)], self.table), [f"{file} includes {included}"])

    def test_who_asks_for_the_device_is_on_the_page(self):
        table = re.search(r"^## Where CPU and GPU code branch\n(.*?)^## ", self.page, re.MULTILINE | re.DOTALL)[1]
        told = {name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(.*?)`", row)}
        asks = {file for file in sources() if not file.startswith("engine/") and module_of(file, self.table)
                and file.endswith((".h", ".cpp")) and asks_for_the_device((ROOT / file).read_text(encoding="utf-8"))}
        self.assertEqual(asks, told)

    def test_an_ask_is_seen(self):
        self.assertTrue(asks_for_the_device("  if (context.on_gpu()) return;\n"))
        self.assertTrue(asks_for_the_device("  x(program.on_gpu()),\n"))
        self.assertFalse(asks_for_the_device("// what Program::on_gpu() says\n  if (is_on_gpu<Kernel>()) {\n"))

    def test_files_that_comments_name_are_there(self):
        for path in [ROOT / source for source in sources()] + [*(ROOT / "tests").rglob("*.h"),
                                                               *(ROOT / "tests").rglob("*.cpp")]:
            self.assertEqual(missing_files(path.read_text(encoding="utf-8"), path.parent), [], path)
        gone = "// As in layers/gone.h and (engine/base/error.h)."
        self.assertEqual(missing_files(gone, ROOT), ["layers/gone.h"])

    def test_files_that_use_openmp_are_compiled_with_it(self):
        listed = re.search(r"set_source_files_properties\(([^)]*?) PROPERTIES\s+COMPILE_OPTIONS \"\$\{OpenMP_CXX_FLAGS\}\"",
                           (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1].split()
        use = [file for file in sources() if "_OPENMP" in (ROOT / file).read_text(encoding="utf-8")]
        self.assertEqual(sorted(use), sorted(listed))

    def test_a_name_is_one_types(self):
        headers = {file: (ROOT / file).read_text(encoding="utf-8") for file in sources() if file.endswith((".h", ".cuh"))}
        self.assertEqual(defined_twice(headers), [])
        text = "namespace rk {\n\nstruct A {\n};\ntemplate <class T> class A<T> {\n"
        self.assertEqual(defined_twice({"a.h": text}), [])
        self.assertEqual(defined_twice({"a.h": text, "b.h": text.replace("struct A", "template <class T> class A")}),
                         ["A: a.h and b.h"])
        self.assertEqual(defined_twice({"a.h": text, "b.h": text.replace("rk", "rk::b")}), [])

    def test_no_circles(self):
        for module in self.table:
            self.assertNotIn(module, architecture.may_use(self.table, module))

    def test_every_module_is_there_and_has_files(self):
        full = {module_of(file, self.table) for file in sources()}
        self.assertEqual(set(self.table), full)

    def test_no_folder_is_crowded(self):
        crowded = []
        ours = [*FOLDERS, "tests", "docs", "recipes", "cmake"]  # beside them a user may keep pictures
        for path in (path for folder in ours for path in (ROOT / folder).glob("**/")):
            name = path.relative_to(ROOT).as_posix()
            if re.match(r"tests/golden|tests/fuzz/corpus", name):
                continue
            count = sum(1 for file in path.iterdir() if file.is_file() and file.name != "__pycache__")
            if count > SIDE_BY_SIDE:
                crowded.append(f"{name}: {count} files")
        self.assertEqual(crowded, [])

    def test_walks_name_modules(self):
        for title in architecture.WALKS:
            steps = architecture.walk(self.page, title)
            self.assertEqual([number for number, _ in steps], list(range(1, len(steps) + 1)))
            self.assertEqual([module for _, module in steps if module not in self.table], [])

    def test_the_drawing_is_the_pages(self):
        for name, look in architecture.LOOKS.items():
            drawn = (ROOT / f"docs/architecture_{name}.svg").read_text(encoding="utf-8")
            self.assertEqual(drawn, architecture.draw(self.page, look), "run tools/scripts/plot_architecture.py")


if __name__ == "__main__":
    unittest.main()
