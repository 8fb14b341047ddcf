"""Names that a source file uses although nothing that it includes declares them. No compiler sees this where several
files are compiled as one: another one's #include stands in for the missing one.

It relies on clang-format: what a namespace declares begins at column 0, what a class declares two columns inside of it,
and the star of a pointer's declaration stands at its type. What may be a member or a local is taken for one.
"""
import re

NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
                     r"|(?<!\w)'(?:\\.|[^'\\\n])+'", re.DOTALL)  # 1'000 has no literal
NO_USE = re.compile(r"^ *# *(?:include|pragma|error).*|\bTEST\(\w+, \w+\)", re.MULTILINE)
INCLUDE = re.compile(r'^ *# *include "([^"]+)"', re.MULTILINE)
MACRO = re.compile(r"^ *# *define +(\w+)", re.MULTILINE)
DIRECTIVE = re.compile(r"^ *#(?:.*\\\n)*.*", re.MULTILINE)
NAMESPACE = re.compile(r"^namespace ([\w:]+) \{", re.MULTILINE)
TYPE = re.compile(r"(?:template )?(?:requires .* )?(class|struct|union|enum class|enum|concept|using) "
                  r"(?:alignas\(.*?\) )?(\w+)\b(?! ?::)")
CLASS = re.compile(r"^( *)(?:template <.*> )?(class|struct|union|enum class|enum) (\w+)([^;{}()]*)\{", re.MULTILINE)
# Words that stand before a name that they do not declare.
NO_TYPE = {"return", "else", "case", "throw", "new", "co_return", "co_yield", "do", "goto", "delete", "operator",
           "template", "typename"}
# Calls of the system whose names headers have, too.
SYSTEM = {"close", "open", "read", "write"}


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def without(pattern, text):
    """The text less what matches, innermost first."""
    before = None
    while text != before:
        before, text = text, re.sub(pattern, "", text)
    return text


def statements(code, columns):
    """The beginnings of what is declared at this column, each to its first ; or {."""
    return re.findall(rf"^ {{{columns}}}(?=[A-Za-z_\[])[^;{{}}]*[;{{]", code, re.MULTILINE)


def declared(statement):
    """([names that a statement declares], whether it only says that they are types)."""
    head = re.sub(r"\bdecltype\([^()]*\)", "auto", " ".join(statement.split()))
    head = " ".join(without(r"(?<!operator)<[^<>]*>|\[\[.*?\]\]", head).split())
    if found := TYPE.match(head):
        return [found[2]], found[1] != "using" and head.endswith(found[2] + ";")
    if found := re.match(r"using [\w:]+::(\w+);", head):
        return [found[1]], False
    start = re.split(r"[=({;\[]", head, maxsplit=1)[0]
    if re.match(r"(?:namespace|using|static_assert|friend)\b", head) or "operator" in start:
        return [], False
    names = [re.search(r"(?<![\w:~])(\w+)\s*$", part) for part in start.split(",")]
    return [name[1] for name in names if name] + re.findall(r", (k\w+) =", head), False


class Source:
    def __init__(self, text):
        self.includes = INCLUDE.findall(text)
        self.code = NO_USE.sub(blank, NO_CODE.sub(blank, text))
        self.spaces = {part for space in NAMESPACE.findall(self.code) for part in space.split("::")}
        self.words = set(re.findall(r"[A-Za-z]\w+", self.code))
        self.defines, self.announces = set(MACRO.findall(self.code)), set()
        code = DIRECTIVE.sub(blank, self.code)
        for statement in statements(code, 0):
            names, only_announced = declared(statement)
            (self.announces if only_announced else self.defines).update(names)
        self.classes = {}  # name: (words among which are its bases, members)
        for found in CLASS.finditer(code):
            indent, kind, name, bases = found.groups()
            body = code[found.end():].split(f"\n{indent}}}", maxsplit=1)[0]
            members = (re.findall(r"\w+", body) if kind.startswith("enum") else
                       [name for statement in statements(body, len(indent) + 2) for name in declared(statement)[0]])
            known_bases, known_members = self.classes.setdefault(name, (set(), set()))
            known_bases.update(re.findall(r"\w+", bases))
            known_members.update(members)
        # The classes that its functions may be members of.
        self.inside = self.classes.keys() | set(re.findall(r"\b([A-Z]\w*)(?:<[^<>;]*>)?::", code)) | set(
            re.findall(r"\busing enum (?:\w+::)*(\w+)", code))


def reached(file, sources):
    """The files that a file's includes lead to, and itself."""
    found, open_files = set(), [file]
    while open_files:
        other = open_files.pop()
        if other in sources and other not in found:
            found.add(other)
            open_files += sources[other].includes
    return found


def members(source, near):
    """What the functions of a file may name as members of their classes and of the bases of these."""
    found, seen, open_classes = set(), set(), list(source.inside)
    while open_classes:
        name = open_classes.pop()
        if name not in seen:
            seen.add(name)
            for bases, own in (other.classes[name] for other in near if name in other.classes):
                found |= own
                open_classes += bases
    return found


def is_local(name, code):
    """Whether a piece of code seems to declare a name: as a type, a parameter, a variable, a capture."""
    if re.search(rf"\b(?:class|struct|enum|union|using|typename|[A-Z][a-z]\w*)\s+{name}\b(?!::)"
                 rf"|\bauto&* \[[^\]]*\b{name}\b|[\[,] ?&?{name} ?(?:=(?!=)|;)|\w &{name} =(?!=)", code):
        return True
    if name[0].isupper():
        return False
    if any(word[1] not in NO_TYPE for word in re.finditer(rf"(?:(\w+)|(?<=[^\s-])>)[*&.]*\s+{name}\b", code)):
        return True
    several = rf"[;{{}}]\s*(?:const )?(?!return|else|throw)[\w:]+(?:<[^;]*?>)?[*&]* \w+ ?[=({{,][^;]*\b{name}\b[^;]*;"
    return any(re.search(rf", {name}\b", without(r"\([^()]*\)|\{[^{}]*\}", line)) for line in re.findall(several, code))


def first_use(name, code, spaces):
    """Where a piece of code first names what a namespace of the project has, or None."""
    for match in re.finditer(rf"\b{name}\b", code):
        before = code[max(0, match.start() - 100):match.start()].rstrip().removesuffix("template").rstrip()
        qualifiers = re.search(r"[\w:]*$", before)[0].split("::")[:-1] if before.endswith("::") else ["rk"]
        if set(qualifiers) <= spaces and (before.endswith("...") or not before.endswith(("->", "."))):
            return match.start()
    return None


def missing_includes(texts):
    """Of {file: its text} the first use of each name in each file, if no header that declares it is included."""
    sources = {file: Source(text) for file, text in texts.items()}
    spaces = {"rk"}.union(*(source.spaces for source in sources.values()))
    headers = {file for file in sources if file.endswith((".h", ".cuh"))}
    homes = {}
    for header in sorted(headers):
        for name in sources[header].defines - SYSTEM:
            homes.setdefault(name, []).append(header)
    missing = []
    for file, source in sources.items():
        near = [sources[other] for other in reached(file, sources)]
        # `class X;` elsewhere is enough for a header's references; what computes with X wants its definition.
        announced = [other.announces for other in near] if file in headers else [source.announces]
        known = members(source, near).union(*announced, *(other.defines for other in near))
        # What ends at column 0 is a function or a class.
        pieces = re.split(r"(?<=^\})", source.code, flags=re.MULTILINE)
        for name in sorted((source.words & homes.keys()) - known):
            # Nobody outside of tests/ means a name of theirs.
            there = [home for home in homes[name] if file.startswith("tests/") or not home.startswith("tests/")]
            start = 0
            for piece in pieces if there else ():
                if name in piece and not is_local(name, piece) and (at := first_use(name, piece, spaces)) is not None:
                    line = source.code.count("\n", 0, start + at) + 1
                    missing.append(f"{file}:{line}: uses {name}, but nothing that it includes leads to "
                                   + " or ".join(there))
                    break
                start += len(piece)
    return missing
