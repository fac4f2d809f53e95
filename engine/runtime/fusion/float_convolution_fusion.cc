// Pad -> Conv2D -> bias, batch norm -> sum -> rectifier, with constant filters.

#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/runtime/fusion/families.h"
#include "engine/runtime/fusion/float_convolution.h"
#include "engine/runtime/fusion/layer_padding.h"
#include "engine/runtime/fusion/layer_tail.h"
#include "engine/runtime/ukernels/micro_kernel_catalog.h"

namespace optfarm::runtime {
namespace {

// More channels in one pixel than any net has; bounds the kernel's own memory.
constexpr int64_t kMostRun = 1 << 20;

bool IsServed(const Tensor* filter) {
  return filter != nullptr && filter->dtype() == tensorflow::DT_FLOAT &&
         filter->rank() == 4 && filter->num_elements() > 0 &&
         filter->dim(1) * filter->dim(2) <= kMostRun;
}

void FuseConvolution(const FloatTiles* tiles, int number, PlanEditor* plan) {
  const Step& step = *plan->step(number);
  const int filter_slot = step.inputs[1];
  const Tensor* filter = plan->ConstantOf(filter_slot);
  if (!IsServed(filter) || !plan->MayFuse({number}, step.outputs)) return;
  absl::StatusOr<WindowAttrs> window = ReadWindowAttrs(*step.node);
  if (!window.ok() || window->is_nchw) return;
  const Shape shape = filter->shape();
  const FloatPanels panels = {tiles, shape.num_elements() / shape.dim(3),
                              shape.dim(3)};
  FusedStep fused;
  const absl::StatusOr<PackedWeights> packed =
      plan->Pack(*filter, LayoutOf(panels, false), &fused.constant_bytes);
  if (!packed.ok()) return;
  plan->weights().MayStream(*packed);
  const LayerTail tail = FollowTail(*plan, number, {shape.dim(3), 4}, true);
  std::vector<int> members = tail.members;
  fused.inputs = {step.inputs[0]};
  const int padding = FindPadding(*plan, number, &*window);
  if (padding != kNoStep) {
    members.insert(members.begin(), padding);
    fused.inputs = {plan->step(padding)->inputs[0]};
  }
  if (tail.residual != kNoSlot) fused.inputs.push_back(tail.residual);
  fused.outputs = {tail.output};
  FloatConvolution c;
  c.window = *window;
  c.filter_shape = shape;
  c.panels = panels;
  c.packed = *packed;
  c.scale = PadColumns(panels, tail.affine.scale);
  c.bias = PadColumns(panels, tail.affine.bias);
  c.has_residual = tail.residual != kNoSlot;
  c.rectifier = tail.rectifier;
  const auto restore = [shape, weights = *packed]() -> absl::StatusOr<Tensor> {
    OPTFARM_ASSIGN_OR_RETURN(const Tensor value, weights.Value());
    return value.Reshaped(shape);
  };
  c.chain = plan->TakeChain(members, fused.inputs, fused.outputs,
                            {{filter_slot, Tensor(), restore}});
  fused.kernel = MakeFloatConvolution(std::move(c));
  plan->Fuse(members, std::move(fused));
}

void FuseFloatConvolutions(const CpuFeatures& cpu, PlanEditor* plan) {
  const FloatTiles* tiles =
      SelectFunctions(&MicroKernelFunction::float_gemm, cpu);
  if (tiles == nullptr) return;
  for (int i = 0; i < plan->step_count(); ++i) {
    if (IsFloatNode(plan->step(i), "Conv2D")) {
      FuseConvolution(tiles, i, plan);
    }
  }
}

}  // namespace

const Fusion kFloatConvolutionFusion = {
    .name = "convolution",
    .pattern =
        "[Pad] Conv2D [BiasAdd, Mul, Add, FusedBatchNorm] [Add of a "
        "residual] [Relu or Relu6]",
    .replacement =
        "a convolution with packed filters; the rest is its epilogue",
    .run = FuseFloatConvolutions,
};

}  // namespace optfarm::runtime
