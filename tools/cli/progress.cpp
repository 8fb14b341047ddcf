#include "tools/cli/progress.h"

#include "tools/cli/messages.h"

#include <fmt/format.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace rk {
namespace {

constexpr std::chrono::milliseconds kRedraw{100};
constexpr double kLongestPlainSeconds = 300;
constexpr int kLongestBar = 30;
constexpr int kShortestBar = 5;

int terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

bool on_terminal() {
  const char* kind = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

void show(const std::string& text) { put(stderr, text); }

std::string rate_text(double rate, const std::string& unit) {
  if (rate <= 0) return "";
  return rate < 10 ? fmt::format("{:.2f} {}/s", rate, unit)
                   : fmt::format("{:.0f} {}/s", rate, unit);
}

double share(const ProgressState& state) {
  if (state.total <= 0) return 0;
  return std::clamp(static_cast<double>(state.done) / static_cast<double>(state.total), 0.0, 1.0);
}

std::string joined(std::initializer_list<std::string> parts) {
  std::string result;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!result.empty()) result += "  ";
    result += part;
  }
  return result;
}

struct Parts {
  std::string percent, counts, rate, left;
};

Parts parts_of(const ProgressState& state) {
  Parts parts;
  if (state.total > 0) {
    parts.percent = fmt::format("{:3.0f}%", std::floor(100 * share(state)));
    parts.counts = fmt::format("{}/{}", state.done, state.total);
    if (state.rate > 0) parts.left = clock_text(state.seconds_left) + " left";
  } else {
    parts.counts = fmt::format("{} {}", state.done, state.unit);
  }
  parts.rate = rate_text(state.rate, state.unit);
  return parts;
}

// Columns that each of the parts may come to take.
struct Room {
  std::size_t counts, rate, left, note;
};

Room room_for(const Parts& parts, const ProgressState& state) {
  return {std::max(parts.counts.size(), 2 * std::to_string(state.total).size() + 1),
          std::max(parts.rate.size(), rate_text(9.99, state.unit).size()),
          std::max(parts.left.size(), std::string_view("12:34 left").size()),
          std::max(state.note.size(), state.note_columns)};
}

// What stands behind the bar, and how many columns it may come to take.
struct Tail {
  std::string text;
  std::size_t columns;
};

std::vector<Tail> tails(const Parts& parts, const ProgressState& state) {
  const Room room = room_for(parts, state);
  const std::size_t note = room.note > 0 ? 2 + room.note : 0;
  return {{joined({parts.counts, parts.rate, parts.left, state.note}),
           room.counts + 2 + room.rate + 2 + room.left + note},
          {joined({parts.rate, parts.left, state.note}), room.rate + 2 + room.left + note},
          {joined({parts.left, state.note}), room.left + note}};
}

}  // namespace

std::string clock_text(double seconds) {
  // At most a thousand hours, beyond which the time left means nothing; this also keeps the cast
  // defined.
  const auto whole = static_cast<std::int64_t>(std::clamp(std::round(seconds), 0.0, 3.6e6));
  const std::int64_t hours = whole / 3600, minutes = whole / 60 % 60, rest = whole % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, rest);
  return fmt::format("{}:{:02}", minutes, rest);
}

std::string progress_text(const ProgressState& state) {
  const Parts parts = parts_of(state);
  return joined({state.label, parts.percent, parts.counts, parts.rate, parts.left, state.note});
}

std::string progress_bar(const ProgressState& state, int width) {
  const Parts parts = parts_of(state);
  const auto columns = static_cast<std::size_t>(std::max(width, 1));
  const std::string head = joined({state.label, parts.percent});
  for (const Tail& tail : tails(parts, state)) {
    const std::size_t taken = head.size() + tail.columns + 6;  // two gaps and two brackets
    if (state.total <= 0 || taken + kShortestBar > columns) continue;
    const int length = std::min(kLongestBar, static_cast<int>(columns - taken));
    const int full = static_cast<int>(std::floor(share(state) * length));
    return joined({head, fmt::format("[{:#<{}}{:-<{}}]", "", full, "", length - full), tail.text});
  }
  for (const std::string& shorter :
       {progress_text(state), joined({head, parts.counts, parts.rate, parts.left}),
        joined({head, parts.rate, parts.left}), joined({head, parts.left}), head}) {
    if (shorter.size() <= columns) return shorter;
  }
  return head.substr(0, columns);
}

Progress::Progress(std::string label, std::int64_t total, std::string unit, bool quiet,
                   std::string_view like, double plain_seconds)
    : quiet_(quiet),
      terminal_(on_terminal()),
      start_(Clock::now()),
      next_(start_),
      plain_interval_(plain_seconds) {
  state_.label = std::move(label);
  state_.unit = std::move(unit);
  state_.total = total;
  state_.note_columns = like.size();
  if (terminal_) {
    update(0);  // the first unit of work may take a minute
  } else {
    next_ += std::chrono::milliseconds(static_cast<std::int64_t>(plain_interval_ * 1000));
  }
}

Progress::~Progress() { finish(); }

void Progress::update(std::int64_t done, std::string_view note) {
  state_.done = done;
  if (!note.empty()) state_.note = note;
  const Clock::time_point now = Clock::now();
  if (quiet_ || finished_ || now < next_) return;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  state_.rate = elapsed > 0 ? static_cast<double>(done) / elapsed : 0;
  state_.seconds_left =
      state_.rate > 0 ? static_cast<double>(state_.total - done) / state_.rate : 0;
  if (terminal_) {
    // Leaves one column free: some terminals wrap if the last column is used.
    show(std::string(kClearLine) + progress_bar(state_, terminal_width() - 1));
    behind_bar = true;
    next_ = now + kRedraw;
  } else {
    plain_ = true;
    if (state_.total > 0 && done >= state_.total) return;  // finish() says that all is done
    show(progress_text(state_) + "\n");
    plain_interval_ = std::min(plain_interval_ * 1.5, kLongestPlainSeconds);
    next_ = now + std::chrono::milliseconds(static_cast<std::int64_t>(plain_interval_ * 1000));
  }
}

void Progress::finish() {
  if (finished_) return;
  finished_ = true;
  clear();
  // A loop too short for a plain line needs no last line either.
  if (quiet_ || terminal_ || !plain_) return;
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  const double rate = elapsed > 0 ? static_cast<double>(state_.done) / elapsed : 0;
  const std::string done =
      fmt::format("{} {} in {}", state_.done, state_.unit, clock_text(elapsed));
  show(joined({state_.label, done, rate_text(rate, state_.unit), state_.note}) + "\n");
}

void Progress::clear() {
  if (terminal_ && behind_bar.exchange(false)) show(std::string(kClearLine));
}

}  // namespace rk
