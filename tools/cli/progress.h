// Shows the progress of a loop on standard error: a bar on a terminal, plain lines otherwise.
//
// The bar is drawn at most ten times a second and fits the terminal's width; plain lines come after
// ten seconds and then at growing intervals. Both show share, rate and time left.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace rk {

struct ProgressState {
  std::string label;  // "epoch 3"
  std::string unit;   // "images"
  std::int64_t done = 0;
  std::int64_t total = 0;  // 0: unknown
  double rate = 0;         // units per second; 0: not known yet
  double seconds_left = 0;
  std::string note;              // "loss 0.231"
  std::size_t note_columns = 0;  // what notes will take: the bar leaves room from the start
};

// "epoch 3  34% [#####-----]  340/1000  123 images/s  0:05 left  loss 0.231" in at most `width`
// columns: the counts are dropped first, then the rate, then the bar; without the bar, the note and
// then the counts. Room is left for what changes, so that the bar keeps its length.
std::string progress_bar(const ProgressState& state, int width);
// The same text without the bar, for a log.
std::string progress_text(const ProgressState& state);
// 75 -> "1:15", 3700 -> "1:01:40".
std::string clock_text(double seconds);

class Progress {
 public:
  // `quiet` prints nothing at all; notes will be about as long as `like`; off a terminal the first
  // line comes after `plain_seconds`.
  Progress(std::string label, std::int64_t total, std::string unit, bool quiet = false,
           std::string_view like = {}, double plain_seconds = 10);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` units so far; `note` stays until it is replaced.
  void update(std::int64_t done, std::string_view note = {});
  // Removes the bar or, without a terminal, prints a last line with the total time. Called by the
  // destructor.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void clear();

  ProgressState state_;
  bool quiet_;
  bool terminal_;
  bool plain_ = false;  // a plain line was due
  bool finished_ = false;
  Clock::time_point start_;
  Clock::time_point next_;
  double plain_interval_;  // seconds
};

}  // namespace rk
