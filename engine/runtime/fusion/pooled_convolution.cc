#include "engine/runtime/fusion/pooled_convolution.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "base/status_macros.h"
#include "engine/runtime/core/scratch.h"

namespace optfarm::runtime {
namespace {

// UNITS: bytes of the convolution's lines that are kept at a time.
constexpr int64_t kStripBytes = 192 * 1024;
// UNITS: bytes between the two from which on strips take less time.
constexpr int64_t kLeastBytes = 512 * 1024;
// Lines for each thread: fewer could not be shared out evenly.
constexpr int64_t kLeastLines = 7;

// Lines of an image, or of what a layer makes of one.
struct Lines {
  int64_t begin = 0;
  int64_t end = 0;
};

// Those that windows of `lines` see.
Lines SeenBy(const WindowAxis& axis, const Lines& lines) {
  const int64_t reach = (axis.size - 1) * axis.dilation;
  const int64_t first = lines.begin * axis.stride - axis.pad_before;
  const int64_t last = (lines.end - 1) * axis.stride - axis.pad_before + reach;
  const int64_t begin = std::clamp<int64_t>(first, 0, axis.in);
  return {begin, std::clamp<int64_t>(last + 1, begin, axis.in)};
}

// One thread's work: a strip of the convolution's lines that goes down the
// images.
class Strip {
 public:
  Strip(const LineLayer& layer, const LineLayer::Plan& plan,
        const Tensor& image, const WindowSlide& slide)
      : layer_(layer),
        plan_(plan),
        image_(image),
        slide_(slide),
        line_(slide.window.x.in * slide.channels),
        // As many of the pool's lines as see lines for the bytes.
        most_(std::max<int64_t>(
            1, kStripBytes / (4 * line_ * slide.window.y.stride))),
        strip_(line_ * std::min(slide.window.y.in, LinesFor(most_))) {}

  // The pool's lines [begin, end), counted over batch and height.
  void Run(int64_t begin, int64_t end, FirstWeights::Place next, float* out) {
    const int64_t height = slide_.window.y.out;
    const int64_t size = slide_.window.x.out * slide_.channels;
    for (int64_t i = begin; i < end;) {
      const int64_t at = i % height;
      const int64_t count = std::min({most_, height - at, end - i});
      const bool is_last = i + count == end;
      RunLines(i / height, {at, at + count},
               is_last ? next : FirstWeights::Place(), out + i * size);
      i += count;
    }
  }

 private:
  int64_t LinesFor(int64_t count) const {
    const WindowAxis& y = slide_.window.y;
    return (count - 1) * y.stride + (y.size - 1) * y.dilation + 1;
  }

  void RunLines(int64_t batch, const Lines& lines, FirstWeights::Place next,
                float* out) {
    const WindowAxis& y = slide_.window.y;
    const Lines seen = SeenBy(y, lines);
    // What the strip before has of them.
    int64_t kept = 0;
    if (batch == batch_ && seen.begin >= held_.begin &&
        seen.begin < held_.end) {
      kept = held_.end - seen.begin;
      const float* from = strip_.data() + (seen.begin - held_.begin) * line_;
      std::copy(from, from + kept * line_, strip_.data());
    }
    const int64_t first = batch * y.in + seen.begin;
    layer_.MakeLines(plan_, image_, first + kept, first + seen.end - seen.begin,
                     next, strip_.data() + kept * line_);
    batch_ = batch;
    held_ = seen;
    WindowSlide slide = slide_;
    slide.batch = 1;
    slide.image = strip_.data();
    slide.window.y.in = seen.end - seen.begin;
    slide.window.y.out = lines.end - lines.begin;
    slide.window.y.pad_before =
        y.pad_before + seen.begin - lines.begin * y.stride;
    SlideLines(slide, 0, slide.window.y.out, out);
  }

  const LineLayer& layer_;
  const LineLayer::Plan& plan_;
  const Tensor& image_;
  const WindowSlide& slide_;
  // UNITS: elements.
  const int64_t line_;
  const int64_t most_;
  const Scratch<float> strip_;
  // The convolution's lines that are there.
  int64_t batch_ = -1;
  Lines held_;
};

class PooledConvolution final : public Kernel {
 public:
  explicit PooledConvolution(PooledParts parts) : parts_(std::move(parts)) {}

  absl::Status Compute(KernelContext* context) const override {
    const Tensor& image = context->input(0);
    const std::optional<LineLayer::Plan> plan =
        parts_.lines->PlanLines(image, context->pool());
    if (!plan) return ComputeApart(context);
    const int64_t between[] = {plan->batch, plan->window.y.out,
                               plan->window.x.out,
                               plan->product.panels.columns};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(between));
    const std::optional<WindowSlide> slide = parts_.slides->PlanPool(shape);
    const int64_t threads = context->pool()->threads();
    if (!slide || 4 * shape.num_elements() < kLeastBytes ||
        slide->batch * slide->window.y.out < kLeastLines * threads) {
      return ComputeApart(context);
    }
    const int64_t dims[] = {slide->batch, slide->window.y.out,
                            slide->window.x.out, slide->channels};
    OPTFARM_ASSIGN_OR_RETURN(const Shape pooled, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, tensorflow::DT_FLOAT, pooled));
    const int64_t lines = slide->batch * slide->window.y.out;
    context->pool()->ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
      Strip(*parts_.lines, *plan, image, *slide)
          .Run(lines * begin / threads, lines * end / threads,
               plan->product.next->Of(begin, threads), out->data<float>());
    });
    return absl::OkStatus();
  }

 private:
  absl::Status ComputeApart(KernelContext* context) const {
    Tensor image = context->input(0), between;
    KernelContext first = context->WithTensors(absl::MakeSpan(&image, 1),
                                               absl::MakeSpan(&between, 1));
    OPTFARM_RETURN_IF_ERROR(parts_.convolution->Compute(&first));
    Tensor out;
    KernelContext second = context->WithTensors(absl::MakeSpan(&between, 1),
                                                absl::MakeSpan(&out, 1));
    OPTFARM_RETURN_IF_ERROR(parts_.pool->Compute(&second));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  }

  const PooledParts parts_;
};

}  // namespace

std::unique_ptr<Kernel> MakePooledConvolution(PooledParts parts) {
  return std::make_unique<PooledConvolution>(std::move(parts));
}

}  // namespace optfarm::runtime
