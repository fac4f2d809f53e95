// DequantizeBlocks -> MatMul -> bias -> sum -> rectifier: the product reads
// weights of 4 bits.

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/fusion/families.h"
#include "engine/runtime/fusion/layer_tail.h"
#include "engine/runtime/operators/int4_panels.h"
#include "engine/runtime/ukernels/micro_kernel_catalog.h"

namespace optfarm::runtime {
namespace {

struct Int4MatMul {
  Int4Panels panels;
  const FloatTiles* float_tiles = nullptr;
  PackedWeights packed;
  std::vector<float> scale;
  std::vector<float> bias;
  bool has_residual = false;
  Rectifier rectifier = Rectifier::kNone;
  StepChain chain;
};

class Int4MatMulKernel final : public Kernel {
 public:
  explicit Int4MatMulKernel(Int4MatMul m) : m_(std::move(m)) {}

  absl::Status Compute(KernelContext* context) const override {
    const Tensor& left = context->input(0);
    if (left.dtype() != tensorflow::DT_FLOAT || left.rank() != 2 ||
        left.dim(1) != m_.panels.depth) {
      return m_.chain.Run(context);
    }
    const int64_t dims[] = {left.dim(0), m_.panels.columns};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    if (m_.has_residual && (context->input(1).shape() != shape ||
                            context->input(1).dtype() != left.dtype())) {
      return m_.chain.Run(context);
    }
    const Tensor* packed = m_.packed.Get(context->pool());
    if (packed == nullptr) return m_.chain.Run(context);
    Int4Product product;
    product.panels = m_.panels;
    product.packed = packed->raw();
    product.float_tiles = m_.float_tiles;
    product.in = left.data<float>();
    product.rows = left.dim(0);
    if (!MayMultiplyInt4(product)) return m_.chain.Run(context);
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, m_.has_residual ? context->ForwardOrAllocateOutput(
                                            0, 1, tensorflow::DT_FLOAT, shape)
                                      : context->AllocateOutput(
                                            0, tensorflow::DT_FLOAT, shape));
    if (!m_.scale.empty()) product.scale = m_.scale.data();
    if (!m_.bias.empty()) product.bias = m_.bias.data();
    if (m_.has_residual) product.residual = context->input(1).data<float>();
    product.out = out->data<float>();
    product.rectifier = m_.rectifier;
    MultiplyInt4(product, context->pool());
    return absl::OkStatus();
  }

 private:
  const Int4MatMul m_;
};

// Constant weights in blocks.
struct BlockWeights {
  BlockGrid grid;
  const Tensor* values = nullptr;
  Tensor scale;
  Tensor zero_point;
};

// False where the slot holds something else.
bool ReadWeights(const PlanEditor& plan, int slot, BlockWeights* weights) {
  const int producer = plan.ProducerOf(slot);
  const Step* const step = producer == kNoStep ? nullptr : plan.step(producer);
  if (step == nullptr || step->node == nullptr ||
      step->op != "DequantizeBlocks" || step->inputs.size() != 3) {
    return false;
  }
  weights->values = plan.ConstantOf(step->inputs[0]);
  const Tensor* const scale = plan.ConstantOf(step->inputs[1]);
  const Tensor* const zero_point = plan.ConstantOf(step->inputs[2]);
  absl::StatusOr<BlockGrid> grid = BlockGrid::Of(*step->node);
  if (weights->values == nullptr || scale == nullptr || zero_point == nullptr ||
      !grid.ok() || !grid->Check(*weights->values, *scale, *zero_point).ok()) {
    return false;
  }
  weights->grid = *std::move(grid);
  weights->scale = *scale;
  weights->zero_point = *zero_point;
  return true;
}

// The weights again, for the reference kernel.
std::function<absl::StatusOr<Tensor>()> Restorer(BlockWeights weights,
                                                 PackedWeights packed) {
  weights.values = nullptr;
  return [weights = std::move(weights),
          packed = std::move(packed)]() -> absl::StatusOr<Tensor> {
    OPTFARM_ASSIGN_OR_RETURN(const Tensor values, packed.Value());
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor floats,
        Tensor::Allocate(tensorflow::DT_FLOAT, weights.grid.shape()));
    DequantizeOuter(weights.grid, values, weights.scale, weights.zero_point, 0,
                    weights.grid.outer(), floats.data<float>());
    return floats;
  };
}

std::vector<float> Padded(const Int4Panels& panels, std::vector<float> values) {
  if (!values.empty()) values.resize(PaddedColumns(panels), 0.0f);
  return values;
}

void FuseMatMul(const Int4Tiles* tiles, const FloatTiles* float_tiles,
                int number, PlanEditor* plan) {
  const Step& step = *plan->step(number);
  const auto transpose_a = graph::GetBoolOr(*step.node, "transpose_a", false);
  const auto transpose_b = graph::GetBoolOr(*step.node, "transpose_b", false);
  BlockWeights weights;
  const int right_slot = step.inputs[1];
  if (!transpose_a.ok() || *transpose_a || !transpose_b.ok() ||
      !plan->MayFuse({number}, step.outputs) ||
      !ReadWeights(*plan, right_slot, &weights) ||
      weights.grid.shape().rank() != 2 ||
      weights.grid.axis() != (*transpose_b ? 1 : 0)) {
    return;
  }
  const Int4Panels panels = PanelsOf(weights.grid, tiles);
  if (panels.depth == 0) return;
  FusedStep fused;
  const absl::StatusOr<PackedWeights> packed = plan->Pack(
      *weights.values,
      LayoutOf(panels, weights.grid, weights.scale, weights.zero_point),
      &fused.constant_bytes);
  if (!packed.ok()) return;
  const LayerTail tail = FollowTail(*plan, number, {panels.columns, 2}, true);
  fused.inputs = {step.inputs[0]};
  if (tail.residual != kNoSlot) fused.inputs.push_back(tail.residual);
  fused.outputs = {tail.output};
  Int4MatMul m;
  m.panels = panels;
  m.float_tiles = float_tiles;
  m.packed = *packed;
  m.scale = Padded(panels, tail.affine.scale);
  m.bias = Padded(panels, tail.affine.bias);
  m.has_residual = tail.residual != kNoSlot;
  m.rectifier = tail.rectifier;
  m.chain = plan->TakeChain(
      tail.members, fused.inputs, fused.outputs,
      {{right_slot, Tensor(), Restorer(std::move(weights), *packed)}});
  fused.kernel = std::make_unique<Int4MatMulKernel>(std::move(m));
  plan->Fuse(tail.members, std::move(fused));
}

void FuseInt4MatMuls(const CpuFeatures& cpu, PlanEditor* plan) {
  const Int4Tiles* const tiles =
      SelectFunctions(&MicroKernelFunction::int4_gemm, cpu);
  const FloatTiles* const float_tiles =
      SelectFunctions(&MicroKernelFunction::float_gemm, cpu);
  if (tiles == nullptr) return;
  for (int i = 0; i < plan->step_count(); ++i) {
    if (IsFloatNode(plan->step(i), "MatMul")) {
      FuseMatMul(tiles, float_tiles, i, plan);
    }
  }
  // Weights that nobody reads as floats any more.
  for (int i = 0; i < plan->step_count(); ++i) {
    const Step* const step = plan->step(i);
    if (step != nullptr && step->op == "DequantizeBlocks" && plan->MayDrop(i)) {
      plan->Drop(i);
    }
  }
}

}  // namespace

const Fusion kInt4MatMulFusion = {
    .name = "int4",
    .pattern =
        "DequantizeBlocks of a constant, MatMul [BiasAdd, Mul, Add] [Add of a "
        "residual] [Relu or Relu6]",
    .replacement =
        "a matrix multiply that unpacks weights of 4 bits as it reads them",
    .run = FuseInt4MatMuls,
    .wants_quantized_constants = true,
};

}  // namespace optfarm::runtime
