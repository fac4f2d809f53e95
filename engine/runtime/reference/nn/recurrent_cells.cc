// Fused recurrent cells: LSTMBlockCell, BlockLSTM (the same over time) and
// GRUBlockCell. Each is a matrix product followed by gates.

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/linear_algebra/matrix_product.h"

namespace optfarm::runtime {
namespace {

float Sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

absl::Status RequireFloats(const KernelContext& context, int first) {
  for (int i = first; i < context.num_inputs(); ++i) {
    OPTFARM_RETURN_IF_ERROR(RequireDtype(
        context.input(i), absl::StrCat("input ", i), tensorflow::DT_FLOAT));
  }
  return absl::OkStatus();
}

// x and h next to each other, row by row.
std::vector<float> Joined(const float* x, int64_t x_size, const float* h,
                          int64_t h_size, int64_t rows) {
  std::vector<float> joined;
  joined.reserve(rows * (x_size + h_size));
  for (int64_t r = 0; r < rows; ++r) {
    joined.insert(joined.end(), x + r * x_size, x + (r + 1) * x_size);
    joined.insert(joined.end(), h + r * h_size, h + (r + 1) * h_size);
  }
  return joined;
}

struct LstmAttrs {
  float forget_bias = 1.0f;
  // No clipping when not above 0.
  float cell_clip = 3.0f;
  bool use_peephole = false;
  // BlockLSTMV2 has its gates in another order.
  bool forget_comes_second = false;
};

struct LstmSizes {
  int64_t batch = 0;
  int64_t inputs = 0;
  int64_t cells = 0;
};

// Where one step's outputs go, in the op's order.
struct LstmStep {
  float* i;
  float* cs;
  float* f;
  float* o;
  float* ci;
  float* co;
  float* h;
};

// Weights and peepholes, as the ops order them.
struct LstmWeights {
  const float* w;
  const float* wci;
  const float* wcf;
  const float* wco;
  const float* b;
};

void RunLstmStep(const float* x, const float* cs_prev, const float* h_prev,
                 const LstmWeights& weights, const LstmSizes& s,
                 const LstmAttrs& attrs, ThreadPool* pool,
                 const LstmStep& out) {
  LeaveIfRunEnded();
  const int64_t width = s.inputs + s.cells;
  const std::vector<float> joined =
      Joined(x, s.inputs, h_prev, s.cells, s.batch);
  const Scratch<float> gates(s.batch * 4 * s.cells);
  Multiply<float>({joined.data(), s.batch, width, false},
                  {weights.w, width, 4 * s.cells, false}, pool, gates.data());
  const int64_t cell_at = attrs.forget_comes_second ? 2 : 1;
  const int64_t forget_at = attrs.forget_comes_second ? 1 : 2;
  for (int64_t k = 0; k < s.batch * s.cells; ++k) {
    const int64_t c = k % s.cells;
    const float* row = gates.data() + k / s.cells * 4 * s.cells;
    const auto gate = [&](int64_t number) {
      return row[number * s.cells + c] + weights.b[number * s.cells + c];
    };
    const auto peek = [&](const float* w, float state) {
      return attrs.use_peephole ? w[c] * state : 0.0f;
    };
    const float i = Sigmoid(gate(0) + peek(weights.wci, cs_prev[k]));
    const float ci = std::tanh(gate(cell_at));
    const float f = Sigmoid(gate(forget_at) + attrs.forget_bias +
                            peek(weights.wcf, cs_prev[k]));
    float cs = ci * i + cs_prev[k] * f;
    if (attrs.cell_clip > 0.0f) {
      cs = std::min(std::max(cs, -attrs.cell_clip), attrs.cell_clip);
    }
    const float o = Sigmoid(gate(3) + peek(weights.wco, cs));
    const float co = std::tanh(cs);
    out.i[k] = i;
    out.cs[k] = cs;
    out.f[k] = f;
    out.o[k] = o;
    out.ci[k] = ci;
    out.co[k] = co;
    out.h[k] = o * co;
  }
}

// Checks the state and the weights, from input `first` on, which is cs_prev.
absl::Status RequireLstmShapes(const KernelContext& context, int first,
                               const LstmSizes& s, bool use_peephole) {
  const Shape state{s.batch, s.cells};
  int64_t width = 0;
  int64_t gates = 0;
  if (__builtin_add_overflow(s.inputs, s.cells, &width) ||
      __builtin_mul_overflow(s.cells, int64_t{4}, &gates)) {
    return absl::InvalidArgumentError("the cell is too large");
  }
  OPTFARM_RETURN_IF_ERROR(RequireShape(context.input(first), "cs_prev", state));
  OPTFARM_RETURN_IF_ERROR(
      RequireShape(context.input(first + 1), "h_prev", state));
  const int64_t w_dims[] = {width, gates};
  OPTFARM_ASSIGN_OR_RETURN(const Shape w_shape, Shape::FromDims(w_dims));
  OPTFARM_RETURN_IF_ERROR(RequireShape(context.input(first + 2), "w", w_shape));
  for (int i = 3; use_peephole && i < 6; ++i) {
    OPTFARM_RETURN_IF_ERROR(
        RequireShape(context.input(first + i), "a peephole", Shape{s.cells}));
  }
  return RequireShape(context.input(first + 6), "b", Shape{gates});
}

LstmWeights WeightsAt(const KernelContext& context, int first) {
  return {context.input(first).data<float>(),
          context.input(first + 1).data<float>(),
          context.input(first + 2).data<float>(),
          context.input(first + 3).data<float>(),
          context.input(first + 4).data<float>()};
}

absl::StatusOr<std::vector<float*>> AllocateOutputs(const Shape& shape,
                                                    int count,
                                                    KernelContext* context) {
  std::vector<float*> outputs;
  for (int i = 0; i < count; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(i, tensorflow::DT_FLOAT, shape));
    outputs.push_back(out->data<float>());
  }
  return outputs;
}

absl::StatusOr<LstmAttrs> ReadLstmAttrs(const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", {tensorflow::DT_FLOAT}));
  LstmAttrs attrs;
  attrs.forget_comes_second = node.op() == "BlockLSTMV2";
  OPTFARM_ASSIGN_OR_RETURN(
      attrs.forget_bias,
      graph::GetFloatOr(node, "forget_bias",
                        attrs.forget_comes_second ? 0.0f : 1.0f));
  OPTFARM_ASSIGN_OR_RETURN(
      attrs.cell_clip,
      graph::GetFloatOr(node, "cell_clip",
                        attrs.forget_comes_second ? 0.0f : 3.0f));
  OPTFARM_ASSIGN_OR_RETURN(attrs.use_peephole,
                           graph::GetBoolOr(node, "use_peephole", false));
  return attrs;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLstmCell(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const LstmAttrs attrs, ReadLstmAttrs(node));
  return MakeKernel([attrs](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 8));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 7));
    OPTFARM_RETURN_IF_ERROR(RequireFloats(*context, 0));
    const Tensor& x = context->input(0);
    const Tensor& cs_prev = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireRank(x, "x", 2));
    OPTFARM_RETURN_IF_ERROR(RequireRank(cs_prev, "cs_prev", 2));
    const LstmSizes s{x.dim(0), x.dim(1), cs_prev.dim(1)};
    OPTFARM_RETURN_IF_ERROR(
        RequireLstmShapes(*context, 1, s, attrs.use_peephole));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<float*> out,
                             AllocateOutputs(cs_prev.shape(), 7, context));
    if (cs_prev.num_elements() == 0) return absl::OkStatus();
    RunLstmStep(x.data<float>(), cs_prev.data<float>(),
                context->input(2).data<float>(), WeightsAt(*context, 3), s,
                attrs, context->pool(),
                {out[0], out[1], out[2], out[3], out[4], out[5], out[6]});
    return absl::OkStatus();
  });
}

// Steps from seq_len_max on give zeros.
absl::StatusOr<std::unique_ptr<Kernel>> MakeBlockLstm(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const LstmAttrs attrs, ReadLstmAttrs(node));
  return MakeKernel([attrs](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 9));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 7));
    OPTFARM_RETURN_IF_ERROR(RequireFloats(*context, 1));
    OPTFARM_ASSIGN_OR_RETURN(int64_t steps,
                             ReadInteger(context->input(0), "seq_len_max"));
    const Tensor& x = context->input(1);
    const Tensor& cs_prev = context->input(2);
    OPTFARM_RETURN_IF_ERROR(RequireRank(x, "x", 3));
    OPTFARM_RETURN_IF_ERROR(RequireRank(cs_prev, "cs_prev", 2));
    const LstmSizes s{x.dim(1), x.dim(2), cs_prev.dim(1)};
    OPTFARM_RETURN_IF_ERROR(
        RequireLstmShapes(*context, 2, s, attrs.use_peephole));
    const int64_t dims[] = {x.dim(0), s.batch, s.cells};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<float*> out,
                             AllocateOutputs(shape, 7, context));
    if (shape.num_elements() == 0) return absl::OkStatus();
    steps = std::clamp<int64_t>(steps, 0, x.dim(0));
    const int64_t size = s.batch * s.cells;
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t at = t * size;
      RunLstmStep(x.data<float>() + t * s.batch * s.inputs,
                  t == 0 ? cs_prev.data<float>() : out[1] + at - size,
                  t == 0 ? context->input(3).data<float>() : out[6] + at - size,
                  WeightsAt(*context, 4), s, attrs, context->pool(),
                  {out[0] + at, out[1] + at, out[2] + at, out[3] + at,
                   out[4] + at, out[5] + at, out[6] + at});
    }
    for (float* values : out) {
      std::fill(values + steps * size, values + shape.num_elements(), 0.0f);
    }
    return absl::OkStatus();
  });
}

struct GruSizes {
  int64_t batch = 0;
  int64_t cells = 0;
  // Of x and h, joined.
  int64_t width = 0;
  // Columns of both gates.
  int64_t two = 0;
};

absl::StatusOr<GruSizes> CheckGruCell(const KernelContext& context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(context, 6));
  OPTFARM_RETURN_IF_ERROR(RequireOutputs(context, 4));
  OPTFARM_RETURN_IF_ERROR(RequireFloats(context, 0));
  const Tensor& x = context.input(0);
  const Tensor& h = context.input(1);
  OPTFARM_RETURN_IF_ERROR(RequireRank(x, "x", 2));
  OPTFARM_RETURN_IF_ERROR(RequireRank(h, "h_prev", 2));
  GruSizes s;
  s.batch = x.dim(0);
  s.cells = h.dim(1);
  if (h.dim(0) != s.batch ||
      __builtin_add_overflow(x.dim(1), s.cells, &s.width) ||
      __builtin_mul_overflow(s.cells, int64_t{2}, &s.two)) {
    return absl::InvalidArgumentError(
        absl::StrCat("h_prev of shape ", h.shape().ToString(),
                     " does not fit x of shape ", x.shape().ToString()));
  }
  const int64_t ru_dims[] = {s.width, s.two};
  const int64_t c_dims[] = {s.width, s.cells};
  OPTFARM_ASSIGN_OR_RETURN(const Shape ru_shape, Shape::FromDims(ru_dims));
  OPTFARM_ASSIGN_OR_RETURN(const Shape c_shape, Shape::FromDims(c_dims));
  OPTFARM_RETURN_IF_ERROR(RequireShape(context.input(2), "w_ru", ru_shape));
  OPTFARM_RETURN_IF_ERROR(RequireShape(context.input(3), "w_c", c_shape));
  OPTFARM_RETURN_IF_ERROR(RequireShape(context.input(4), "b_ru", Shape{s.two}));
  OPTFARM_RETURN_IF_ERROR(
      RequireShape(context.input(5), "b_c", Shape{s.cells}));
  return s;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeGruCell(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", {tensorflow::DT_FLOAT}));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_ASSIGN_OR_RETURN(const GruSizes sizes, CheckGruCell(*context));
    const auto [batch, cells, width, two] = sizes;
    const Tensor& x = context->input(0);
    const Tensor& h = context->input(1);
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<float*> out,
                             AllocateOutputs(h.shape(), 4, context));
    if (h.num_elements() == 0) return absl::OkStatus();
    const float* h_prev = h.data<float>();
    std::vector<float> joined =
        Joined(x.data<float>(), x.dim(1), h_prev, cells, batch);
    std::vector<float> gates(batch * two);
    Multiply<float>({joined.data(), batch, width, false},
                    {context->input(2).data<float>(), width, two, false},
                    context->pool(), gates.data());
    std::vector<float> reset(batch * cells);
    for (int64_t k = 0; k < batch * cells; ++k) {
      const int64_t c = k % cells;
      const float* row = gates.data() + k / cells * two;
      const float* b = context->input(4).data<float>();
      out[0][k] = Sigmoid(row[c] + b[c]);
      out[1][k] = Sigmoid(row[cells + c] + b[cells + c]);
      reset[k] = out[0][k] * h_prev[k];
    }
    joined = Joined(x.data<float>(), x.dim(1), reset.data(), cells, batch);
    std::vector<float> candidate(batch * cells);
    Multiply<float>({joined.data(), batch, width, false},
                    {context->input(3).data<float>(), width, cells, false},
                    context->pool(), candidate.data());
    for (int64_t k = 0; k < batch * cells; ++k) {
      const float b = context->input(5).data<float>()[k % cells];
      const float u = out[1][k];
      out[2][k] = std::tanh(candidate[k] + b);
      out[3][k] = u * h_prev[k] + (1.0f - u) * out[2][k];
    }
    return absl::OkStatus();
  });
}

}  // namespace

void AddRecurrentCellKernels(KernelCatalog* catalog) {
  catalog->Add("LSTMBlockCell", MakeLstmCell);
  catalog->Add("BlockLSTM", MakeBlockLstm);
  catalog->Add("BlockLSTMV2", MakeBlockLstm);
  catalog->Add("GRUBlockCell", MakeGruCell);
}

}  // namespace optfarm::runtime
