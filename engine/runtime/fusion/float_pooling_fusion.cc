// MaxPool and AvgPool on floats.

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/runtime/fusion/families.h"
#include "engine/runtime/fusion/layer_tail.h"
#include "engine/runtime/fusion/pooled_convolution.h"
#include "engine/runtime/operators/float_windows.h"

namespace optfarm::runtime {
namespace {

class FloatPoolKernel final : public JoinableKernel, public PoolLayer {
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
  std::optional<WindowSlide> PlanPool(const Shape& image) const override {
    return is_part() ? std::nullopt : PlanSlide(image);
  }
  int64_t ChannelsFor(int64_t image) const override { return image; }

 private:
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

void ReplacePool(const FusionContext& context, void (*run)(const FloatWindow&),
                 int number, PlanEditor* plan) {
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
  auto kernel = std::make_unique<FloatPoolKernel>(
      run, *attrs, *size,
      plan->TakeChain({number}, fused.inputs, fused.outputs));
  context.TraitsOf(kernel.get()).joinable = kernel.get();
  context.TraitsOf(kernel.get()).pool = kernel.get();
  fused.kernel = std::move(kernel);
  plan->Fuse({number}, std::move(fused));
}

}  // namespace

void ReplaceFloatPools(const FusionContext& context, PlanEditor* plan) {
  const FloatWindows* code = FindFloatWindows(context.cpu());
  if (code == nullptr) return;
  for (int i = 0; i < plan->step_count(); ++i) {
    if (IsFloatNode(plan->step(i), "MaxPool")) {
      ReplacePool(context, code->max, i, plan);
    } else if (IsFloatNode(plan->step(i), "AvgPool")) {
      ReplacePool(context, code->average, i, plan);
    }
  }
}

}  // namespace optfarm::runtime
