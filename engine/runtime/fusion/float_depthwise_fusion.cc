// Pad -> DepthwiseConv2dNative -> bias -> rectifier, with constant filters.
// Filters are read as they are: there is nothing to pack.

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/fusion/families.h"
#include "engine/runtime/fusion/layer_padding.h"
#include "engine/runtime/fusion/layer_tail.h"
#include "engine/runtime/fusion/row_bands.h"
#include "engine/runtime/operators/float_windows.h"
#include "engine/runtime/ukernels/micro_kernel_catalog.h"

namespace optfarm::runtime {
namespace {

struct FloatDepthwise {
  WindowAttrs window;
  // [height, width, channels of the output, 1].
  Tensor filter;
  // Outputs of each channel of the input.
  int64_t multiplier = 1;
  ChannelAffine affine;
  Rectifier rectifier = Rectifier::kNone;
  StepChain chain;
};

// All but where the result goes; nothing for an image that is left to the
// steps. With a multiplier the image still lacks the channels' copies.
std::optional<WindowSlide> PlanSlide(const FloatWindows& functions,
                                     const FloatDepthwise& d,
                                     const Tensor& image) {
  const int64_t channels = d.filter.dim(2);
  if (image.dtype() != tensorflow::DT_FLOAT || image.rank() != 4 ||
      image.dim(3) * d.multiplier != channels) {
    return std::nullopt;
  }
  const absl::StatusOr<Window> window = PlaceWindow(
      d.window, image.dim(1), image.dim(2), d.filter.dim(0), d.filter.dim(1));
  if (!window.ok()) return std::nullopt;
  WindowSlide slide;
  slide.run = functions.depthwise;
  slide.window = *window;
  slide.batch = image.dim(0);
  slide.channels = channels;
  slide.image = image.data<float>();
  slide.weights = d.filter.data<float>();
  if (!d.affine.scale.empty()) slide.scale = d.affine.scale.data();
  if (!d.affine.bias.empty()) slide.bias = d.affine.bias.data();
  slide.rectifier = d.rectifier;
  return slide;
}

// Slides over the whole image into output 0.
absl::Status SlideToOutput(WindowSlide slide, KernelContext* context) {
  const int64_t dims[] = {slide.batch, slide.window.y.out, slide.window.x.out,
                          slide.channels};
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * out, context->AllocateOutput(0, tensorflow::DT_FLOAT, shape));
  slide.out = out->data<float>();
  slide.out_stride = slide.channels;
  Slide(slide, context->pool());
  return absl::OkStatus();
}

class FloatDepthwiseKernel final : public Kernel, public RowProducer {
 public:
  FloatDepthwiseKernel(const FloatWindows* functions, FloatDepthwise d)
      : functions_(functions), d_(std::move(d)) {}

  absl::Status Compute(KernelContext* context) const override {
    const std::optional<WindowSlide> slide =
        PlanSlide(*functions_, d_, context->input(0));
    if (!slide) return d_.chain.Run(context);
    return SlideToOutput(*slide, context);
  }

  std::optional<RowElements> Elements() const override { return RowElements(); }
  std::optional<RowImage> ImageOf(const Tensor& input) const override {
    const std::optional<WindowSlide> slide = PlanSlide(*functions_, d_, input);
    if (!slide) return std::nullopt;
    return RowImage{slide->batch, slide->window.y.out, slide->window.x.out,
                    slide->channels};
  }
  absl::StatusOr<bool> WithRows(
      const Tensor& input, ThreadPool*,
      absl::FunctionRef<absl::StatusOr<bool>(const Rows&)> use) const override {
    return use(DepthwiseRows(*PlanSlide(*functions_, d_, input)));
  }

 private:
  class DepthwiseRows final : public Rows {
   public:
    explicit DepthwiseRows(const WindowSlide& slide) : slide_(slide) {}
    void Make(int64_t begin, int64_t end, FirstWeights::Place,
              void* out) const override {
      SlideRows(slide_, begin, end, static_cast<float*>(out));
    }

   private:
    const WindowSlide slide_;
  };

  const FloatWindows* functions_;
  const FloatDepthwise d_;
};

// Several filters for each channel: a channel is copied for each, which costs
// less than a micro-kernel that reads one element for several sums.
class MultipliedDepthwiseKernel final : public Kernel {
 public:
  MultipliedDepthwiseKernel(const FloatWindows* functions, FloatDepthwise d)
      : functions_(functions), d_(std::move(d)) {}

  absl::Status Compute(KernelContext* context) const override {
    const Tensor& image = context->input(0);
    std::optional<WindowSlide> slide = PlanSlide(*functions_, d_, image);
    if (!slide) return d_.chain.Run(context);
    const int64_t dims[] = {image.num_elements(), d_.multiplier};
    OPTFARM_ASSIGN_OR_RETURN(const Shape copies, Shape::FromDims(dims));
    const Scratch<float> copied(copies.num_elements());
    Copy(image.data<float>(), image.num_elements(), context->pool(),
         copied.data());
    slide->image = copied.data();
    return SlideToOutput(*slide, context);
  }

 private:
  void Copy(const float* in, int64_t count, ThreadPool* pool,
            float* out) const {
    const int64_t m = d_.multiplier;
    pool->ParallelFor(count, 1 + 16384 / m, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) std::fill_n(out + i * m, m, in[i]);
    });
  }

  const FloatWindows* functions_;
  const FloatDepthwise d_;
};

bool IsServed(const Tensor* filter) {
  return filter != nullptr && filter->dtype() == tensorflow::DT_FLOAT &&
         filter->rank() == 4 && filter->num_elements() > 0;
}

void FuseDepthwise(const FloatWindows* functions, int number,
                   PlanEditor* plan) {
  const Step& step = *plan->step(number);
  const Tensor* filter = plan->ConstantOf(step.inputs[1]);
  if (!IsServed(filter) || !plan->MayFuse({number}, step.outputs)) return;
  absl::StatusOr<WindowAttrs> window = ReadWindowAttrs(*step.node);
  if (!window.ok() || window->is_nchw) return;
  const int64_t multiplier = filter->dim(3);
  // A factor of the filter's elements, so there is no overflow.
  const int64_t channels = filter->dim(2) * multiplier;
  const LayerTail tail = FollowTail(*plan, number, {channels, 4}, false);
  FusedStep fused;
  fused.inputs = {step.inputs[0]};
  std::vector<int> members = tail.members;
  const int padding = FindPadding(*plan, number, &*window);
  if (padding != kNoStep) {
    members.insert(members.begin(), padding);
    fused.inputs = {plan->step(padding)->inputs[0]};
  }
  fused.outputs = {tail.output};
  FloatDepthwise d;
  d.window = *window;
  d.filter =
      filter->Reshaped(Shape({filter->dim(0), filter->dim(1), channels, 1}));
  d.multiplier = multiplier;
  fused.constant_bytes = filter->TotalBytes();
  d.affine = tail.affine;
  d.rectifier = tail.rectifier;
  d.chain = plan->TakeChain(members, fused.inputs, fused.outputs);
  if (multiplier == 1) {
    fused.kernel =
        std::make_unique<FloatDepthwiseKernel>(functions, std::move(d));
  } else {
    fused.kernel =
        std::make_unique<MultipliedDepthwiseKernel>(functions, std::move(d));
  }
  plan->Fuse(members, std::move(fused));
}

void FuseFloatDepthwise(const CpuFeatures& cpu, PlanEditor* plan) {
  const FloatWindows* functions =
      SelectFunctions(&MicroKernelFunction::float_windows, cpu);
  if (functions == nullptr) return;
  for (int i = 0; i < plan->step_count(); ++i) {
    if (IsFloatNode(plan->step(i), "DepthwiseConv2dNative")) {
      FuseDepthwise(functions, i, plan);
    }
  }
}

}  // namespace

const Fusion kFloatDepthwiseFusion = {
    .name = "depthwise",
    .pattern =
        "[Pad] DepthwiseConv2dNative [BiasAdd, Mul, Add, "
        "FusedBatchNorm] [Relu or Relu6]",
    .replacement = "a depthwise convolution; the rest is its epilogue",
    .run = FuseFloatDepthwise,
};

}  // namespace optfarm::runtime
