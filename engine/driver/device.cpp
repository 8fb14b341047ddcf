#include "engine/driver/device.h"

#include "engine/base/error.h"
#include "engine/base/number_in.h"

#include <optional>

namespace rk {
namespace {

std::string cuda_version(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// Libraries' version numbers are 10000 major + 100 minor + patch.
std::string library_version(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string compute_capability(int number) {
  return fmt::format("{}.{}", number / 10, number % 10);
}

// Why none of this machine's GPUs can be used, whichever it is; empty if there is no such reason.
std::string machine_problem(const GpuReport& report) {
  if (!report.built) return "this build has no CUDA";
  if (report.driver == 0) {
    return "no NVIDIA driver was found (libcuda.so.1); install one, or use a machine with a GPU";
  }
  const int code = report.error.code;
  if (code == kCudaInsufficientDriver) {
    return fmt::format(
        "the NVIDIA driver is too old: it runs CUDA {}, this program needs {}; install a newer one",
        cuda_version(report.driver), cuda_version(report.runtime));
  }
  const bool none = code == kCudaNoDevice || (code == 0 && report.cards.empty());
  if (none && report.visible.has_value()) {
    return report.visible->empty()
               ? "CUDA_VISIBLE_DEVICES is empty, which hides every GPU; unset it or name one"
               : fmt::format(
                     "CUDA_VISIBLE_DEVICES={} leaves no GPU; name one that nvidia-smi lists",
                     *report.visible);
  }
  if (none) return "the NVIDIA driver finds no GPU; see that nvidia-smi lists one";
  if (code != 0) {
    return fmt::format("CUDA does not start: {} (error {}); see nvidia-smi", report.error.text,
                       code);
  }
  for (const GpuReport::Library& library : report.libraries) {
    const std::string needed = fmt::format("{} {} or newer of major version {}", library.name,
                                           library_version(library.least), library.least / 10000);
    constexpr std::string_view kAdvice = "install that, or name its folder in RK_CUDA_LIBRARIES";
    if (!library.problem.empty()) {
      return fmt::format("{} cannot be loaded: {}; this program needs {}: {}", library.name,
                         library.problem, needed, kAdvice);
    }
    if (library.loaded / 10000 != library.least / 10000 || library.loaded < library.least) {
      return fmt::format("{} {} was loaded ({}), this program needs {}; {}", library.name,
                         library_version(library.loaded), library.path, needed, kAdvice);
    }
  }
  return "";
}

// Why this GPU cannot be used; empty if it can. Starts CUDA on it to find out.
std::string card_problem(const GpuReport& report, std::size_t index) {
  const GpuReport::Card& card = report.cards[index];
  const GpuReport::Error error = report.start(static_cast<int>(index));
  if (error.code == 0) return "";
  if (error.code == kCudaNoKernelImage || error.code == kCudaInvalidFunction) {
    return fmt::format(
        "{} has compute capability {}, this program has code for {}; "
        "take a newer one",
        card.name, compute_capability(card.compute_capability), report.architectures);
  }
  return fmt::format("{}: {} (error {}); see nvidia-smi", card.name, error.text, error.code);
}

std::string described(const GpuReport::Card& card) {
  return fmt::format("{}, {} GiB", card.name, card.bytes >> 30);
}

DeviceChoice first_that_works(const GpuReport& report) {
  std::string why = machine_problem(report);
  if (!why.empty()) return {Device(), why};
  for (std::size_t i = 0; i < report.cards.size(); ++i) {
    const std::string problem = card_problem(report, i);
    if (problem.empty()) return {{true, static_cast<int>(i)}, described(report.cards[i])};
    why += (i == 0 ? "" : "; ") + problem;
  }
  return {Device(), why};
}

std::string with_way_out(const GpuReport& report, const std::string& problem) {
  return problem + (report.built ? "; or use --device cpu" : "; use --device cpu");
}

}  // namespace

bool ends_all_work(int code) {
  switch (code) {
    case kCudaUncorrectableEcc:
    case 220:  // an uncorrectable error of NVLink
    case 226:  // contained
    case 700:  // illegal address
    case 702:  // launch timeout
    case 710:  // assert
    case 714:  // hardware stack error
    case 715:  // illegal instruction
    case 716:  // misaligned address
    case 717:  // invalid address space
    case 718:  // invalid program counter
    case 719:  // launch failure
    case 721:  // tensor memory leak
      return true;
    default: return false;
  }
}

std::string cuda_failure(std::string_view what, std::string_view text, int code) {
  std::string advice = "see nvidia-smi";
  if (code == kCudaMemoryAllocation) {
    advice = "make the batch smaller or end what else runs on the GPU (nvidia-smi)";
  } else if (code == kCudaUncorrectableEcc) {
    advice =
        "the GPU's memory is damaged; take another GPU, or reset this one (nvidia-smi -q -d ECC)";
  } else if (ends_all_work(code)) {
    advice = "start again; if it comes again, compute-sanitizer finds the place";
  }
  return fmt::format("[{}] {} (error {}); {}", what, text, code, advice);
}

std::string Device::name() const { return cuda ? fmt::format("cuda:{}", index) : "cpu"; }

DeviceRequest parse_device(std::string_view text) {
  using Kind = DeviceRequest::Kind;
  if (text == "auto") return {Kind::kAuto, {}};
  if (text == "cpu") return {Kind::kCpu, {}};
  if (text == "cuda") return {Kind::kCuda, {}};
  constexpr std::string_view kIndexed = "cuda:";
  if (text.starts_with(kIndexed) && text.size() <= kIndexed.size() + 3) {
    const std::optional<int> index = number_in<int>(text.substr(kIndexed.size()));
    if (index && *index >= 0) return {Kind::kCuda, index};
  }
  fail<UsageError>("--device {}: no such device; use auto, cpu, cuda or cuda:0", text);
}

DeviceChoice choose_device(const DeviceRequest& request, const GpuReport& report) {
  using Kind = DeviceRequest::Kind;
  if (request.kind == Kind::kCpu) return {Device(), "asked for"};
  if (request.kind == Kind::kAuto) {
    DeviceChoice choice = first_that_works(report);
    // Most machines have no GPU, and nobody asked for one: no reason to advise anything.
    if (report.built && report.driver == 0)
      choice.why = "no GPU: this machine has no NVIDIA driver";
    return choice;
  }
  if (!request.index) {
    DeviceChoice choice = first_that_works(report);
    if (!choice.device.cuda) {
      fail<DeviceError>("--device cuda: {}", with_way_out(report, choice.why));
    }
    return choice;
  }
  const int index = *request.index;
  std::string problem = machine_problem(report);
  if (problem.empty() && index >= static_cast<int>(report.cards.size())) {
    const std::size_t last = report.cards.size() - 1;
    problem = last == 0 ? "this machine has one GPU, cuda:0"
                        : fmt::format("the last GPU of this machine is cuda:{}", last);
  }
  if (problem.empty()) {
    const auto card = static_cast<std::size_t>(index);
    problem = card_problem(report, card);
    if (problem.empty()) return {{true, index}, described(report.cards[card])};
  }
  fail<DeviceError>("--device cuda:{}: {}", index, with_way_out(report, problem));
}

}  // namespace rk
