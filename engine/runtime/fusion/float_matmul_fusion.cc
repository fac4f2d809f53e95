// MatMul -> bias -> sum -> rectifier, with a constant right factor.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/fusion/families.h"
#include "engine/runtime/fusion/layer_tail.h"
#include "engine/runtime/operators/float_panels.h"
#include "engine/runtime/operators/float_row.h"
#include "engine/runtime/ukernels/micro_kernel_catalog.h"

namespace optfarm::runtime {
namespace {

struct FloatMatMul {
  FloatPanels panels;
  PackedWeights packed;
  std::vector<float> scale;
  std::vector<float> bias;
  bool has_residual = false;
  Rectifier rectifier = Rectifier::kNone;
  StepChain chain;
};

class FloatMatMulKernel final : public Kernel, public WeightReader {
 public:
  explicit FloatMatMulKernel(FloatMatMul m) : m_(std::move(m)) {}

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
    const float* from = left.data<float>();
    if (left.dim(0) == 1 && m_.packed.use() == WeightUse::kInPlace) {
      Scratch<float> sums(m_.panels.count() * m_.panels.tiles->width);
      if (MultiplyInPlace(from, sums.span(), context->pool())) {
        // What is left is a product of depth 1.
        static constexpr float kOne = 1.0f;
        FloatPanels panels = m_.panels;
        panels.depth = 1;
        return Multiply(panels, sums.data(), &kOne, shape, context);
      }
    }
    Tensor streamed;
    const Tensor* packed =
        m_.packed.Get(context->pool(), left.dim(0), &streamed);
    if (packed == nullptr) return m_.chain.Run(context);
    return Multiply(m_.panels, packed->data<float>(), from, shape, context);
  }
  FirstWeights First() const override {
    return FirstPanels(m_.panels, m_.packed);
  }

 private:
  // False for weights that are not to be used where they are.
  bool MultiplyInPlace(const float* row, absl::Span<float> sums,
                       ThreadPool* pool) const {
    return m_.packed.ReadInPlace(
        [&](const Tensor& weights, WeightLayout::Done done) {
          std::fill(sums.begin() + m_.panels.columns, sums.end(), 0.0f);
          MultiplyStoredRow(*m_.panels.tiles, row,
                            {weights.raw(), m_.panels.depth, m_.panels.columns},
                            done, sums.data(), pool);
        });
  }

  absl::Status Multiply(const FloatPanels& panels, const float* packed,
                        const float* rows, const Shape& shape,
                        KernelContext* context) const {
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, m_.has_residual ? context->ForwardOrAllocateOutput(
                                            0, 1, tensorflow::DT_FLOAT, shape)
                                      : context->AllocateOutput(
                                            0, tensorflow::DT_FLOAT, shape));
    FloatProduct product;
    product.panels = panels;
    product.packed = packed;
    if (!m_.scale.empty()) product.scale = m_.scale.data();
    if (!m_.bias.empty()) product.bias = m_.bias.data();
    if (m_.has_residual) product.residual = context->input(1).data<float>();
    product.out = out->data<float>();
    product.row_stride = panels.columns;
    product.rectifier = m_.rectifier;
    product.rows = shape.dim(0);
    product.run = panels.depth;
    product.row_bytes = 4 * panels.depth;
    product.next = &next();
    MultiplyPanels(
        product,
        [&](int64_t first, int count, float*, const float** to) {
          for (int i = 0; i < count; ++i)
            to[i] = rows + (first + i) * product.run;
        },
        context->pool());
    return absl::OkStatus();
  }
  const FloatMatMul m_;
};

void FuseMatMul(const FloatTiles* tiles, int number, PlanEditor* plan) {
  const Step& step = *plan->step(number);
  const int right_slot = step.inputs[1];
  const Tensor* right = plan->ConstantOf(right_slot);
  const auto transpose_a = graph::GetBoolOr(*step.node, "transpose_a", false);
  const auto transpose_b = graph::GetBoolOr(*step.node, "transpose_b", false);
  if (right == nullptr || right->dtype() != tensorflow::DT_FLOAT ||
      right->rank() != 2 || right->num_elements() == 0 || !transpose_a.ok() ||
      *transpose_a || !transpose_b.ok() ||
      !plan->MayFuse({number}, step.outputs)) {
    return;
  }
  const bool transposed = *transpose_b;
  const Shape shape = right->shape();
  const FloatPanels panels = {tiles, shape.dim(transposed ? 1 : 0),
                              shape.dim(transposed ? 0 : 1)};
  FusedStep fused;
  const absl::StatusOr<PackedWeights> packed =
      plan->Pack(*right, LayoutOf(panels, transposed), &fused.constant_bytes);
  if (!packed.ok()) return;
  plan->weights().MayStream(*packed);
  if (!transposed) plan->weights().MayReadInPlace(*packed);
  const LayerTail tail = FollowTail(*plan, number, {panels.columns, 2}, true);
  fused.inputs = {step.inputs[0]};
  if (tail.residual != kNoSlot) fused.inputs.push_back(tail.residual);
  fused.outputs = {tail.output};
  FloatMatMul m;
  m.panels = panels;
  m.packed = *packed;
  m.scale = PadColumns(panels, tail.affine.scale);
  m.bias = PadColumns(panels, tail.affine.bias);
  m.has_residual = tail.residual != kNoSlot;
  m.rectifier = tail.rectifier;
  const auto restore = [shape, weights = *packed]() -> absl::StatusOr<Tensor> {
    OPTFARM_ASSIGN_OR_RETURN(const Tensor value, weights.Value());
    return value.Reshaped(shape);
  };
  m.chain = plan->TakeChain(tail.members, fused.inputs, fused.outputs,
                            {{right_slot, Tensor(), restore}});
  fused.kernel = std::make_unique<FloatMatMulKernel>(std::move(m));
  plan->Fuse(tail.members, std::move(fused));
}

void FuseFloatMatMuls(const CpuFeatures& cpu, PlanEditor* plan) {
  const FloatTiles* tiles =
      SelectFunctions(&MicroKernelFunction::float_gemm, cpu);
  if (tiles == nullptr) return;
  for (int i = 0; i < plan->step_count(); ++i) {
    if (IsFloatNode(plan->step(i), "MatMul")) {
      FuseMatMul(tiles, i, plan);
    }
  }
}

}  // namespace

const Fusion kFloatMatMulFusion = {
    .name = "matmul",
    .pattern = "MatMul [BiasAdd, Mul, Add] [Add of a residual] [Relu or Relu6]",
    .replacement =
        "a matrix multiply with packed weights; the rest is its "
        "epilogue",
    .run = FuseFloatMatMuls,
};

}  // namespace optfarm::runtime
