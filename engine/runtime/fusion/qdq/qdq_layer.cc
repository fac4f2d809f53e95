#include "engine/runtime/fusion/qdq/qdq_layer.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "base/status_macros.h"
#include "engine/runtime/fusion/int8_sinks.h"
#include "engine/runtime/operators/int8_gemm.h"
#include "engine/runtime/operators/next_weights.h"

namespace optfarm::runtime {
namespace {

class QdqLayer final : public QdqKernel, public WeightReader {
 public:
  QdqLayer(QdqLayerPlan plan, QdqSteps steps)
      : QdqKernel({plan.in}, plan.out, std::move(steps)),
        plan_(std::move(plan)) {
    plan_.scales.resize(plan_.weights.padded_columns(), 0.0f);
    const int32_t zero = plan_.out.unsigned_zero();
    Int8Stage stage;
    stage.kind = Int8StageKind::kRequantizeFloat;
    stage.floats = plan_.scales.data();
    stage.low = zero;
    stage.factor = static_cast<float>(plan_.least - zero);
    stage.summand = static_cast<float>(plan_.most - zero);
    stage.has_small_scales =
        std::all_of(plan_.scales.begin(), plan_.scales.end(),
                    [](float scale) { return scale <= 0.5f; });
    stages_.push_back(stage);
  }
  QdqLayer(const QdqLayer&) = delete;
  QdqLayer& operator=(const QdqLayer&) = delete;

  FirstWeights First() const override {
    return plan_.is_depthwise ? FirstWeights()
                              : FirstInt8Weights(plan_.weights);
  }

 protected:
  absl::StatusOr<bool> ComputeUnsigned(KernelContext* context) const override;

 private:
  struct Call {
    Int8Activations image;
    Shape shape;
  };
  std::optional<Call> CallFor(const Shape& input) const;
  Int8Gemm GemmOf(const Call& call) const;

  QdqLayerPlan plan_;
  std::vector<Int8Stage> stages_;
  // Found by the first run: weights are packed late.
  mutable std::once_flag init_once_;
  mutable std::vector<int32_t> init_;
};

// Nothing for what the steps are to look at.
std::optional<QdqLayer::Call> QdqLayer::CallFor(const Shape& input) const {
  Call call;
  Int8Activations& image = call.image;
  image.channels = plan_.channels;
  image.zero_point = plan_.in.unsigned_zero();
  const int rank = plan_.window ? 4 : 2;
  if (plan_.flattens) {
    if (input.num_elements() % plan_.channels != 0) return std::nullopt;
    image.batch = input.num_elements() / plan_.channels;
  } else if (input.rank() == rank && input.dim(rank - 1) == plan_.channels) {
    image.batch = input.dim(0);
  } else {
    return std::nullopt;
  }
  const int64_t columns = plan_.weights.columns();
  std::vector<int64_t> dims = {image.batch};
  if (plan_.window) {
    const auto window = PlaceWindow(*plan_.window, input.dim(1), input.dim(2),
                                    plan_.size_y, plan_.size_x);
    if (!window.ok()) return std::nullopt;
    image.window = *window;
    dims.push_back(window->y.out);
    dims.push_back(window->x.out);
  } else {
    image.window = Int8MatrixWindow();
  }
  dims.push_back(columns);
  const auto shape = Shape::FromDims(dims);
  // A matrix side, and what becomes of it, must fit in 32 bits.
  if (!shape.ok() || shape->num_elements() == 0 ||
      shape->num_elements() > std::numeric_limits<int32_t>::max()) {
    return std::nullopt;
  }
  call.shape = *shape;
  return call;
}

Int8Gemm QdqLayer::GemmOf(const Call& call) const {
  Int8Gemm gemm = {.input = call.image,
                   .weights = plan_.weights,
                   .kernels = plan_.kernels,
                   .is_depthwise = plan_.is_depthwise,
                   .bias = plan_.bias.data(),
                   .is_by_row = plan_.is_by_row,
                   .next = &next()};
  std::call_once(init_once_, [&] { init_ = FindAccumulatorInit(gemm); });
  gemm.init = init_.data();
  return gemm;
}

absl::StatusOr<bool> QdqLayer::ComputeUnsigned(KernelContext* context) const {
  std::optional<Call> call = CallFor(context->input(0).shape());
  if (!call || !plan_.weights.Prepare(context->pool())) return false;
  Values values;
  Read(0, *context, &values);
  call->image.values = values.data;
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out, Allocate(call->shape, context));
  const Int8StageFunctions& functions = *plan_.kernels.stages;
  const int64_t columns = plan_.weights.columns();
  const Int8Output output(
      columns, plan_.weights.layout().nr, functions,
      QuantizedPlace{static_cast<uint8_t*>(out->raw()), columns});
  const Int8StagesSink sink(stages_, functions, output);
  Multiply(GemmOf(*call), context->pool(), sink);
  Finish(out, context);
  return true;
}

}  // namespace

std::unique_ptr<QdqKernel> MakeQdqLayer(QdqLayerPlan plan, QdqSteps steps) {
  return std::make_unique<QdqLayer>(std::move(plan), std::move(steps));
}

}  // namespace optfarm::runtime
