#include "engine/runtime/fusion/qdq/qdq_pool.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/status_macros.h"

namespace optfarm::runtime {
namespace {

// Sums of more values could leave 32 bits.
constexpr int64_t kMostValues = int64_t{1} << 22;
// UNITS: values that are worth another thread.
constexpr int64_t kPoolGrain = 32 * 1024;

// To whole steps from the zero point.
struct Rounding {
  bool is_away = false;
  int32_t zero_point = 0;

  int32_t operator()(double value) const {
    if (!is_away) return static_cast<int32_t>(std::nearbyint(value));
    // From the value 0 of the tensor's own type. The mean of 6 values is a
    // product with 1/6, so that a half may be just below.
    constexpr double kHalf = 0.5 + 1e-6;
    const double steps = value + zero_point;
    return static_cast<int32_t>(steps + std::copysign(kHalf, steps)) -
           zero_point;
  }
};

class QdqPool final : public QdqKernel {
 public:
  QdqPool(const QdqPoolPlan& plan, QdqSteps steps)
      : QdqKernel({plan.in}, plan.out, std::move(steps)), plan_(plan) {}

 protected:
  absl::StatusOr<bool> ComputeUnsigned(KernelContext* context) const override;

 private:
  // The part of the image under one window.
  struct View {
    const uint8_t* first = nullptr;
    int64_t rows = 0;
    int64_t columns = 0;
    // UNITS: values from row to row.
    int64_t stride = 0;
  };
  struct Call {
    Window window;
    int64_t channels = 0;
  };
  View ViewOf(const Call& call, const uint8_t* image, int64_t y,
              int64_t x) const;
  void Greatest(const View& view, int64_t channels, uint8_t* out) const;
  void Mean(const View& view, int64_t channels, int32_t* sums,
            uint8_t* out) const;

  const QdqPoolPlan plan_;
};

QdqPool::View QdqPool::ViewOf(const Call& call, const uint8_t* image, int64_t y,
                              int64_t x) const {
  const auto clip = [](const WindowAxis& axis, int64_t place) {
    const int64_t begin = place * axis.stride - axis.pad_before;
    return std::pair(std::max<int64_t>(begin, 0),
                     std::min(begin + axis.size, axis.in));
  };
  const auto [top, bottom] = clip(call.window.y, y);
  const auto [left, right] = clip(call.window.x, x);
  const int64_t stride = call.window.x.in * call.channels;
  return {image + top * stride + left * call.channels,
          std::max<int64_t>(bottom - top, 0),
          std::max<int64_t>(right - left, 0), stride};
}

void QdqPool::Greatest(const View& view, int64_t channels, uint8_t* out) const {
  std::fill_n(out, channels, uint8_t{0});
  for (int64_t y = 0; y < view.rows; ++y) {
    for (int64_t x = 0; x < view.columns; ++x) {
      const uint8_t* in = view.first + y * view.stride + x * channels;
      for (int64_t c = 0; c < channels; ++c) out[c] = std::max(out[c], in[c]);
    }
  }
}

void QdqPool::Mean(const View& view, int64_t channels, int32_t* sums,
                   uint8_t* out) const {
  std::fill_n(sums, channels, 0);
  for (int64_t y = 0; y < view.rows; ++y) {
    for (int64_t x = 0; x < view.columns; ++x) {
      const uint8_t* in = view.first + y * view.stride + x * channels;
      for (int64_t c = 0; c < channels; ++c) sums[c] += in[c];
    }
  }
  const int64_t count = view.rows * view.columns;
  const double scale = double{in(0).scale} /
                       (double{this->out().scale} * static_cast<double>(count));
  const Rounding round = {plan_.rounds_away, this->out().zero_point};
  const int64_t zeros = count * in(0).unsigned_zero();
  const int32_t zero = this->out().unsigned_zero();
  for (int64_t c = 0; c < channels; ++c) {
    const double value =
        std::clamp(static_cast<double>(sums[c] - zeros) * scale,
                   double{1} * (plan_.bounds.least - zero),
                   double{1} * (plan_.bounds.most - zero));
    out[c] = static_cast<uint8_t>(round(value) + zero);
  }
}

absl::StatusOr<bool> QdqPool::ComputeUnsigned(KernelContext* context) const {
  const Shape shape = context->input(0).shape();
  if (shape.rank() != 4 || shape.num_elements() == 0) return false;
  WindowAttrs whole;
  const auto window =
      plan_.window ? PlaceWindow(*plan_.window, shape.dim(1), shape.dim(2),
                                 plan_.size_y, plan_.size_x)
                   : PlaceWindow(whole, shape.dim(1), shape.dim(2),
                                 shape.dim(1), shape.dim(2));
  if (!window.ok() || window->y.size * window->x.size > kMostValues ||
      window->y.pad_before >= window->y.size ||
      window->x.pad_before >= window->x.size ||
      window->y.pad_after >= window->y.size ||
      window->x.pad_after >= window->x.size) {
    return false;
  }
  const Call call = {*window, shape.dim(3)};
  std::vector<int64_t> dims = {shape.dim(0), window->y.out, window->x.out,
                               call.channels};
  if (!plan_.window && !plan_.keeps_axes) dims = {shape.dim(0), call.channels};
  OPTFARM_ASSIGN_OR_RETURN(const Shape made, Shape::FromDims(dims));
  if (made.num_elements() == 0) return false;
  Values values;
  Read(0, *context, &values);
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out, Allocate(made, context));
  auto* results = static_cast<uint8_t*>(out->raw());
  const int64_t image = shape.num_elements() / shape.dim(0);
  const int64_t read =
      window->y.size * window->x.size * window->x.out * call.channels;
  context->pool()->ParallelFor(
      shape.dim(0) * window->y.out, 1 + kPoolGrain / read,
      [&](int64_t begin, int64_t end) {
        Scratch<int32_t> sums(call.channels);
        for (int64_t i = begin; i < end; ++i) {
          const uint8_t* from = values.data + i / window->y.out * image;
          for (int64_t x = 0; x < window->x.out; ++x) {
            const View view = ViewOf(call, from, i % window->y.out, x);
            uint8_t* to = results + (i * window->x.out + x) * call.channels;
            if (plan_.is_mean) {
              Mean(view, call.channels, sums.data(), to);
            } else {
              Greatest(view, call.channels, to);
            }
          }
        }
      });
  Finish(out, context);
  return true;
}

}  // namespace

std::unique_ptr<QdqKernel> MakeQdqPool(const QdqPoolPlan& plan,
                                       QdqSteps steps) {
  return std::make_unique<QdqPool>(plan, std::move(steps));
}

}  // namespace optfarm::runtime
