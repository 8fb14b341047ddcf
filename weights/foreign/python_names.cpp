#include "weights/foreign/python_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <sstream>

namespace rk {
namespace {

// What loaders import, and sys.stdlib_module_names of Python 3.11: torch imports a good part of
// them.
constexpr const char* kModules =
    "PIL numpy safetensors torch torchvision abc aifc antigravity argparse array ast asynchat "
    "asyncio asyncore atexit audioop base64 bdb binascii bisect builtins bz2 cProfile calendar cgi "
    "cgitb chunk cmath cmd code codecs codeop collections colorsys compileall concurrent "
    "configparser contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses datetime "
    "dbm decimal difflib dis distutils doctest email encodings ensurepip enum errno faulthandler "
    "fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass "
    "gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib imghdr imp "
    "importlib inspect io ipaddress itertools json keyword lib2to3 linecache locale logging lzma "
    "mailbox mailcap marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc "
    "nis nntplib nt ntpath nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb "
    "pickle pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint profile "
    "pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re readline "
    "reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil signal "
    "site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants "
    "sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable sys "
    "sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap this threading time "
    "timeit tkinter token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types "
    "typing unicodedata unittest urllib uu uuid venv warnings wave weakref webbrowser winreg "
    "winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo";

}  // namespace

bool hides_python_module(const std::string& name) {
  std::istringstream modules(kModules);
  return std::find(std::istream_iterator<std::string>(modules), {}, name) !=
         std::istream_iterator<std::string>();
}

bool is_python_name(const std::string& name) {
  static constexpr std::array kKeywords = {
      "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
      "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
  if (std::ranges::count(kKeywords, name) > 0) return false;
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && !digit(name[0]) &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || digit(c) || c == '_'; });
}

}  // namespace rk
