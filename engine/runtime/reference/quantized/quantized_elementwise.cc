// QuantizedAdd, QuantizedMul, QuantizedBiasAdd, QuantizedRelu and
// QuantizedRelu6.

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/core/quantization.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/broadcast.h"
#include "engine/runtime/reference/quantized/quantized_arithmetic.h"
#include "engine/runtime/reference/quantized/quantized_families.h"
#include "engine/runtime/reference/quantized/quantized_inputs.h"

namespace optfarm::runtime {
namespace {

using tensorflow::NodeDef;

constexpr int64_t kGrain = 16384;

// Calls combine(value of a, value of b) for every element of the output.
template <typename Combine>
void ForEachPair(KernelContext* c, const BroadcastPlan& plan, int32_t* out,
                 Combine combine) {
  if (plan.output.num_elements() == 0) return;
  const uint8_t* a = c->input(0).data<uint8_t>();
  const uint8_t* b = c->input(1).data<uint8_t>();
  const int64_t row = plan.row();
  const int64_t step_a = plan.a_moves() ? 1 : 0;
  const int64_t step_b = plan.b_moves() ? 1 : 0;
  c->pool()->ParallelFor(
      plan.rows(), std::max<int64_t>(kGrain / row, 1),
      [&](int64_t begin, int64_t end) {
        plan.ForEachRow(
            begin, end, [&](int64_t at_a, int64_t at_b, int64_t at) {
              for (int64_t i = 0; i < row; ++i) {
                out[at + i] =
                    combine(a[at_a + i * step_a], b[at_b + i * step_b]);
              }
            });
      });
}

// --- Sums --------------------------------------------------------------------

absl::Status Sum(KernelContext* c, const BroadcastPlan& plan,
                 const AddendTable& table_a, const AddendTable& table_b,
                 Range range) {
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * out, c->AllocateOutput(0, tensorflow::DT_QINT32, plan.output));
  ForEachPair(c, plan, out->data<int32_t>(), [&](uint8_t x, uint8_t y) {
    return CutTo32Bits(int64_t{table_a[x]} + table_b[y]);
  });
  SetOutputRange(c, 1, range);
  return absl::OkStatus();
}

absl::Status RequireTwoQuantized(const KernelContext& c) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(c, 6));
  OPTFARM_RETURN_IF_ERROR(RequireInputDtype(c, 0, tensorflow::DT_QUINT8));
  return RequireInputDtype(c, 1, tensorflow::DT_QUINT8);
}

absl::Status RequireQuint8Operands(const NodeDef& node, const char* out) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T1", {tensorflow::DT_QUINT8}));
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T2", {tensorflow::DT_QUINT8}));
  return RequireTypeAttr(node, out, {tensorflow::DT_QINT32});
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeAdd(const NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireQuint8Operands(node, "Toutput"));
  return MakeKernel([](KernelContext* c) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireTwoQuantized(*c));
    OPTFARM_ASSIGN_OR_RETURN(const Range a, InputRange(*c, 2));
    OPTFARM_ASSIGN_OR_RETURN(const Range b, InputRange(*c, 4));
    OPTFARM_ASSIGN_OR_RETURN(
        const BroadcastPlan plan,
        PlanBroadcast(c->input(0).shape(), c->input(1).shape()));
    const Range range = RangeOfSum(a, b);
    return Sum(c, plan, TableForAdd(a, range, c->input(0).num_elements() == 1),
               TableForAdd(b, range, c->input(1).num_elements() == 1), range);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeBiasAdd(const NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireQuint8Operands(node, "out_type"));
  return MakeKernel([](KernelContext* c) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireTwoQuantized(*c));
    OPTFARM_RETURN_IF_ERROR(RequireRank(c->input(1), "bias", 1));
    const Shape& shape = c->input(0).shape();
    if (shape.rank() < 1 || shape.dim(shape.rank() - 1) != c->input(1).dim(0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a bias of ", c->input(1).dim(0),
                       " values does not fit the last "
                       "dimension of ",
                       shape.ToString()));
    }
    OPTFARM_ASSIGN_OR_RETURN(const Range a, InputRange(*c, 2));
    OPTFARM_ASSIGN_OR_RETURN(const Range b, InputRange(*c, 4));
    OPTFARM_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                             PlanBroadcast(shape, c->input(1).shape()));
    const Range range = RangeOfBiasSum(a, b);
    return Sum(c, plan, TableForBias(a, range), TableOfBias(b, range), range);
  });
}

// --- Products ----------------------------------------------------------------

absl::StatusOr<std::unique_ptr<Kernel>> MakeMul(const NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireQuint8Operands(node, "Toutput"));
  return MakeKernel([](KernelContext* c) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireTwoQuantized(*c));
    OPTFARM_ASSIGN_OR_RETURN(const Range a, InputRange(*c, 2));
    OPTFARM_ASSIGN_OR_RETURN(const Range b, InputRange(*c, 4));
    OPTFARM_ASSIGN_OR_RETURN(
        const BroadcastPlan plan,
        PlanBroadcast(c->input(0).shape(), c->input(1).shape()));
    // A layer whose results all lie far below zero has such a range. One
    // product of two offsets still fits in 32 bits.
    constexpr int32_t kMostZero = 32000;
    OPTFARM_ASSIGN_OR_RETURN(const int32_t zero_a, ZeroPointOf(a, kMostZero));
    OPTFARM_ASSIGN_OR_RETURN(const int32_t zero_b, ZeroPointOf(b, kMostZero));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, c->AllocateOutput(0, tensorflow::DT_QINT32, plan.output));
    ForEachPair(c, plan, out->data<int32_t>(), [=](uint8_t x, uint8_t y) {
      return (int32_t{x} - zero_a) * (int32_t{y} - zero_b);
    });
    SetOutputRange(c, 1, RangeOfProduct<uint8_t, uint8_t>(a, b));
    return absl::OkStatus();
  });
}

// --- Activations -------------------------------------------------------------

// Clamps to the zero point and, where `is_relu6`, to the quantized 6.
template <typename Q>
absl::Status Clamp(KernelContext* c, DataType dtype, bool is_relu6) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*c, 3));
  OPTFARM_RETURN_IF_ERROR(RequireInputDtype(*c, 0, dtype));
  OPTFARM_ASSIGN_OR_RETURN(const Range range, InputRange(*c, 1));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out, c->ForwardOrAllocateOutput(
                                             0, 0, dtype, c->input(0).shape()));
  const Q low = Quantize<Q>(0.0f, range);
  const Q high =
      is_relu6 ? Quantize<Q>(6.0f, range) : std::numeric_limits<Q>::max();
  const Q* in = c->input(0).data<Q>();
  Q* quantized = out->data<Q>();
  c->pool()->ParallelFor(
      out->num_elements(), kGrain, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          quantized[i] = std::min(std::max(in[i], low), high);
        }
      });
  SetOutputRange(c, 1, range);
  return absl::OkStatus();
}

template <bool kHasSix>
absl::StatusOr<std::unique_ptr<Kernel>> MakeRelu(const NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
      node, "Tinput", {tensorflow::DT_QUINT8, tensorflow::DT_QINT32}));
  return MakeKernel([](KernelContext* c) -> absl::Status {
    if (c->num_inputs() > 0 && c->input(0).dtype() == tensorflow::DT_QINT32) {
      return Clamp<int32_t>(c, tensorflow::DT_QINT32, kHasSix);
    }
    return Clamp<uint8_t>(c, tensorflow::DT_QUINT8, kHasSix);
  });
}

}  // namespace

void AddQuantizedElementwiseKernels(KernelCatalog* catalog) {
  catalog->Add("QuantizedAdd", MakeAdd);
  catalog->Add("QuantizedBiasAdd", MakeBiasAdd);
  catalog->Add("QuantizedMul", MakeMul);
  catalog->Add("QuantizedRelu", MakeRelu<false>);
  catalog->Add("QuantizedRelu6", MakeRelu<true>);
}

}  // namespace optfarm::runtime
