// LiteLstmSequence: TensorFlow Lite's LSTM over a sequence, with its options
// (coupled gates, peepholes, projection, layer norm, clipping). Where a
// cell_scale is given, gates and state are rounded in each step as the 8-bit
// kernel with 16-bit cells rounds them.

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/lite_families.h"

namespace optfarm::runtime {
namespace {

// Of the integer kernel: gates before and after their functions.
constexpr float kGateStep = 1.0f / 4096;
constexpr float kFunctionStep = 1.0f / 32768;
constexpr float kLayerNormEpsilon = 1e-8f;

enum class Function { kTanh, kRelu, kRelu6, kReluN1To1, kSigmoid, kNone };

struct LiteLstmAttrs {
  bool is_time_major = false, couples_gates = false;
  Function function = Function::kTanh;
  float cell_clip = 0, projection_clip = 0;
  // 0: not rounded.
  float cell_scale = 0, hidden_scale = 0, output_scale = 0;
  int64_t hidden_zero_point = 0, output_zero_point = 0;
};

struct Sizes {
  int64_t batch = 0, time = 0, inputs = 0, cells = 0, outputs = 0, gates = 4;
};

// Weights and options as the kernel reads them; nullptr for none.
struct Parts {
  const float *input_weights, *recurrent_weights, *bias, *peephole, *projection,
      *projection_bias, *layer_norm;
};

float Apply(Function function, float x) {
  switch (function) {
    case Function::kTanh:
      return std::tanh(x);
    case Function::kRelu:
      return std::max(x, 0.0f);
    case Function::kRelu6:
      return std::min(std::max(x, 0.0f), 6.0f);
    case Function::kReluN1To1:
      return std::min(std::max(x, -1.0f), 1.0f);
    case Function::kSigmoid:
      return 1.0f / (1.0f + std::exp(-x));
    case Function::kNone:
      return x;
  }
  return x;
}

// To the nearest of `values` steps from -values / 2 on, around a zero point.
float Rounded(float x, float step, float values, float zero_point = 0) {
  const float least = -values / 2 - zero_point,
              most = values / 2 - 1 - zero_point;
  return std::min(std::max(std::nearbyint(x / step), least), most) * step;
}

float Clipped(float x, float clip) {
  return clip > 0 ? std::min(std::max(x, -clip), clip) : x;
}

float Dot(const float* a, const float* b, int64_t count) {
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// One batch's state, and a step of it.
class Cell {
 public:
  Cell(const LiteLstmAttrs& attrs, const Sizes& sizes, const Parts& parts,
       float* h, float* c)
      : attrs_(attrs),
        s_(sizes),
        p_(parts),
        h_(h),
        c_(c),
        gates_(sizes.gates * sizes.cells),
        hidden_(sizes.cells) {}

  // Leaves the step's output in h.
  void Step(const float* x) {
    const bool is_rounded = attrs_.cell_scale > 0;
    for (int64_t r = 0; r < s_.gates * s_.cells; ++r) {
      gates_[r] = Dot(p_.input_weights + r * s_.inputs, x, s_.inputs) +
                  Dot(p_.recurrent_weights + r * s_.outputs, h_, s_.outputs);
    }
    const int64_t first = attrs_.couples_gates ? -1 : 0;
    const int64_t forget = first + 1, update = first + 2, output = first + 3;
    Gate(forget, Function::kSigmoid, 1);
    Gate(update, attrs_.function, -1);
    if (!attrs_.couples_gates) Gate(0, Function::kSigmoid, 0);
    for (int64_t i = 0; i < s_.cells; ++i) {
      const float kept = At(forget, i);
      const float taken = attrs_.couples_gates ? 1.0f - kept : At(0, i);
      float cell = kept * c_[i];
      const float news = taken * At(update, i);
      cell = is_rounded ? Rounded(cell, attrs_.cell_scale, 65536) +
                              Rounded(news, attrs_.cell_scale, 65536)
                        : cell + news;
      cell = Clipped(cell, attrs_.cell_clip);
      c_[i] = is_rounded ? Rounded(cell, attrs_.cell_scale, 65536) : cell;
    }
    Gate(output, Function::kSigmoid, 2);
    for (int64_t i = 0; i < s_.cells; ++i) {
      float value = Apply(attrs_.function, c_[i]);
      if (is_rounded) value = Rounded(value, kFunctionStep, 65536);
      hidden_[i] = At(output, i) * value;
      if (attrs_.hidden_scale > 0) {
        hidden_[i] = Rounded(hidden_[i], attrs_.hidden_scale, 256,
                             static_cast<float>(attrs_.hidden_zero_point));
      }
    }
    Project();
  }

 private:
  float& At(int64_t gate, int64_t i) { return gates_[gate * s_.cells + i]; }

  // Turns the sums of a gate into its value. `peephole` is its number there.
  void Gate(int64_t gate, Function function, int64_t peephole) {
    float* values = &gates_[gate * s_.cells];
    // The input gate is missing among the rows, but not among the extras.
    const int64_t row = attrs_.couples_gates ? gate + 1 : gate;
    if (p_.peephole != nullptr && peephole >= 0) {
      const float* weights = p_.peephole + peephole * s_.cells;
      for (int64_t i = 0; i < s_.cells; ++i) values[i] += weights[i] * c_[i];
    }
    if (p_.layer_norm != nullptr) {
      Normalize(p_.layer_norm + row * s_.cells, values);
    }
    for (int64_t i = 0; i < s_.cells; ++i) {
      float value = values[i] + p_.bias[gate * s_.cells + i];
      if (attrs_.cell_scale > 0) value = Rounded(value, kGateStep, 65536);
      value = Apply(function, value);
      if (attrs_.cell_scale > 0) value = Rounded(value, kFunctionStep, 65536);
      values[i] = value;
    }
  }

  void Normalize(const float* scale, float* values) const {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < s_.cells; ++i) sum += values[i];
    const double mean = sum / static_cast<double>(s_.cells);
    for (int64_t i = 0; i < s_.cells; ++i) {
      squares += (values[i] - mean) * (values[i] - mean);
    }
    const double deviation =
        std::sqrt(squares / static_cast<double>(s_.cells) + kLayerNormEpsilon);
    for (int64_t i = 0; i < s_.cells; ++i) {
      values[i] = static_cast<float>((values[i] - mean) / deviation) * scale[i];
    }
  }

  void Project() {
    for (int64_t o = 0; o < s_.outputs; ++o) {
      float value = hidden_[o < s_.cells ? o : 0];
      if (p_.projection != nullptr) {
        value = Dot(p_.projection + o * s_.cells, hidden_.data(), s_.cells);
        if (p_.projection_bias != nullptr) value += p_.projection_bias[o];
        value = Clipped(value, attrs_.projection_clip);
      }
      if (attrs_.output_scale > 0) {
        value = Rounded(value, attrs_.output_scale, 256,
                        static_cast<float>(attrs_.output_zero_point));
      }
      h_[o] = value;
    }
  }

  const LiteLstmAttrs& attrs_;
  const Sizes& s_;
  const Parts& p_;
  float* h_;
  float* c_;
  std::vector<float> gates_, hidden_;
};

absl::Status RequireSize(const KernelContext& context, int input,
                         int64_t elements, bool may_be_empty) {
  const Tensor& tensor = context.input(input);
  const int64_t count = tensor.num_elements();
  if (count == elements || (may_be_empty && count == 0)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("input ", input, " has shape ", tensor.shape().ToString(),
                   " instead of ", elements, " elements"));
}

absl::StatusOr<Sizes> CheckInputs(const KernelContext& context,
                                  const LiteLstmAttrs& attrs) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(context, 10));
  for (int i = 0; i < 10; ++i) {
    OPTFARM_RETURN_IF_ERROR(RequireDtype(
        context.input(i), absl::StrCat("input ", i), tensorflow::DT_FLOAT));
  }
  const Tensor& x = context.input(0);
  OPTFARM_RETURN_IF_ERROR(RequireRank(x, "x", 3));
  OPTFARM_RETURN_IF_ERROR(RequireRank(context.input(1), "h", 2));
  OPTFARM_RETURN_IF_ERROR(RequireRank(context.input(2), "c", 2));
  Sizes s;
  s.batch = x.dim(attrs.is_time_major ? 1 : 0);
  s.time = x.dim(attrs.is_time_major ? 0 : 1);
  s.inputs = x.dim(2);
  s.outputs = context.input(1).dim(1);
  s.cells = context.input(2).dim(1);
  s.gates = attrs.couples_gates ? 3 : 4;
  const int64_t limit = int64_t{1} << 24;
  if (s.batch > limit || s.inputs > limit || s.outputs > limit ||
      s.cells > limit || s.cells == 0 || s.outputs == 0) {
    return absl::InvalidArgumentError("the layer is empty or too large");
  }
  OPTFARM_RETURN_IF_ERROR(RequireSize(context, 1, s.batch * s.outputs, false));
  OPTFARM_RETURN_IF_ERROR(RequireSize(context, 2, s.batch * s.cells, false));
  const int64_t rows = s.gates * s.cells;
  OPTFARM_RETURN_IF_ERROR(RequireSize(context, 3, rows * s.inputs, false));
  OPTFARM_RETURN_IF_ERROR(RequireSize(context, 4, rows * s.outputs, false));
  OPTFARM_RETURN_IF_ERROR(RequireSize(context, 5, rows, false));
  OPTFARM_RETURN_IF_ERROR(RequireSize(context, 6, 3 * s.cells, true));
  OPTFARM_RETURN_IF_ERROR(
      RequireSize(context, 7, s.outputs * s.cells, s.outputs == s.cells));
  OPTFARM_RETURN_IF_ERROR(RequireSize(context, 8, s.outputs, true));
  OPTFARM_RETURN_IF_ERROR(RequireSize(context, 9, 4 * s.cells, true));
  return s;
}

absl::Status Run(const LiteLstmAttrs& attrs, KernelContext* context) {
  OPTFARM_ASSIGN_OR_RETURN(const Sizes s, CheckInputs(*context, attrs));
  const auto data = [&](int i) -> const float* {
    const Tensor& tensor = context->input(i);
    return tensor.num_elements() == 0 ? nullptr : tensor.data<float>();
  };
  const Parts parts = {data(3), data(4), data(5), data(6),
                       data(7), data(8), data(9)};
  const Shape y_shape = attrs.is_time_major
                            ? Shape({s.time, s.batch, s.outputs})
                            : Shape({s.batch, s.time, s.outputs});
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * y, context->AllocateOutput(0, tensorflow::DT_FLOAT, y_shape));
  Tensor* state[2];
  for (int i = 0; i < 2; ++i) {
    const Tensor& before = context->input(i + 1);
    OPTFARM_ASSIGN_OR_RETURN(
        state[i],
        context->AllocateOutput(i + 1, tensorflow::DT_FLOAT, before.shape()));
    std::copy_n(before.data<float>(), before.num_elements(),
                state[i]->data<float>());
  }
  const float* x = context->input(0).data<float>();
  context->pool()->ParallelFor(s.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      float* h = state[0]->data<float>() + b * s.outputs;
      Cell cell(attrs, s, parts, h, state[1]->data<float>() + b * s.cells);
      for (int64_t t = 0; t < s.time; ++t) {
        const int64_t row =
            attrs.is_time_major ? t * s.batch + b : b * s.time + t;
        cell.Step(x + row * s.inputs);
        std::copy_n(h, s.outputs, y->data<float>() + row * s.outputs);
      }
    }
  });
  return absl::OkStatus();
}

absl::StatusOr<Function> ReadFunction(const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string name,
                           graph::GetStringOr(node, "activation", "tanh"));
  if (name == "tanh") return Function::kTanh;
  if (name == "relu") return Function::kRelu;
  if (name == "relu6") return Function::kRelu6;
  if (name == "relu_n1_to_1") return Function::kReluN1To1;
  if (name == "sigmoid") return Function::kSigmoid;
  if (name == "none") return Function::kNone;
  return absl::InvalidArgumentError(
      absl::StrCat("'activation' must be tanh, relu, relu6, relu_n1_to_1, "
                   "sigmoid or none, not '",
                   name, "'"));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLiteLstm(
    const tensorflow::NodeDef& node) {
  LiteLstmAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(attrs.is_time_major,
                           graph::GetBoolOr(node, "time_major", false));
  OPTFARM_ASSIGN_OR_RETURN(attrs.couples_gates,
                           graph::GetBoolOr(node, "couples_gates", false));
  OPTFARM_ASSIGN_OR_RETURN(attrs.function, ReadFunction(node));
  const struct {
    const char* name;
    float* value;
  } numbers[] = {{"cell_clip", &attrs.cell_clip},
                 {"projection_clip", &attrs.projection_clip},
                 {"cell_scale", &attrs.cell_scale},
                 {"hidden_scale", &attrs.hidden_scale},
                 {"output_scale", &attrs.output_scale}};
  for (const auto& number : numbers) {
    OPTFARM_ASSIGN_OR_RETURN(*number.value,
                             graph::GetFloatOr(node, number.name, 0.0f));
  }
  OPTFARM_ASSIGN_OR_RETURN(attrs.hidden_zero_point,
                           graph::GetIntOr(node, "hidden_zero_point", 0));
  OPTFARM_ASSIGN_OR_RETURN(attrs.output_zero_point,
                           graph::GetIntOr(node, "output_zero_point", 0));
  return MakeKernel(
      [attrs](KernelContext* context) { return Run(attrs, context); });
}

}  // namespace

void AddLiteLstmKernels(KernelCatalog* catalog) {
  catalog->Add("LiteLstmSequence", MakeLiteLstm);
}

}  // namespace optfarm::runtime
