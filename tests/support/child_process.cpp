#include "tests/support/child_process.h"

#include "tests/support/temporary_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace rk {

ChildProcess::ChildProcess(const std::vector<std::string>& arguments, const std::string& folder)
    : out_(folder + "/child.out"), err_(folder + "/child.err") {
  std::vector<char*> words;
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  for (const std::string& file : {out_, err_})
    std::ofstream(file).close();  // drops what a former run wrote
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("no process to be had");
  if (pid_ == 0) {
    const int out = ::open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int err = ::open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::signal(SIGINT, SIG_DFL);  // a shell's `&` leaves it ignored, and the program respects that
    ::setenv("OMP_WAIT_POLICY", "PASSIVE", 1);  // tests run side by side: waiting must not spin
    ::dup2(out, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    ::execv(words[0], words.data());
    ::_exit(127);
  }
}

ChildProcess::~ChildProcess() {
  if (done_) return;
  send(SIGKILL);
  wait();
}

void ChildProcess::send(int signal) const { ::kill(pid_, signal); }

void ChildProcess::wait_until_stopped() const {
  siginfo_t info;
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
}

void ChildProcess::wait_for(const std::function<bool()>& happened) {
  while (running() && !happened()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

bool ChildProcess::running() {
  if (!done_ && ::waitpid(pid_, &status_, WNOHANG) == pid_) done_ = true;
  return !done_;
}

Finished ChildProcess::wait() {
  if (!done_) ::waitpid(pid_, &status_, 0);
  done_ = true;
  const int code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  return {code, file_text(out_), file_text(err_)};
}

std::string ChildProcess::said_so_far() const { return file_text(out_) + file_text(err_); }

Finished run_to_end(const std::vector<std::string>& arguments, const std::string& folder) {
  return ChildProcess(arguments, folder).wait();
}

}  // namespace rk
