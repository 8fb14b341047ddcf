// docs/losses.md must agree with the registry: every loss has a section and a row in the table on
// top, every parameter a row with its default, and the page names nothing that does not exist.
#include "losses/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rk {
namespace {

// The parts of a text between backquotes, in order.
std::vector<std::string> in_backquotes(const std::string& text) {
  std::vector<std::string> found;
  std::size_t from = 0;
  while ((from = text.find('`', from)) != std::string::npos) {
    const std::size_t to = text.find('`', from + 1);
    if (to == std::string::npos) break;
    found.push_back(text.substr(from + 1, to - from - 1));
    from = to + 1;
  }
  return found;
}

struct Section {
  std::vector<std::string> losses;                            // those in its heading
  std::vector<std::pair<std::string, std::string>> defaults;  // parameter, default
};

struct Page {
  std::vector<Section> sections;
  std::set<std::string> table;  // losses in the table on top
};

Page read_page() {
  std::ifstream file(RK_TEST_GOLDEN "/../../docs/losses.md");
  Page page;
  bool parameters = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) {
      parameters = false;
      if (line.starts_with("### `")) page.sections.push_back({in_backquotes(line), {}});
    } else if (line.starts_with("| [`")) {
      page.table.insert(in_backquotes(line).front());
    } else if (line.starts_with("| parameter | default |")) {
      parameters = true;
    } else if (!line.starts_with('|')) {
      parameters = false;
    } else if (parameters && line.starts_with("| `")) {
      const std::vector<std::string> words = in_backquotes(line);
      if (words.size() >= 2) page.sections.back().defaults.emplace_back(words[0], words[1]);
    }
  }
  return page;
}

const Section* section_of(const Page& page, const std::string& loss) {
  for (const Section& section : page.sections) {
    for (const std::string& name : section.losses) {
      if (name == loss) return &section;
    }
  }
  return nullptr;
}

TEST(LossPage, NamesEveryLossAndEveryDefault) {
  const Page page = read_page();
  for (const LossEntry& entry : loss_registry()) {
    EXPECT_TRUE(page.table.contains(entry.name)) << entry.name << " is not in the table on top";
    const Section* section = section_of(page, entry.name);
    EXPECT_NE(section, nullptr) << "no section: ### `" << entry.name << "`";
    if (section == nullptr) continue;
    for (const LossParameter& parameter : entry.parameters) {
      const std::pair<std::string, std::string> row(parameter.name, parameter.fallback);
      EXPECT_NE(std::find(section->defaults.begin(), section->defaults.end(), row),
                section->defaults.end())
          << entry.name << " lacks the row | `" << row.first << "` | `" << row.second << "` |";
    }
  }
}

TEST(LossPage, NamesNothingThatIsNotRegistered) {
  const Page page = read_page();
  std::set<std::string> registered;
  for (const LossEntry& entry : loss_registry()) registered.insert(entry.name);
  for (const std::string& name : page.table) EXPECT_TRUE(registered.contains(name)) << name;
  for (const Section& section : page.sections) {
    std::set<std::string> parameters;
    for (const std::string& name : section.losses) {
      EXPECT_TRUE(registered.contains(name)) << name;
      for (const LossEntry& entry : loss_registry()) {
        if (entry.name != name) continue;
        for (const LossParameter& parameter : entry.parameters) parameters.insert(parameter.name);
      }
    }
    for (const auto& [name, fallback] : section.defaults) {
      EXPECT_TRUE(parameters.contains(name)) << section.losses.front() << " has no " << name;
    }
  }
}

}  // namespace
}  // namespace rk
