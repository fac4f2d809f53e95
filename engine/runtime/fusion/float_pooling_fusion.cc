// MaxPool and AvgPool on floats.

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/runtime/fusion/families.h"
#include "engine/runtime/fusion/joined_part.h"
#include "engine/runtime/fusion/layer_tail.h"
#include "engine/runtime/fusion/row_bands.h"
#include "engine/runtime/operators/float_windows.h"
#include "engine/runtime/ukernels/micro_kernel_catalog.h"

namespace optfarm::runtime {
namespace {

class FloatPoolKernel final : public JoinableKernel, public RowConsumer {
 public:
  FloatPoolKernel(void (*run)(const FloatWindow&), const WindowAttrs& attrs,
                  const std::vector<int64_t>& size, StepChain chain)
      : run_(run), attrs_(attrs), size_(size), chain_(std::move(chain)) {}

  absl::Status Compute(KernelContext* context) const override {
    const Tensor& image = context->input(0);
    if (image.dtype() != tensorflow::DT_FLOAT) {
      return RunSteps(chain_, context);
    }
    std::optional<WindowSlide> slide = PlanSlide(image.shape());
    if (!slide) return RunSteps(chain_, context);
    const int64_t dims[] = {slide->batch, slide->window.y.out,
                            slide->window.x.out, slide->channels};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(const FloatPlace place,
                             AllocatePart(shape, context));
    slide->image = image.data<float>();
    slide->out = place.data;
    slide->out_stride = place.pixel_stride;
    Slide(*slide, context->pool());
    return absl::OkStatus();
  }
  int64_t ChannelsFor(int64_t image) const override { return image; }

  bool Reads(const RowElements& elements) const override {
    return elements.dtype == tensorflow::DT_FLOAT;
  }
  std::optional<BandPlan> PlanBands(const RowImage& image,
                                    ThreadPool* pool) const override;
  absl::StatusOr<bool> WithReader(
      const RowImage& image, KernelContext* context,
      absl::FunctionRef<void(const Reader&)> use) const override;

 private:
  // The image's rows, band by band.
  struct PoolReader final : Reader {
    // All but where the image is.
    WindowSlide slide;

    void Read(const RowBand& band, FirstWeights::Place) const override {
      WindowSlide some = slide;
      some.batch = 1;
      some.image = static_cast<const float*>(band.rows);
      some.window.y = AxisOf(slide.window.y, band);
      const int64_t first = band.image * slide.window.y.out + band.begin;
      SlideRows(some, 0, some.window.y.out,
                slide.out + first * slide.window.x.out * slide.channels);
    }
  };

  std::optional<WindowSlide> PlanSlide(const RowImage& image) const {
    return PlanSlide(
        Shape({image.batch, image.height, image.width, image.channels}));
  }
  std::optional<WindowSlide> PlanSlide(const Shape& image) const {
    if (image.rank() != 4) return std::nullopt;
    const absl::StatusOr<Window> window =
        PlaceWindow(attrs_, image.dim(1), image.dim(2), size_[0], size_[1]);
    // Pointers to the cells must not take more than the image itself.
    if (!window.ok() || size_[0] * size_[1] > 1024 + image.num_elements()) {
      return std::nullopt;
    }
    WindowSlide slide;
    slide.run = run_;
    slide.window = *window;
    slide.batch = image.dim(0);
    slide.channels = image.dim(3);
    return slide;
  }

  void (*run_)(const FloatWindow&);
  const WindowAttrs attrs_;
  const std::vector<int64_t> size_;
  const StepChain chain_;
};

std::optional<BandPlan> FloatPoolKernel::PlanBands(const RowImage& image,
                                                   ThreadPool* pool) const {
  // UNITS: bytes of a band.
  constexpr int64_t kBandBytes = 192 * 1024;
  // UNITS: bytes of the image from which on bands take less time.
  constexpr int64_t kLeastBytes = 512 * 1024;
  // Rows for each thread: fewer could not be shared out evenly.
  constexpr int64_t kLeastRows = 7;
  if (is_part() || 4 * image.rows() * image.row_size() < kLeastBytes) {
    return std::nullopt;
  }
  const std::optional<WindowSlide> slide = PlanSlide(image);
  if (!slide ||
      slide->batch * slide->window.y.out < kLeastRows * pool->threads()) {
    return std::nullopt;
  }
  return BandPlan{slide->window.y, kBandBytes, pool->threads()};
}

absl::StatusOr<bool> FloatPoolKernel::WithReader(
    const RowImage& image, KernelContext* context,
    absl::FunctionRef<void(const Reader&)> use) const {
  PoolReader reader;
  reader.slide = *PlanSlide(image);
  const Window& window = reader.slide.window;
  const int64_t dims[] = {image.batch, window.y.out, window.x.out,
                          image.channels};
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * out, context->AllocateOutput(0, tensorflow::DT_FLOAT, shape));
  reader.slide.out = out->data<float>();
  use(reader);
  return true;
}

void ReplacePool(void (*run)(const FloatWindow&), int number,
                 PlanEditor* plan) {
  const Step& step = *plan->step(number);
  if (step.inputs.size() != 1 || !plan->MayFuse({number}, step.outputs)) return;
  const absl::StatusOr<WindowAttrs> attrs = ReadWindowAttrs(*step.node);
  if (!attrs.ok() || attrs->is_nchw) return;
  const absl::StatusOr<std::vector<int64_t>> size =
      ReadWindowList(*step.node, "ksize", false);
  if (!size.ok()) return;
  FusedStep fused;
  fused.inputs = step.inputs;
  fused.outputs = step.outputs;
  fused.kernel = std::make_unique<FloatPoolKernel>(
      run, *attrs, *size,
      plan->TakeChain({number}, fused.inputs, fused.outputs));
  plan->Fuse({number}, std::move(fused));
}

void ReplaceFloatPools(const CpuFeatures& cpu, PlanEditor* plan) {
  const FloatWindows* functions =
      SelectFunctions(&MicroKernelFunction::float_windows, cpu);
  if (functions == nullptr) return;
  for (int i = 0; i < plan->step_count(); ++i) {
    if (IsFloatNode(plan->step(i), "MaxPool")) {
      ReplacePool(functions->max, i, plan);
    } else if (IsFloatNode(plan->step(i), "AvgPool")) {
      ReplacePool(functions->average, i, plan);
    }
  }
}

}  // namespace

const Fusion kFloatPoolFusion = {
    .name = "pool",
    .pattern = "MaxPool or AvgPool",
    .replacement = "a pool that slides its window with vectors of channels",
    .run = ReplaceFloatPools,
};

}  // namespace optfarm::runtime
