#include "weights/foreign/python_names.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

TEST(PythonNames, ModulesOfPythonAndOfLoadersAreHidden) {
  for (const char* name : {"torch", "PIL", "struct", "random", "abc", "zoneinfo"}) {
    EXPECT_TRUE(hides_python_module(name)) << name;
  }
  for (const char* name : {"embedder", "Torch", "rando", "randoms", ""}) {
    EXPECT_FALSE(hides_python_module(name)) << name;
  }
}

TEST(PythonNames, WordsOfLettersDigitsAndUnderscoresCanBeImported) {
  for (const char* name : {"a", "_", "net_2", "Imports"}) EXPECT_TRUE(is_python_name(name)) << name;
  for (const char* name : {"", "2nets", "my-net", "a.b", "a b", "import", "None", "n\xc3\xa9"}) {
    EXPECT_FALSE(is_python_name(name)) << name;
  }
}

}  // namespace
}  // namespace rk
