// One of the real programs, run as a user would: arguments in, exit code and both streams out.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace rk {

struct Finished {
  int code = -1;  // 128 + the signal if one ended the process
  std::string out, err;
};

class ChildProcess {
 public:
  // arguments[0] is the program's path. Output goes to files in `folder`.
  ChildProcess(const std::vector<std::string>& arguments, const std::string& folder);
  ~ChildProcess();  // kills it if it still runs
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void send(int signal) const;
  bool running();
  void wait_until_stopped() const;                       // by SIGSTOP; or until it ends
  void wait_for(const std::function<bool()>& happened);  // or until it ends
  Finished wait();
  std::string said_so_far() const;

 private:
  std::string out_, err_;
  pid_t pid_;
  int status_ = 0;
  bool done_ = false;
};

// Starts the program and waits for its end.
Finished run_to_end(const std::vector<std::string>& arguments, const std::string& folder);

}  // namespace rk
