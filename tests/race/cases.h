// The row kernels under test, each with made-up rows: one list, in cases.cpp. A case runs all its
// rows on a team and returns everything the kernel wrote.
#pragma once

#include "tests/race/emulated_block.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rk {
class SerialTeam;
}

namespace rk::race {

class ThreadTeam;

// The case that needs every barrier of every collective.
inline constexpr const char* kCollectives = "collectives";

struct Case {
  std::string name;
  // serial, threads and block run on every member of a team. The state belongs to one run and is
  // shared by its members; written() returns what the kernel wrote.
  struct Run {
    virtual ~Run() = default;
    virtual void serial(const SerialTeam& team) = 0;
    virtual void threads(const ThreadTeam& team) = 0;
    virtual void block(const EmulatedTeam& team) = 0;
    virtual std::vector<double> written() const = 0;
  };
  std::function<std::unique_ptr<Run>()> make;
  double bound = 0;  // largest relative difference between teams; 0: bit-equal
};

const std::vector<Case>& cases();

}  // namespace rk::race
