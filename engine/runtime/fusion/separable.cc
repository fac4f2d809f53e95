#include "engine/runtime/fusion/separable.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "base/status_macros.h"
#include "engine/runtime/core/scratch.h"

namespace optfarm::runtime {
namespace {

// UNITS: bytes of lines between the two that are made at a time, at least; half
// of the second's weights where those are more, which are read for each strip.
constexpr int64_t kStripBytes = 128 * 1024;
// UNITS: bytes between the two from which on strips take less time.
constexpr int64_t kLeastBytes = 300 * 1024;
// Lines for each thread: fewer could not be shared out evenly.
constexpr int64_t kLeastLines = 7;

class SeparableKernel final : public Kernel {
 public:
  explicit SeparableKernel(SeparableParts parts) : parts_(std::move(parts)) {}

  absl::Status Compute(KernelContext* context) const override {
    std::optional<WindowSlide> slide =
        parts_.lines->PlanSlide(context->input(0));
    if (!slide) return ComputeApart(context);
    Tensor streamed;
    const std::optional<FloatProduct> product = parts_.pixels->PlanProduct(
        slide->channels, RowsOf(*slide), context->pool(), &streamed);
    if (!product) return ComputeApart(context);
    const int64_t dims[] = {slide->batch, slide->window.y.out,
                            slide->window.x.out, product->panels.columns};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, tensorflow::DT_FLOAT, shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    if (HasStrips(*slide, context->pool()->threads())) {
      ComputeByStrips(*slide, *product, context->pool(), out->data<float>());
    } else {
      ComputeInTurn(*slide, *product, context->pool(), out->data<float>());
    }
    return absl::OkStatus();
  }

 private:
  static int64_t LinesOf(const WindowSlide& slide) {
    return slide.batch * slide.window.y.out;
  }
  static int64_t RowsOf(const WindowSlide& slide) {
    return LinesOf(slide) * slide.window.x.out;
  }
  // UNITS: elements.
  static int64_t LineSize(const WindowSlide& slide) {
    return slide.window.x.out * slide.channels;
  }
  static bool HasStrips(const WindowSlide& slide, int64_t threads) {
    return LinesOf(slide) >= kLeastLines * threads &&
           4 * LinesOf(slide) * LineSize(slide) >= kLeastBytes;
  }

  // By the kernels themselves, for what is not planned here.
  absl::Status ComputeApart(KernelContext* context) const {
    Tensor image = context->input(0), between;
    KernelContext first = context->WithTensors(absl::MakeSpan(&image, 1),
                                               absl::MakeSpan(&between, 1));
    OPTFARM_RETURN_IF_ERROR(parts_.depthwise->Compute(&first));
    Tensor out;
    KernelContext second = context->WithTensors(absl::MakeSpan(&between, 1),
                                                absl::MakeSpan(&out, 1));
    OPTFARM_RETURN_IF_ERROR(parts_.pixelwise->Compute(&second));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  }

  // Pixels of `channels` floats from `pixels` on.
  static auto PointInto(const float* pixels, int64_t channels) {
    return [=](int64_t first, int count, float*, const float** to) {
      for (int i = 0; i < count; ++i) to[i] = pixels + (first + i) * channels;
    };
  }

  static void ComputeInTurn(WindowSlide slide, FloatProduct product,
                            ThreadPool* pool, float* out) {
    const Scratch<float> between(LinesOf(slide) * LineSize(slide));
    slide.out = between.data();
    slide.out_stride = slide.channels;
    Slide(slide, pool);
    product.rows = RowsOf(slide);
    product.out = out;
    MultiplyPanels(product, PointInto(between.data(), slide.channels), pool);
  }

  static void ComputeByStrips(const WindowSlide& slide,
                              const FloatProduct& product, ThreadPool* pool,
                              float* out) {
    const int64_t lines = LinesOf(slide), threads = pool->threads();
    pool->ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
      FloatProduct part = product;
      part.out = out;
      ComputeLines(slide, lines * begin / threads, lines * end / threads,
                   product.next->Of(0, threads), &part);
    });
  }

  // Lines [begin, end); `product` is for all of them and gives its rows and
  // `out` for those of one strip after the other.
  static void ComputeLines(const WindowSlide& slide, int64_t begin, int64_t end,
                           FirstWeights::Place next, FloatProduct* product) {
    const int64_t width = slide.window.x.out;
    const int64_t row_stride = width * product->row_stride;
    const int64_t bytes = std::max(kStripBytes, 2 * product->panels.size());
    const int64_t most = std::max<int64_t>(1, bytes / (4 * LineSize(slide)));
    const int64_t count = end - begin;
    const int64_t strips = (count + most - 1) / most;
    const Scratch<float> strip((count + strips - 1) / strips * LineSize(slide));
    float* const out = product->out;
    for (int64_t i = 0; i < strips; ++i) {
      const int64_t first = begin + count * i / strips;
      const int64_t last = begin + count * (i + 1) / strips;
      SlideLines(slide, first, last, strip.data());
      product->rows = (last - first) * width;
      product->out = out + first * row_stride;
      MultiplyPanelsAlone(*product, PointInto(strip.data(), slide.channels),
                          i + 1 == strips ? next : FirstWeights::Place());
    }
  }

  const SeparableParts parts_;
};

}  // namespace

std::unique_ptr<Kernel> MakeSeparable(SeparableParts parts) {
  return std::make_unique<SeparableKernel>(std::move(parts));
}

}  // namespace optfarm::runtime
