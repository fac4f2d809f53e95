// Recurrent layers over whole sequences, as ONNX defines them: LSTM with gates
// input, output, forget, cell; GRU with update, reset, hidden; the plain one.
// What the inputs add to the gates is one matrix product for all steps.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/layer_families.h"
#include "engine/runtime/reference/linear_algebra/matrix_product.h"
#include "engine/runtime/reference/nn/recurrent_activation.h"

namespace optfarm::runtime {
namespace {

enum class Cell { kLstm, kGru, kRnn };

int64_t GatesOf(Cell cell) {
  return cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1;
}

struct SequenceAttrs {
  int64_t hidden = 0;
  int64_t directions = 1;
  bool first_is_reverse = false;
  // Those of one direction after the other.
  std::vector<RecurrentActivation> activations;
  float clip = 0;
  bool input_forget = false;
  bool linear_before_reset = false;
};

// Sizes of one run.
struct SequenceSizes {
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0, gates = 0;

  int64_t state() const { return batch * hidden; }
  int64_t row() const { return gates * hidden; }
};

// The tensors of one direction; nullptr for those that are not there.
template <typename T>
struct DirectionWeights {
  const T* w = nullptr;
  const T* r = nullptr;
  const T* input_bias = nullptr;
  const T* recurrent_bias = nullptr;
  const T* peepholes = nullptr;
};

template <typename T>
void ClipAll(T* values, int64_t count, float limit) {
  if (limit <= 0) return;
  const T most = static_cast<T>(limit);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = std::clamp(values[i], -most, most);
  }
}

// One direction over all steps.
template <typename T>
class DirectionRun {
 public:
  DirectionRun(Cell cell, const SequenceAttrs& attrs, int64_t direction,
               const SequenceSizes& sizes, const DirectionWeights<T>& weights,
               ThreadPool* pool)
      : cell_(cell),
        attrs_(attrs),
        functions_(attrs.activations.data() +
                   direction * static_cast<int64_t>(attrs.activations.size()) /
                       attrs.directions),
        is_reverse_(direction == 1 || attrs.first_is_reverse),
        sizes_(sizes),
        weights_(weights),
        pool_(pool),
        from_inputs_(sizes.steps * sizes.batch * sizes.row()),
        from_state_(sizes.batch * sizes.row()),
        gates_(sizes.row()),
        reset_state_(sizes.state()) {}

  // h and c are the state before and after; y has a row of `y_stride` elements
  // for each step and is zero where a sequence has ended.
  void Run(const T* x, const int32_t* lengths, T* h, T* c, T* y,
           int64_t y_stride) {
    Multiply<T>({x, sizes_.steps * sizes_.batch, sizes_.inputs, false},
                {weights_.w, sizes_.inputs, sizes_.row(), true}, pool_,
                from_inputs_.data());
    for (int64_t step = 0; step < sizes_.steps; ++step) {
      LeaveIfRunEnded();
      ProductOfState(h);
      for (int64_t b = 0; b < sizes_.batch; ++b) {
        const int64_t length = lengths == nullptr ? sizes_.steps : lengths[b];
        if (step >= length) continue;
        const int64_t time = is_reverse_ ? length - 1 - step : step;
        T* state = h + b * sizes_.hidden;
        Advance(b, time, state, c == nullptr ? nullptr : c + b * sizes_.hidden);
        std::copy_n(state, sizes_.hidden,
                    y + time * y_stride + b * sizes_.hidden);
      }
    }
  }

 private:
  // All gates but GRU's hidden one, whose state is reset first.
  void ProductOfState(const T* h) {
    Multiply<T>({h, sizes_.batch, sizes_.hidden, false},
                {weights_.r, sizes_.hidden, sizes_.row(), true}, pool_,
                from_state_.data());
  }

  T Bias(const T* bias, int64_t i) const {
    return bias == nullptr ? T(0) : bias[i];
  }

  // Sums of all gates but GRU's hidden one into gates_.
  void SumGates(const T* input, const T* state, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      gates_[i] = input[i] + state[i] + Bias(weights_.input_bias, i) +
                  Bias(weights_.recurrent_bias, i);
    }
  }

  void Advance(int64_t b, int64_t time, T* h, T* c) {
    const T* input =
        from_inputs_.data() + (time * sizes_.batch + b) * sizes_.row();
    const T* state = from_state_.data() + b * sizes_.row();
    if (cell_ == Cell::kLstm) return AdvanceLstm(input, state, h, c);
    if (cell_ == Cell::kGru) return AdvanceGru(input, state, h);
    SumGates(input, state, sizes_.hidden);
    Activate(0, gates_.data(), sizes_.hidden);
    std::copy_n(gates_.data(), sizes_.hidden, h);
  }

  void Activate(int function, T* values, int64_t count) {
    ClipAll(values, count, attrs_.clip);
    functions_[function].Apply(values, count);
  }

  void AddPeephole(int which, const T* c, T* gate) {
    if (weights_.peepholes == nullptr) return;
    const T* peephole = weights_.peepholes + which * sizes_.hidden;
    for (int64_t i = 0; i < sizes_.hidden; ++i) gate[i] += peephole[i] * c[i];
  }

  void AdvanceLstm(const T* input, const T* state, T* h, T* c) {
    const int64_t n = sizes_.hidden;
    SumGates(input, state, 4 * n);
    T* in = gates_.data();
    T* out = in + n;
    T* forget = in + 2 * n;
    T* cell = in + 3 * n;
    AddPeephole(0, c, in);
    AddPeephole(2, c, forget);
    Activate(0, in, n);
    if (attrs_.input_forget) {
      for (int64_t i = 0; i < n; ++i) forget[i] = 1 - in[i];
    } else {
      Activate(0, forget, n);
    }
    Activate(1, cell, n);
    for (int64_t i = 0; i < n; ++i) c[i] = forget[i] * c[i] + in[i] * cell[i];
    AddPeephole(1, c, out);
    Activate(0, out, n);
    std::copy_n(c, n, cell);
    functions_[2].Apply(cell, n);
    for (int64_t i = 0; i < n; ++i) h[i] = out[i] * cell[i];
  }

  void AdvanceGru(const T* input, const T* state, T* h) {
    const int64_t n = sizes_.hidden;
    SumGates(input, state, 2 * n);
    Activate(0, gates_.data(), 2 * n);
    const T* update = gates_.data();
    const T* reset = update + n;
    T* hidden = gates_.data() + 2 * n;
    const T* from_state = state + 2 * n;
    T* reset_state = reset_state_.data();
    if (!attrs_.linear_before_reset) {
      for (int64_t i = 0; i < n; ++i) reset_state[i] = reset[i] * h[i];
      MultiplyOnOneThread<T>({reset_state, 1, n, false},
                             {weights_.r + 2 * n * n, n, n, true}, hidden);
      for (int64_t i = 0; i < n; ++i) {
        hidden[i] += Bias(weights_.recurrent_bias, 2 * n + i);
      }
    } else {
      for (int64_t i = 0; i < n; ++i) {
        hidden[i] = reset[i] *
                    (from_state[i] + Bias(weights_.recurrent_bias, 2 * n + i));
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      hidden[i] += input[2 * n + i] + Bias(weights_.input_bias, 2 * n + i);
    }
    Activate(1, hidden, n);
    for (int64_t i = 0; i < n; ++i) {
      h[i] = (1 - update[i]) * hidden[i] + update[i] * h[i];
    }
  }

  const Cell cell_;
  const SequenceAttrs& attrs_;
  const RecurrentActivation* const functions_;
  const bool is_reverse_;
  const SequenceSizes sizes_;
  const DirectionWeights<T> weights_;
  ThreadPool* const pool_;
  const Scratch<T> from_inputs_, from_state_, gates_, reset_state_;
};

class SequenceKernel final : public Kernel {
 public:
  SequenceKernel(Cell cell, SequenceAttrs attrs)
      : cell_(cell), attrs_(std::move(attrs)) {}

  absl::Status Compute(KernelContext* context) const override {
    OPTFARM_RETURN_IF_ERROR(
        RequireInputs(*context, cell_ == Cell::kLstm ? 8 : 6));
    OPTFARM_ASSIGN_OR_RETURN(const SequenceSizes sizes, CheckInputs(*context));
    return VisitFloat(context->input(0).dtype(), "x", [&](auto tag) {
      using T = typename decltype(tag)::type;
      return ComputeAs<T>(sizes, context);
    });
  }

 private:
  // ERRORS: InvalidArgument also for dimensions that no tensor has.
  static absl::Status CheckDims(const Tensor& tensor, absl::string_view name,
                                std::vector<int64_t> dims) {
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    return RequireShape(tensor, name, shape);
  }
  // The same for an input that may have no elements.
  static absl::Status CheckOptional(const Tensor& tensor,
                                    absl::string_view name,
                                    std::vector<int64_t> dims) {
    if (tensor.num_elements() == 0) return absl::OkStatus();
    return CheckDims(tensor, name, std::move(dims));
  }

  absl::StatusOr<SequenceSizes> CheckInputs(const KernelContext& c) const {
    const Tensor& x = c.input(0);
    OPTFARM_RETURN_IF_ERROR(RequireRank(x, "x", 3));
    const int64_t dirs = attrs_.directions, hidden = attrs_.hidden;
    const SequenceSizes sizes{x.dim(0), x.dim(1), x.dim(2), hidden,
                              GatesOf(cell_)};
    for (int i = 1; i < c.num_inputs(); ++i) {
      if (i == 4) continue;
      OPTFARM_RETURN_IF_ERROR(RequireSameDtype(x, c.input(i)));
    }
    OPTFARM_RETURN_IF_ERROR(
        CheckDims(c.input(1), "w", {dirs, sizes.row(), sizes.inputs}));
    OPTFARM_RETURN_IF_ERROR(
        CheckDims(c.input(2), "r", {dirs, sizes.row(), hidden}));
    OPTFARM_RETURN_IF_ERROR(
        CheckOptional(c.input(3), "b", {dirs, 2 * sizes.row()}));
    OPTFARM_RETURN_IF_ERROR(
        RequireDtype(c.input(4), "sequence_lengths", tensorflow::DT_INT32));
    OPTFARM_RETURN_IF_ERROR(
        CheckOptional(c.input(4), "sequence_lengths", {sizes.batch}));
    for (const int32_t length : c.input(4).flat<int32_t>()) {
      if (length < 0 || length > sizes.steps) {
        return absl::InvalidArgumentError(
            absl::StrCat("a sequence has ", length, " steps of ", sizes.steps));
      }
    }
    const std::vector<int64_t> state = {dirs, sizes.batch, hidden};
    OPTFARM_RETURN_IF_ERROR(CheckOptional(c.input(5), "initial_h", state));
    if (cell_ == Cell::kLstm) {
      OPTFARM_RETURN_IF_ERROR(CheckOptional(c.input(6), "initial_c", state));
      OPTFARM_RETURN_IF_ERROR(
          CheckOptional(c.input(7), "peepholes", {dirs, 3 * hidden}));
    }
    return sizes;
  }

  template <typename T>
  DirectionWeights<T> WeightsOf(const KernelContext& c, int64_t direction,
                                const SequenceSizes& sizes) const {
    const auto part = [&](int input, int64_t size) -> const T* {
      const Tensor& tensor = c.input(input);
      return tensor.num_elements() == 0 ? nullptr
                                        : tensor.data<T>() + direction * size;
    };
    DirectionWeights<T> weights;
    weights.w = part(1, sizes.row() * sizes.inputs);
    weights.r = part(2, sizes.row() * sizes.hidden);
    weights.input_bias = part(3, 2 * sizes.row());
    if (weights.input_bias != nullptr) {
      weights.recurrent_bias = weights.input_bias + sizes.row();
    }
    if (cell_ == Cell::kLstm) weights.peepholes = part(7, 3 * sizes.hidden);
    return weights;
  }

  // A copy of the state before the first step.
  template <typename T>
  static absl::StatusOr<Tensor> State(const Tensor& initial,
                                      const Shape& shape) {
    OPTFARM_ASSIGN_OR_RETURN(Tensor state,
                             Tensor::Zeros(DataTypeOf<T>::kValue, shape));
    if (initial.num_elements() > 0) {
      std::copy_n(initial.data<T>(), shape.num_elements(), state.data<T>());
    }
    return state;
  }

  template <typename T>
  absl::Status ComputeAs(const SequenceSizes& sizes,
                         KernelContext* context) const {
    const int64_t state_dims[] = {attrs_.directions, sizes.batch, sizes.hidden};
    OPTFARM_ASSIGN_OR_RETURN(const Shape state_shape,
                             Shape::FromDims(state_dims));
    const int64_t dims[] = {sizes.steps, attrs_.directions, sizes.batch,
                            sizes.hidden};
    OPTFARM_ASSIGN_OR_RETURN(const Shape y_shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor y,
                             Tensor::Zeros(DataTypeOf<T>::kValue, y_shape));
    OPTFARM_ASSIGN_OR_RETURN(Tensor h,
                             State<T>(context->input(5), state_shape));
    Tensor c;
    if (cell_ == Cell::kLstm) {
      OPTFARM_ASSIGN_OR_RETURN(c, State<T>(context->input(6), state_shape));
    }
    const Tensor& lengths = context->input(4);
    const int64_t stride = attrs_.directions * sizes.state();
    for (int64_t d = 0; d < attrs_.directions && sizes.batch > 0; ++d) {
      DirectionRun<T> run(cell_, attrs_, d, sizes,
                          WeightsOf<T>(*context, d, sizes), context->pool());
      run.Run(context->input(0).data<T>(),
              lengths.num_elements() == 0 ? nullptr : lengths.data<int32_t>(),
              h.data<T>() + d * sizes.state(),
              c.has_value() ? c.data<T>() + d * sizes.state() : nullptr,
              y.data<T>() + d * sizes.state(), stride);
    }
    context->SetOutput(0, std::move(y));
    context->SetOutput(1, std::move(h));
    if (cell_ == Cell::kLstm) context->SetOutput(2, std::move(c));
    return absl::OkStatus();
  }

  const Cell cell_;
  const SequenceAttrs attrs_;
};

template <Cell kCell>
absl::StatusOr<std::unique_ptr<Kernel>> MakeSequence(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  SequenceAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(attrs.hidden, graph::GetInt(node, "hidden_size"));
  if (attrs.hidden < 1 || attrs.hidden > (1 << 24)) {
    return absl::InvalidArgumentError(
        absl::StrCat("hidden_size is ", attrs.hidden));
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::string direction,
                           graph::GetStringOr(node, "direction", "forward"));
  attrs.directions = direction == "bidirectional" ? 2 : 1;
  attrs.first_is_reverse = direction == "reverse";
  std::vector<absl::string_view> defaults = {"tanh"};
  if (kCell == Cell::kLstm) defaults = {"sigmoid", "tanh", "tanh"};
  if (kCell == Cell::kGru) defaults = {"sigmoid", "tanh"};
  OPTFARM_ASSIGN_OR_RETURN(
      attrs.activations,
      ReadRecurrentActivations(node, attrs.directions, defaults));
  OPTFARM_ASSIGN_OR_RETURN(attrs.clip, graph::GetFloatOr(node, "clip", 0));
  OPTFARM_ASSIGN_OR_RETURN(attrs.input_forget,
                           graph::GetBoolOr(node, "input_forget", false));
  OPTFARM_ASSIGN_OR_RETURN(
      attrs.linear_before_reset,
      graph::GetBoolOr(node, "linear_before_reset", false));
  return std::make_unique<SequenceKernel>(kCell, std::move(attrs));
}

}  // namespace

void AddRecurrentSequenceKernels(KernelCatalog* catalog) {
  catalog->Add("LstmSequence", MakeSequence<Cell::kLstm>);
  catalog->Add("GruSequence", MakeSequence<Cell::kGru>);
  catalog->Add("RnnSequence", MakeSequence<Cell::kRnn>);
}

}  // namespace optfarm::runtime
