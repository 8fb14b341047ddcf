"""Holds the table of cases in docs/robustness.md against the tests: all 72 are there, and every test
that is named exists."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


def defined_tests():
    macro = re.compile(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", re.MULTILINE)
    return {".".join(found) for source in (ROOT / "tests").rglob("*.cpp")
            for found in macro.findall(source.read_text())}


def main():
    page = (ROOT / "docs/robustness.md").read_text()
    wrong = []
    rows = re.findall(r"^\| (\d+) \| [^|]+ \| ([^|]+) \|$", page, re.MULTILINE)
    if [int(number) for number, _ in rows] != list(range(1, 73)):
        wrong.append("the cases are not 1 to 72, each once and in order")
    tests = defined_tests()
    for number, what in rows:
        named = re.findall(r"`(\w+\.\w+)`", what)
        wrong += [f"case {number}: no test is called {name}" for name in named if name not in tests]
        if not named and not re.search("waits for|there are none", what):
            wrong.append(f"case {number}: neither a test nor what it waits for")
    if wrong:
        sys.exit("docs/robustness.md: " + "\ndocs/robustness.md: ".join(wrong))


if __name__ == "__main__":
    main()
