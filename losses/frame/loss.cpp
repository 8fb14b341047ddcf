#include "losses/frame/loss.h"

#include "losses/frame/finite.h"

namespace rk {

template <class S>
void Loss<S>::launch(const Context& context, const LossInput<S>& input,
                     const LossGradients<S>& gradients) {
  if (!context.on_gpu()) check_finite(context, input);
  compute(context, input, gradients);
}

template class Loss<float>;
template class Loss<double>;

}  // namespace rk
