// Base of tests that call `probe` in this process: a folder for files, and the program's output.
#pragma once

#include "tests/data/picture_folder.h"
#include "tests/support/folder_test.h"
#include "tests/support/messages.h"
#include "tests/support/program_run.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rk {

class ProbeRun : public FolderTest<PictureFolder> {
 protected:
  // Returns the exit code; out_ and error_ hold what was printed.
  int run(const std::vector<std::string>& arguments, std::unique_ptr<Command> command) {
    Finished done = run_here("probe", arguments, std::move(command));
    out_ = std::move(done.out);
    error_ = std::move(done.err);
    return done.code;
  }

  std::string out_, error_;
};

}  // namespace rk
