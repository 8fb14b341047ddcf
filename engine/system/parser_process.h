// Runs a library that parses untrusted files in a process of its own.
//
// A malformed file may crash such a library, keep it busy for ever or make it take all memory. Here
// that ends only a child process, and the program reports one InputError: "<file>: crashes <parser>
// (signal 11, Segmentation fault); it is malformed, ...". The child answers questions. A question
// is a few bytes in one of two slots of shared memory, and its answer overwrites it in the slot, so
// that the parent uses one answer while the child prepares the next. The caller must check
// everything it reads from an answer: nothing in it may be trusted.
//
// The child is a fork without exec, so that it needs no second program, no /proc and no descriptors
// of the caller. A fork in a process with threads copies only the calling thread, and locks that
// other threads hold stay held in the child. Therefore the child uses only memory (whose locks the
// C library hands over properly) and the parser: no OpenMP, no CUDA, no notes, no output. It ends
// by _exit, so that nothing of the parent's is destroyed twice; it closes all inherited descriptors
// but standard input, and what it allocates is its own. The parser must be idle at the fork
// (weights/hdf5/file.h demands it): a thread inside it would leave it locked in the child.
//
// The child's limits: memory beyond what it inherits (the address space in use is found by trial,
// since that works without /proc, below a limit of the caller's and under sanitizers, which map
// terabytes), processor time, no file written, no process started, few descriptors, no core dump.
// It dies with the thread that started it. Its standard output and error go to /dev/null, so that
// the C library's dying message does not mix with ours; a sanitizer's build keeps standard error
// for the sanitizer's report.
#pragma once

#include "engine/system/parser.h"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace rk {

class ParserProcess : public Parser {
 public:
  // Runs in the child, once per question: `slot` begins with the question's `bytes` and is
  // overwritten by the answer; returns the answer's length. answer() rethrows an InputError in the
  // parent.
  using Serve = std::function<std::size_t(std::span<std::byte> slot, std::size_t bytes)>;

  // `file` and `parser` ("the HDF5 library") are for messages. `most` caps the limits of every
  // question; answer() waits at most `wait_seconds`. Throws SystemError if no process can be
  // started.
  ParserProcess(std::string file, std::string parser, const ParserLimits& most,
                std::uint64_t wait_seconds, std::size_t slot_bytes, const Serve& serve);
  ~ParserProcess() override;  // ends the child, whatever it does
  ParserProcess(const ParserProcess&) = delete;
  ParserProcess& operator=(const ParserProcess&) = delete;

  void ask(std::span<const std::byte> question, const ParserLimits& limits) override;

  // Waits for the answer, which lies in memory that the child can still write to. Once the child is
  // gone, this and every later question gets the same InputError. An exception from the
  // interruption (below) passes through; the object can then only be destroyed.
  std::span<const std::byte> answer() override;

 private:
  [[noreturn]] void serve(int channel, const Serve& serve) const;
  std::string find_death();  // says how a child that is gone ended
  void end();

  std::string file_, parser_;
  ParserLimits most_, limits_;
  std::uint64_t wait_seconds_;
  std::size_t slot_bytes_;
  std::byte* slots_ = nullptr;
  int channel_ = -1;
  pid_t child_ = -1;
  std::string death_;  // the message for every question once the child is gone
  std::uint64_t asked_ = 0, answered_ = 0;
};

// `check` is called now and then during a wait for a parser; it throws to stop waiting. Null: no
// check.
void set_parser_interruption(void (*check)());

}  // namespace rk
