"""docs/architecture.md against the tree: python3 tests/tools/scripts/architecture_test.py"""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools/scripts"))
import plot_architecture as architecture  # noqa: E402
from missing_includes import missing_includes  # noqa: E402

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

    def test_what_a_file_uses_it_includes(self):
        files = [*sources(), *(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*")
                               if path.suffix in (".h", ".cpp", ".cu", ".cuh"))]
        self.assertEqual(missing_includes({file: (ROOT / file).read_text(encoding="utf-8") for file in files}), [])

    def test_a_missing_include_is_seen(self):
        tree = {
            "a/all.h": '#include "a/base.h"\n#include "a/kinds.h"\n',
            "a/base.h": "#define RK_TWICE(x) (2 * (x))\nnamespace rk {\n\ninline constexpr int kLeast = 1, kMost = 2;\n"
                        "template <class T>\nstd::vector<T> sorted(\n    std::vector<T> x);\n"
                        "int size_of(int x);\n\n}\n",
            "a/kinds.h": "namespace rk::kinds {\n\nenum class Kind : int { kOne };\nusing Name = std::string;\n"
                         "template <class T> class Box {\n public:\n  int count() const;\n};\n\n}\n",
            "a/user.h": "namespace rk::kinds {\n\nclass Box;\nvoid look(const Box& box);\n\n}\n",
            "tests/made.h": "namespace rk {\n\nint made(int x);\n\n}\n",
        }

        def missing(body, *included, file="b/x.cpp"):
            text = "".join(f'#include "{name}"\n' for name in included) + f"\nnamespace rk {{\n\n{body}\n\n}}\n"
            found = missing_includes({**tree, file: text})
            return [re.fullmatch(rf"{file}:\d+: uses (\w+), but nothing that it includes leads to (.*)", line).groups()
                    for line in found]

        for name, use in [("RK_TWICE", "int f() { return RK_TWICE(3); }"), ("kMost", "int f() { return kMost; }"),
                          ("sorted", "auto f() { return sorted<int>({}); }"),
                          ("size_of", "int f() { return rk::size_of(1); }"),
                          ("size_of", "int size(int x);\nvoid f() {\n  const Memory y(0, size_of(1));\n}"),
                          ("size_of", "void f() {\n  const int size_of = 1;\n}\nint g() { return size_of(1); }")]:
            self.assertEqual(missing(use), [(name, "a/base.h")])
            self.assertEqual(missing(use, "a/user.h"), [(name, "a/base.h")])
            self.assertEqual(missing(use, "a/all.h"), [])
        for name, use in [("Kind", "auto f() { return kinds::Kind::kOne; }"),
                          ("Name", "void f(const kinds::Name& name);"),
                          ("Box", "class Boxes : public kinds::Box<int> {\n};")]:
            self.assertEqual(missing(use, "a/base.h"), [(name, "a/kinds.h")])
            self.assertEqual(missing(use, "a/all.h"), [])
        self.assertEqual(missing("int f() { return 1; }\nint g() { return size_of(f()); }"), [("size_of", "a/base.h")])
        self.assertEqual(missing("int f() { return made(1); }"), [])
        self.assertEqual(missing("int f() { return made(1); }", file="tests/x.cpp"), [("made", "tests/made.h")])
        # A reference needs no definition, but whoever takes one mostly calls something.
        self.assertEqual(missing("void f(const kinds::Box& box);", "a/user.h", file="b/x.h"), [])
        use = "int f(const kinds::Box& box) { return box.count(); }"
        self.assertEqual(missing(use, "a/user.h"), [("Box", "a/kinds.h")])

    def test_what_is_no_name_of_a_header_is_included(self):
        header = {"a.h": "namespace rk {\n\nint size_of(int x);\nclass Size {\n};\n\n}\n"}
        for text in ["// size_of(1)\n", "/* size_of(1) */\n", 'auto text = "size_of(1)" R"(size_of(1))";\n',
                     "int f(X x) { return x.size_of(1) + x->size_of(2) + std::size_of(3) + X::size_of(4); }\n",
                     "int size_of(long x);\nint f() { return size_of(1); }\n",
                     "class X {\n  int size_of(int x);\n};\nint X::f() { return size_of(1); }\n",
                     "int f(int size_of) { return size_of; }\n",
                     "int f() {\n  int a = 1, size_of = 2;\n  return size_of;\n}\n",
                     "void f() {\n  const auto size_of = [] { return 1; };\n  g(size_of());\n}\n",
                     "void f() {\n  const auto& [a, size_of] = g();\n  g(size_of);\n}\n",
                     "template <class Size> Size f(Size x);\n", "class Size;\nvoid f(const Size& x);\n",
                     "struct X {\n  using Size = int;\n  Size size;\n};\n", "TEST(Size, IsSmall) {\n}\n"]:
            self.assertEqual(missing_includes({**header, "x.cpp": text}), [], text)
        base = {"base.h": "class Base {\n protected:\n  int size_of(int x);\n};\n"}
        text = '#include "base.h"\nclass X : public Base {\n  int f() { return size_of(1); }\n};\n'
        self.assertEqual(missing_includes({**header, **base, "x.cpp": text}), [])

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
