#include "engine/base/note.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <utility>

namespace rk {
namespace {

void print(const std::string& line) { std::fputs(("note: " + line + "\n").c_str(), stderr); }

struct Notes {
  std::mutex mutex;
  std::set<std::string> said;
  std::function<void(const std::string&)> to = print;
};

Notes& notes() {
  static Notes all;
  return all;
}

}  // namespace

void note(const std::string& line) { note_first(line, line); }

void note_first(const std::string& kind, const std::string& line) {
  Notes& all = notes();
  const std::lock_guard lock(all.mutex);
  if (all.said.insert(kind).second && all.to) all.to(line);
}

void send_notes(std::function<void(const std::string&)> to) {
  Notes& all = notes();
  const std::lock_guard lock(all.mutex);
  all.said.clear();
  all.to = std::move(to);
}

}  // namespace rk
