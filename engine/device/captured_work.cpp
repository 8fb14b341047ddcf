#include "engine/device/captured_work.h"

#include "engine/base/error.h"
#include "engine/base/note.h"

namespace rk {

CapturedWork::CapturedWork(const Context& context, bool captures, std::function<void()> work,
                           Sharing sharing)
    : context_(context),
      captures_(captures && context.on_gpu()),
      work_(std::move(work)),
      sharing_(std::move(sharing)) {}

void CapturedWork::run(std::int64_t sizes) {
  if (ran_with_ != sizes) {
    graph_.reset();
  } else if (graph_ == nullptr && captures_) {
    capture();
  }
  if (graph_ != nullptr) {
    graph_->launch();
  } else {
    work_();
    ran_with_ = sizes;
  }
}

void CapturedWork::capture() {
  std::string why = "another process cannot";
  try {
    graph_ = std::make_unique<CudaGraph>(context_.cuda(), work_);
  } catch (const DeviceError& error) {
    why = error.what();
  }
  if (sharing_.all_captured(graph_ != nullptr)) return;
  graph_.reset();
  captures_ = false;
  sharing_.gave_up();
  note(
      fmt::format("the step cannot be captured: {}; its kernels are started one by one, as with "
                  "--graph off",
                  why));
}

}  // namespace rk
