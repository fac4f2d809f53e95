#include "engine/runtime/fusion/int8_layer.h"

#include <limits>
#include <mutex>
#include <utility>

#include "base/status_macros.h"
#include "engine/runtime/fusion/int8_image.h"
#include "engine/runtime/fusion/int8_sinks.h"
#include "engine/runtime/fusion/joined_part.h"
#include "engine/runtime/operators/int8_gemm.h"
#include "engine/runtime/reference/quantized/quantized_inputs.h"

namespace optfarm::runtime {
namespace {

class Int8Layer final : public JoinableKernel,
                        public WeightReader,
                        public FloatImageLayer {
 public:
  Int8Layer(Int8LayerPlan plan, StepChain steps)
      : plan_(std::move(plan)), steps_(std::move(steps)) {
    if (plan_.chain.needs_extremes() || !plan_.input_range) return;
    has_ready_ = plan_.chain.Prepare(WideOf(plan_, *plan_.input_range), false,
                                     nullptr, *plan_.kernels.stages, &ready_);
  }

  absl::Status Compute(KernelContext* context) const override {
    const std::optional<Call> call = ReadInputs(*context);
    if (!call || !plan_.weights.Prepare(context->pool())) {
      return RunSteps(steps_, context);
    }
    return plan_.chain.needs_extremes() ? ComputeInTwoPasses(*call, context)
                                        : ComputeAtOnce(*call, context);
  }
  FirstWeights First() const override {
    return FirstInt8Weights(plan_.weights);
  }
  int64_t ChannelsFor(int64_t) const override {
    return CodesRange() ? plan_.weights.columns() : 0;
  }
  std::optional<Range> CodesRange() const override {
    if (!plan_.window || !has_ready_ || !plan_.chain.has_given_range()) {
      return std::nullopt;
    }
    return ready_.range;
  }
  bool MayTakeFloats(Range range) const override {
    return plan_.is_by_row && plan_.kernels.row != nullptr && HasReady(range) &&
           FindInt8Epilogue(ready_.stages).has_value();
  }
  absl::StatusOr<bool> ComputeFloats(const FloatCodes& codes,
                                     KernelContext* context) const override;

 private:
  struct Call {
    Int8Activations image;
    Range range;
    Shape shape;
  };

  // Nothing for what the kernels of the steps are to look at.
  std::optional<Call> ReadInputs(const KernelContext& context) const;
  // The same for an image whose codes have this range.
  std::optional<Call> CallFor(const Tensor& image, Range range) const;
  bool HasReady(Range range) const {
    return has_ready_ && plan_.input_range->min == range.min &&
           plan_.input_range->max == range.max;
  }
  bool PlaceImage(const Tensor& input, Call* call) const;

  Int8Gemm GemmOf(const Call& call) const {
    return {.input = call.image,
            .weights = plan_.weights,
            .kernels = plan_.kernels,
            .is_depthwise = plan_.is_depthwise,
            .is_by_row = plan_.is_by_row,
            .next = &next()};
  }
  absl::StatusOr<Int8Output> AllocateResult(const Call& call,
                                            KernelContext* context) const;
  void SetRange(Range range, KernelContext* context) const {
    if (plan_.chain.state() != Int8State::kFloat) {
      SetOutputRange(context, 1, range);
    }
  }
  absl::Status ComputeAtOnce(const Call& call, KernelContext* context) const;
  absl::Status ComputeBy(const Int8Stages& stages, const Call& call,
                         KernelContext* context) const;
  absl::Status ComputeInTwoPasses(const Call& call,
                                  KernelContext* context) const;

  Int8LayerPlan plan_;
  StepChain steps_;
  // For plan_.input_range.
  bool has_ready_ = false;
  Int8Stages ready_;
  // Found by the first run that needs them: weights are packed late. Where each
  // run found them, other threads fetched them from this one's cache.
  mutable std::once_flag init_once_;
  mutable std::vector<int32_t> ready_init_;
};

bool Int8Layer::PlaceImage(const Tensor& input, Call* call) const {
  Int8Activations& image = call->image;
  if (input.dtype() == tensorflow::DT_FLOAT) {
    image.floats = input.data<float>();
  } else {
    image.values = input.data<uint8_t>();
  }
  image.channels = plan_.channels;
  const int64_t columns = plan_.weights.columns();
  if (!plan_.window) {
    if (input.rank() != 2 || input.dim(1) != plan_.channels) return false;
    image.batch = input.dim(0);
    image.window = Int8MatrixWindow();
    auto shape = Shape::FromDims({image.batch, columns});
    if (shape.ok()) call->shape = *std::move(shape);
    return shape.ok();
  }
  if (input.rank() != 4 || input.dim(3) != plan_.channels) return false;
  image.batch = input.dim(0);
  const auto window = PlaceWindow(*plan_.window, input.dim(1), input.dim(2),
                                  plan_.size_y, plan_.size_x);
  if (!window.ok()) return false;
  image.window = *window;
  auto shape =
      Shape::FromDims({image.batch, window->y.out, window->x.out, columns});
  if (shape.ok()) call->shape = *std::move(shape);
  return shape.ok();
}

std::optional<Int8Layer::Call> Int8Layer::ReadInputs(
    const KernelContext& context) const {
  if (context.num_inputs() != 3 + other_inputs() ||
      context.input(0).dtype() != tensorflow::DT_QUINT8) {
    return std::nullopt;
  }
  const absl::StatusOr<Range> range = InputRange(context, 1);
  if (!range.ok()) return std::nullopt;
  return CallFor(context.input(0), *range);
}

std::optional<Int8Layer::Call> Int8Layer::CallFor(const Tensor& image,
                                                  Range range) const {
  const absl::StatusOr<int32_t> zero = ZeroCode(range);
  if (!zero.ok()) return std::nullopt;
  Call call;
  call.range = range;
  if (!PlaceImage(image, &call)) return std::nullopt;
  call.image.zero_point = *zero;
  // A matrix side, and what becomes of it, must fit in 32 bits.
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const int64_t elements = call.shape.num_elements();
  if (elements == 0 || elements > kMost) return std::nullopt;
  // Padding is to add nothing.
  if (plan_.is_depthwise && (*zero < 0 || *zero > 255)) return std::nullopt;
  if (!plan_.weights_steps.empty() &&
      !SumsFit(GemmOf(call).depth(), *zero, plan_.weights_zero) &&
      !(plan_.largest_weight && SumsFit(*plan_.largest_weight, *zero))) {
    return std::nullopt;
  }
  return call;
}

absl::StatusOr<Int8Output> Int8Layer::AllocateResult(
    const Call& call, KernelContext* context) const {
  const Int8StageFunctions& functions = *plan_.kernels.stages;
  const int64_t columns = plan_.weights.columns();
  const int nr = plan_.weights.layout().nr;
  const Int8State state = plan_.chain.state();
  if (is_part()) {
    OPTFARM_ASSIGN_OR_RETURN(const CodePlace place,
                             AllocateCodes(call.shape, context));
    return Int8Output(columns, nr, functions, place);
  }
  const DataType dtype = state == Int8State::kFloat   ? tensorflow::DT_FLOAT
                         : state == Int8State::kCodes ? tensorflow::DT_QUINT8
                                                      : tensorflow::DT_QINT32;
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, dtype, call.shape));
  if (state != Int8State::kCodes)
    return Int8Output(columns, nr, functions, out);
  return Int8Output(columns, nr, functions,
                    CodePlace{out->data<uint8_t>(), columns});
}

absl::Status Int8Layer::ComputeAtOnce(const Call& call,
                                      KernelContext* context) const {
  const bool is_single = call.shape.num_elements() == 1;
  const bool is_ready = !is_single && HasReady(call.range);
  Int8Stages made;
  if (!is_ready &&
      !plan_.chain.Prepare(WideOf(plan_, call.range), is_single, nullptr,
                           *plan_.kernels.stages, &made)) {
    return RunSteps(steps_, context);
  }
  return ComputeBy(is_ready ? ready_ : made, call, context);
}

absl::StatusOr<bool> Int8Layer::ComputeFloats(const FloatCodes& codes,
                                              KernelContext* context) const {
  const Tensor& image = context->input(0);
  if (image.dtype() != tensorflow::DT_FLOAT) return false;
  std::optional<Call> call = CallFor(image, codes.range);
  if (!call || !plan_.weights.Prepare(context->pool())) return false;
  call->image.quantize = &codes.quantize;
  if (!SuitsRowKernel(GemmOf(*call))) return false;
  OPTFARM_RETURN_IF_ERROR(ComputeBy(ready_, *call, context));
  return true;
}

absl::Status Int8Layer::ComputeBy(const Int8Stages& stages, const Call& call,
                                  KernelContext* context) const {
  OPTFARM_ASSIGN_OR_RETURN(const Int8Output output,
                           AllocateResult(call, context));
  const Int8StagesSink sink(stages.stages, *plan_.kernels.stages, output);
  Int8Gemm gemm = GemmOf(call);
  if (!stages.bias.empty()) gemm.bias = stages.bias.data();
  if (&stages == &ready_) {
    std::call_once(init_once_,
                   [&] { ready_init_ = FindAccumulatorInit(gemm); });
    gemm.init = ready_init_.data();
  }
  Multiply(gemm, context->pool(), sink);
  SetRange(stages.range, context);
  return absl::OkStatus();
}

absl::Status Int8Layer::ComputeInTwoPasses(const Call& call,
                                           KernelContext* context) const {
  OPTFARM_ASSIGN_OR_RETURN(
      const Shape all,
      Shape::FromDims({call.image.rows(), plan_.weights.padded_columns()}));
  OPTFARM_ASSIGN_OR_RETURN(Tensor numbers,
                           Tensor::Allocate(tensorflow::DT_INT32, all));
  Int8Extremes extremes;
  Int8Gemm gemm = GemmOf(call);
  const Int8KeepingSink kept(gemm, numbers.data<int32_t>());
  const Int8Wide wide = WideOf(plan_, call.range);
  const std::vector<int32_t> bias = plan_.chain.Bias(wide);
  if (!bias.empty()) gemm.bias = bias.data();
  Multiply(gemm, context->pool(), kept, &extremes);
  Int8Stages stages;
  if (!plan_.chain.Prepare(wide, call.shape.num_elements() == 1, &extremes,
                           *plan_.kernels.stages, &stages)) {
    return RunSteps(steps_, context);
  }
  OPTFARM_ASSIGN_OR_RETURN(const Int8Output output,
                           AllocateResult(call, context));
  const Int8StagesSink sink(stages.stages, *plan_.kernels.stages, output);
  kept.Replay(context->pool(), sink);
  SetRange(stages.range, context);
  return absl::OkStatus();
}

}  // namespace

Int8Wide WideOf(const Int8LayerPlan& plan, Range input) {
  Int8Wide wide;
  if (plan.weights_steps.empty()) {
    wide.range = RangeOfProduct<uint8_t, uint8_t>(input, plan.weights_range);
    return wide;
  }
  const float step = (input.max - input.min) / 255.0f;
  for (float weights_step : plan.weights_steps) {
    wide.steps.push_back(weights_step * step);
  }
  return wide;
}

std::unique_ptr<Kernel> MakeInt8Layer(const FusionContext& context,
                                      Int8LayerPlan plan, StepChain steps) {
  // The few weights of a depthwise layer are not worth fetching.
  const bool is_large = !plan.is_depthwise;
  auto kernel = std::make_unique<Int8Layer>(std::move(plan), std::move(steps));
  KernelTraits& traits = context.TraitsOf(kernel.get());
  if (is_large) traits.reader = kernel.get();
  if (kernel->CodesRange()) traits.joinable = kernel.get();
  traits.floats = kernel.get();
  return kernel;
}

}  // namespace optfarm::runtime
