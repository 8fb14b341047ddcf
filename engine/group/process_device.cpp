#include "engine/group/process_device.h"

#include "engine/base/english.h"
#include "engine/base/error.h"

#include <algorithm>
#include <fstream>
#include <functional>

#include <unistd.h>

namespace rk {
namespace {

using Kind = DeviceRequest::Kind;

// Whether the machine has several GPUs, and none is left for this process.
bool is_one_too_many(const GpuReport& report, const LocalRank& local) {
  return report.cards.size() > 1 && local.rank >= std::ssize(report.cards);
}

DeviceChoice own_gpu(const GpuReport& report, const LocalRank& local) {
  const std::size_t cards = report.cards.size();
  if (is_one_too_many(report, local)) {
    fail<DeviceError>(
        "--device cuda: {} processes were started on a machine with {}; start as many as it "
        "has GPUs",
        local.size, counted(cards, "GPU"));
  }
  return choose_device({Kind::kCuda, cards == 1 ? 0 : local.rank}, report);
}

// Why own_gpu() failed, as said to who did not ask for a GPU.
std::string why_no_gpu(const GpuReport& report, const LocalRank& local, const char* error) {
  if (is_one_too_many(report, local)) {
    return fmt::format("{} processes on a machine with {}", local.size,
                       counted(report.cards.size(), "GPU"));
  }
  const DeviceChoice any = choose_device({Kind::kAuto, {}}, report);
  return any.device.cuda ? error : any.why;
}

}  // namespace

std::uint64_t machine_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  if (id.empty()) {
    id.resize(256);
    gethostname(id.data(), id.size() - 1);
  }
  return std::hash<std::string>{}(id);
}

LocalRank local_rank_of(ProcessGroup& processes, std::uint64_t machine) {
  std::vector<std::uint64_t> machines(static_cast<std::size_t>(processes.size()));
  processes.all_gather<std::uint64_t>({&machine, 1}, machines);
  const auto same = [&](auto end) {
    return static_cast<int>(std::count(machines.begin(), end, machine));
  };
  return {same(machines.begin() + processes.rank()), same(machines.end())};
}

std::int64_t sum_on_machine(ProcessGroup& processes, std::int64_t mine, std::uint64_t machine) {
  struct Part {
    std::uint64_t machine;
    std::int64_t value;
  };
  std::vector<Part> parts(static_cast<std::size_t>(processes.size()));
  const Part own{machine, mine};
  processes.all_gather<Part>({&own, 1}, parts);
  std::int64_t sum = 0;
  for (const Part& part : parts) sum += part.machine == machine ? part.value : 0;
  return sum;
}

DeviceChoice choose_device(const DeviceRequest& request, const GpuReport& report,
                           ProcessGroup& processes, std::uint64_t machine) {
  if (processes.alone()) return choose_device(request, report);
  const LocalRank local = local_rank_of(processes, machine);
  if (request.kind == Kind::kCpu) return choose_device(request, report);
  const int crowd = processes.all_reduce_max(request.index ? local.size : 1);
  if (crowd > 1) {
    fail<UsageError>(
        "--device cuda:{}: {} processes of a machine would share one GPU; use --device cuda, which "
        "gives each its own",
        *request.index, crowd);
  }
  DeviceChoice choice;
  int problem = 0;
  try {
    choice = request.index ? choose_device(request, report) : own_gpu(report, local);
  } catch (const DeviceError& error) {
    problem = 1;
    choice.why =
        request.kind == Kind::kAuto ? why_no_gpu(report, local, error.what()) : error.what();
  }
  std::vector<int> problems(static_cast<std::size_t>(processes.size()));
  processes.all_gather<int>({&problem, 1}, problems);
  const auto first = std::ranges::find(problems, 1) - problems.begin();
  if (first == processes.size()) return choice;
  if (request.kind == Kind::kAuto) {
    return {Device(), problem == 1 ? choice.why : fmt::format("process {} has no GPU", first)};
  }
  processes.end_together();
  if (processes.rank() == first) throw DeviceError(choice.why);
  throw ReportedByAnother();
}

}  // namespace rk
