#include "engine/runtime/fusion/int8_layer.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "base/status_macros.h"
#include "engine/runtime/fusion/int8_sinks.h"
#include "engine/runtime/fusion/joined_part.h"
#include "engine/runtime/fusion/row_bands.h"
#include "engine/runtime/operators/int8_gemm.h"
#include "engine/runtime/reference/quantized/quantized_inputs.h"

namespace optfarm::runtime {
namespace {

class Int8Layer final : public JoinableKernel,
                        public WeightReader,
                        public RowConsumer {
 public:
  Int8Layer(Int8LayerPlan plan, StepChain steps)
      : plan_(std::move(plan)), steps_(std::move(steps)) {
    if (plan_.chain.needs_extremes() || !plan_.input_range) return;
    has_ready_ =
        plan_.chain.Prepare(AccumulatorScaleOf(plan_, *plan_.input_range),
                            false, nullptr, *plan_.kernels.stages, &ready_);
  }

  absl::Status Compute(KernelContext* context) const override {
    const std::optional<Call> call = ReadInputs(*context);
    if (!call || !plan_.weights.Prepare(context->pool())) {
      return RunSteps(steps_, context);
    }
    return plan_.chain.needs_extremes() ? ComputeInTwoPasses(*call, context)
                                        : ComputeAtOnce(*call, context);
  }
  // The few weights of a depthwise layer are not worth fetching.
  FirstWeights First() const override {
    return plan_.is_depthwise ? FirstWeights()
                              : FirstInt8Weights(plan_.weights);
  }
  bool MayBePart() const override { return QuantizedRange().has_value(); }
  int64_t ChannelsFor(int64_t) const override {
    return plan_.weights.columns();
  }
  std::optional<Range> QuantizedRange() const override {
    if (!plan_.window || !has_ready_ || !plan_.chain.has_given_range()) {
      return std::nullopt;
    }
    return ready_.range;
  }

  // Layers over few channels, whose row kernel reads an image row by row.
  bool Reads(const RowElements& elements) const override {
    return elements.dtype == tensorflow::DT_QUINT8 && plan_.is_by_row &&
           plan_.kernels.row != nullptr && HasReady(elements.range) &&
           FindInt8Epilogue(ready_.stages).has_value();
  }
  std::optional<BandPlan> PlanBands(const RowImage& image,
                                    ThreadPool* pool) const override;
  absl::StatusOr<bool> WithReader(
      const RowImage& image, KernelContext* context,
      absl::FunctionRef<void(const Reader&)> use) const override;

 private:
  struct Call {
    Int8Activations image;
    Range range;
    Shape shape;
  };
  class LayerReader;

  // Nothing for what the kernels of the steps are to look at.
  std::optional<Call> ReadInputs(const KernelContext& context) const;
  // The same for an image of this shape whose quantized values have this range,
  // but for where it is.
  std::optional<Call> CallFor(const Shape& input, Range range) const;
  std::optional<Call> CallFor(const RowImage& image) const {
    return CallFor(
        Shape({image.batch, image.height, image.width, image.channels}),
        *plan_.input_range);
  }
  bool HasReady(Range range) const {
    return has_ready_ && plan_.input_range->min == range.min &&
           plan_.input_range->max == range.max;
  }
  bool PlaceImage(const Shape& input, Call* call) const;

  Int8Gemm GemmOf(const Call& call) const {
    return {.input = call.image,
            .weights = plan_.weights,
            .kernels = plan_.kernels,
            .is_depthwise = plan_.is_depthwise,
            .is_by_row = plan_.is_by_row,
            .next = &next()};
  }
  // By ready_: its accumulator init is found once.
  Int8Gemm ReadyGemmOf(const Call& call) const;
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

bool Int8Layer::PlaceImage(const Shape& input, Call* call) const {
  Int8Activations& image = call->image;
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
  std::optional<Call> call = CallFor(context.input(0).shape(), *range);
  if (call) call->image.values = context.input(0).data<uint8_t>();
  return call;
}

std::optional<Int8Layer::Call> Int8Layer::CallFor(const Shape& input,
                                                  Range range) const {
  const absl::StatusOr<int32_t> zero = ZeroPointOf(range);
  if (!zero.ok()) return std::nullopt;
  Call call;
  call.range = range;
  if (!PlaceImage(input, &call)) return std::nullopt;
  call.image.zero_point = *zero;
  // A matrix side, and what becomes of it, must fit in 32 bits.
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const int64_t elements = call.shape.num_elements();
  if (elements == 0 || elements > kMost) return std::nullopt;
  // Padding is to add nothing.
  if (plan_.is_depthwise && (*zero < 0 || *zero > 255)) return std::nullopt;
  if (!plan_.weight_scales.empty() &&
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
    OPTFARM_ASSIGN_OR_RETURN(const QuantizedPlace place,
                             AllocateQuantizedPart(call.shape, context));
    return Int8Output(columns, nr, functions, place);
  }
  const DataType dtype = state == Int8State::kFloat ? tensorflow::DT_FLOAT
                         : state == Int8State::kQuantized
                             ? tensorflow::DT_QUINT8
                             : tensorflow::DT_QINT32;
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, dtype, call.shape));
  if (state != Int8State::kQuantized)
    return Int8Output(columns, nr, functions, out);
  return Int8Output(columns, nr, functions,
                    QuantizedPlace{out->data<uint8_t>(), columns});
}

absl::Status Int8Layer::ComputeAtOnce(const Call& call,
                                      KernelContext* context) const {
  const bool is_single = call.shape.num_elements() == 1;
  const bool is_ready = !is_single && HasReady(call.range);
  Int8Stages made;
  if (!is_ready &&
      !plan_.chain.Prepare(AccumulatorScaleOf(plan_, call.range), is_single,
                           nullptr, *plan_.kernels.stages, &made)) {
    return RunSteps(steps_, context);
  }
  return ComputeBy(is_ready ? ready_ : made, call, context);
}

// The image's rows, band by band.
class Int8Layer::LayerReader final : public Reader {
 public:
  LayerReader(const Int8Layer& layer, Call call, const Int8Output& output)
      : layer_(layer),
        call_(std::move(call)),
        output_(output),
        sink_(layer.ready_.stages, *layer.plan_.kernels.stages, output_) {}

  void Read(const RowBand& band, FirstWeights::Place next) const override {
    const Window& window = call_.image.window;
    Call call = call_;
    call.image.values = static_cast<const uint8_t*>(band.rows);
    call.image.batch = 1;
    call.image.window.y = AxisOf(window.y, band);
    const int64_t first = band.image * window.y.out + band.begin;
    MultiplyRowsAlone(layer_.ReadyGemmOf(call), first * window.x.out, next,
                      sink_);
  }

 private:
  const Int8Layer& layer_;
  // All but where the image is.
  const Call call_;
  const Int8Output output_;
  const Int8StagesSink sink_;
};

std::optional<BandPlan> Int8Layer::PlanBands(const RowImage& image,
                                             ThreadPool* pool) const {
  // UNITS: bytes of a band: a part of the second-level cache, because each
  // band begins with a little work of its own.
  constexpr int64_t kBandBytes = 64 * 1024;
  const std::optional<Call> call = CallFor(image);
  if (!call || !plan_.weights.Prepare(pool)) return std::nullopt;
  const Int8Gemm gemm = GemmOf(*call);
  if (!SuitsRowKernel(gemm)) return std::nullopt;
  const int64_t rows = call->image.batch * call->image.window.y.out;
  return BandPlan{
      call->image.window.y, kBandBytes,
      std::clamp<int64_t>(rows / RowsForThread(gemm), 1, pool->threads())};
}

absl::StatusOr<bool> Int8Layer::WithReader(
    const RowImage& image, KernelContext* context,
    absl::FunctionRef<void(const Reader&)> use) const {
  Call call = *CallFor(image);
  OPTFARM_ASSIGN_OR_RETURN(const Int8Output output,
                           AllocateResult(call, context));
  use(LayerReader(*this, std::move(call), output));
  SetRange(ready_.range, context);
  return true;
}

Int8Gemm Int8Layer::ReadyGemmOf(const Call& call) const {
  Int8Gemm gemm = GemmOf(call);
  if (!ready_.bias.empty()) gemm.bias = ready_.bias.data();
  std::call_once(init_once_, [&] { ready_init_ = FindAccumulatorInit(gemm); });
  gemm.init = ready_init_.data();
  return gemm;
}

absl::Status Int8Layer::ComputeBy(const Int8Stages& stages, const Call& call,
                                  KernelContext* context) const {
  OPTFARM_ASSIGN_OR_RETURN(const Int8Output output,
                           AllocateResult(call, context));
  const Int8StagesSink sink(stages.stages, *plan_.kernels.stages, output);
  if (&stages == &ready_) {
    Multiply(ReadyGemmOf(call), context->pool(), sink);
  } else {
    Int8Gemm gemm = GemmOf(call);
    if (!stages.bias.empty()) gemm.bias = stages.bias.data();
    Multiply(gemm, context->pool(), sink);
  }
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
  const Int8AccumulatorScale scale = AccumulatorScaleOf(plan_, call.range);
  const std::vector<int32_t> bias = plan_.chain.Bias(scale);
  if (!bias.empty()) gemm.bias = bias.data();
  Multiply(gemm, context->pool(), kept, &extremes);
  Int8Stages stages;
  if (!plan_.chain.Prepare(scale, call.shape.num_elements() == 1, &extremes,
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

Int8AccumulatorScale AccumulatorScaleOf(const Int8LayerPlan& plan,
                                        Range input) {
  Int8AccumulatorScale scale;
  if (plan.weight_scales.empty()) {
    scale.range = RangeOfProduct<uint8_t, uint8_t>(input, plan.weights_range);
    return scale;
  }
  const float input_scale = (input.max - input.min) / 255.0f;
  for (float weight_scale : plan.weight_scales) {
    scale.scales.push_back(weight_scale * input_scale);
  }
  return scale;
}

std::unique_ptr<Kernel> MakeInt8Layer(Int8LayerPlan plan, StepChain steps) {
  return std::make_unique<Int8Layer>(std::move(plan), std::move(steps));
}

}  // namespace optfarm::runtime
