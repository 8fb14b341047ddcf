// A process of its own for a library that parses what nobody vouches for.
//
// A malformed file may crash such a library, keep it busy for ever or make it take all memory. Here
// that ends a child, and the program says so in one InputError: "<file>: crashes <parser> (signal
// 11, Segmentation fault); it is malformed, ...". The child answers questions: each is a few bytes
// in one of two slots of shared memory, and its answer takes that slot's place, so that one is
// used here while the next is made there. Nothing that comes back may be trusted: what is read from
// an answer is checked by whoever asked.
//
// The child is a fork without exec, so that it needs no second program, no /proc and no
// descriptors of the caller. A fork in a process with threads copies only the calling one, and
// locks that others hold stay held in the child. Therefore what it runs uses memory (whose locks
// the system's library hands over properly), the parser and nothing else: no OpenMP, no CUDA, no
// notes, no output. It ends by _exit, so that nothing of the parent's is destroyed twice; its
// descriptors but standard input are closed, and what it allocates is its own. A thread that is
// inside the same parser at that moment would leave it locked: the parser must be idle
// (weights/hdf5/file.h demands it). Programs read files before their threads and devices are at
// work, so there is little to copy.
//
// Its limits: memory beyond what it inherits (the address space in use is found by trying, since
// that works without /proc, below a limit of the caller's and under sanitizers, which map
// terabytes), processor time, no file written, no process started, few descriptors, no core dump.
// It dies with the thread that began it. Standard error is closed, for the C library's last words
// are no line of ours; in a sanitizer's build it stays open for the sanitizer's.
#pragma once

#include "engine/system/parser.h"

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace rk {

class ParserProcess : public Parser {
 public:
  // In the child, once for each question: `slot` begins with the question's `bytes` and takes the
  // answer, whose length is returned. An InputError is thrown again where answer() waits for it.
  using Serve = std::function<std::size_t(std::span<std::byte> slot, std::size_t bytes)>;

  // `file` and `parser` ("the HDF5 library") are for messages. No question may raise `most`, and
  // no answer is waited for longer than `wait_seconds`. InputError where no process is to be had.
  ParserProcess(std::string file, std::string parser, const ParserLimits& most,
                std::uint64_t wait_seconds, std::size_t slot_bytes, const Serve& serve);
  ~ParserProcess() override;  // ends the child, whatever it does
  ParserProcess(const ParserProcess&) = delete;
  ParserProcess& operator=(const ParserProcess&) = delete;

  std::size_t slot_bytes() const { return slot_bytes_; }

  void ask(std::span<const std::byte> question, const ParserLimits& limits) override;

  // Waits for it. It lies in memory that the child can still write to. Where the child is gone,
  // this and every later question is answered by the same InputError. What the interruption throws
  // (below) passes through; the object can then only be destroyed.
  std::span<const std::byte> answer() override;

 private:
  [[noreturn]] void serve(int channel, const Serve& serve) const;
  std::string find_death();  // of a child that is gone: what to say of it
  void end();

  std::string file_, parser_;
  ParserLimits most_, limits_;
  std::uint64_t wait_seconds_;
  std::size_t slot_bytes_;
  std::byte* slots_ = nullptr;
  int channel_ = -1;
  pid_t child_ = -1;
  std::string death_;  // said to every question once the child is gone
  std::uint64_t asked_ = 0, answered_ = 0;
};

// Called now and then while a parser is waited for; throws to stop waiting. Null: nothing is.
void set_parser_interruption(void (*check)());

}  // namespace rk
