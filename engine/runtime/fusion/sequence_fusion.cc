// LSTMs and GRUs over whole sequences with constant weights: the products by
// packed weights, the gates by vectors.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/fusion/channel_affine.h"
#include "engine/runtime/fusion/families.h"
#include "engine/runtime/operators/float_panels.h"
#include "engine/runtime/reference/nn/recurrent_activation.h"
#include "engine/runtime/ukernels/float/element_functions.h"
#include "engine/runtime/ukernels/micro_kernel_catalog.h"

namespace optfarm::runtime {
namespace {

// Inputs of the steps, and of the kernel behind the first.
constexpr int kInputWeights = 1;
constexpr int kStateWeights = 2;
constexpr int kPeepholes = 7;
enum KernelInput { kX, kBias, kLengths, kInitialH, kInitialC };

struct SequenceLayer {
  const ElementFunctions* functions = nullptr;
  bool is_lstm = false;
  int64_t directions = 1;
  bool first_is_reverse = false;
  int64_t hidden = 0;
  // Columns of all directions: gates in the order of the op.
  FloatPanels input_panels;
  PackedWeights input_weights;
  // Columns of all directions too; one begins where a panel does.
  FloatPanels state_panels;
  PackedWeights state_weights;
  StepChain chain;

  // UNITS: columns of one direction.
  int64_t row() const { return (is_lstm ? 4 : 3) * hidden; }
};

// Values of columns with room for whole panels, zeros at first.
class Columns {
 public:
  explicit Columns(const FloatPanels& panels)
      : values_(panels.count() * panels.tiles->width) {
    std::fill_n(values_.data(), values_.size(), 0.0f);
  }
  float* data() const { return values_.data(); }

 private:
  const Scratch<float> values_;
};

void MultiplyRows(FloatProduct product, const float* rows, ThreadPool* pool) {
  product.run = product.panels.depth;
  product.row_bytes = 4 * product.run;
  MultiplyPanels(
      product,
      [&](int64_t first, int count, float*, const float** to) {
        for (int i = 0; i < count; ++i)
          to[i] = rows + (first + i) * product.run;
      },
      pool);
}

// What a run has at hand.
struct SequenceRun {
  int64_t steps = 0;
  int64_t batch = 0;
  ThreadPool* pool = nullptr;
  const float* state_weights = nullptr;
  // Rows of all directions, by step and batch: what the inputs add to gates.
  float* gates = nullptr;
  // A GRU's sums of products of the state, by batch, and what starts them: see
  // Columns.
  float* sums = nullptr;
  const float* sum_bias = nullptr;
  // directions x batch x hidden, before and after.
  float* h = nullptr;
  float* c = nullptr;
  // steps x directions x batch x hidden.
  float* y = nullptr;
};

class SequenceKernel final : public Kernel {
 public:
  explicit SequenceKernel(SequenceLayer layer) : l_(std::move(layer)) {}

  absl::Status Compute(KernelContext* context) const override {
    if (!IsServed(*context)) return l_.chain.Run(context);
    const Tensor& x = context->input(kX);
    SequenceRun run;
    run.steps = x.dim(0);
    run.batch = x.dim(1);
    run.pool = context->pool();
    const int64_t rows = run.steps * run.batch;
    Tensor streamed_w, streamed_r;
    const Tensor* w = l_.input_weights.Get(run.pool, rows, &streamed_w);
    const Tensor* r = l_.state_weights.Get(run.pool, rows, &streamed_r);
    if (w == nullptr || r == nullptr) return l_.chain.Run(context);
    run.state_weights = r->data<float>();
    OPTFARM_RETURN_IF_ERROR(MakeOutputs(context, &run));
    const Scratch<float> gates(rows * l_.input_panels.columns);
    const Columns bias(l_.input_panels);
    const Columns sum_bias(l_.state_panels);
    const Scratch<float> sums(l_.is_lstm ? 1 : run.batch * l_.row());
    ReadBias(context->input(kBias), bias.data(), sum_bias.data());
    run.gates = gates.data();
    run.sums = sums.data();
    run.sum_bias = sum_bias.data();
    FloatProduct product;
    product.panels = l_.input_panels;
    product.packed = w->data<float>();
    product.bias = bias.data();
    product.out = run.gates;
    product.row_stride = l_.input_panels.columns;
    product.rows = rows;
    MultiplyRows(product, x.data<float>(), run.pool);
    for (int64_t d = 0; d < l_.directions; ++d) RunDirection(run, d);
    return absl::OkStatus();
  }

 private:
  bool IsState(const Tensor& tensor, int64_t batch) const {
    return tensor.num_elements() == 0 ||
           tensor.shape() == Shape({l_.directions, batch, l_.hidden});
  }

  // Sequences of one length that fit the weights.
  bool IsServed(const KernelContext& context) const {
    for (int i = 0; i < context.num_inputs(); ++i) {
      const DataType wanted =
          i == kLengths ? tensorflow::DT_INT32 : tensorflow::DT_FLOAT;
      if (context.input(i).dtype() != wanted) return false;
    }
    const Tensor& x = context.input(kX);
    if (x.rank() != 3 || x.dim(2) != l_.input_panels.depth ||
        x.num_elements() == 0) {
      return false;
    }
    const Tensor& bias = context.input(kBias);
    if (bias.num_elements() != 0 &&
        bias.shape() != Shape({l_.directions, 2 * l_.row()})) {
      return false;
    }
    const Tensor& lengths = context.input(kLengths);
    if (lengths.num_elements() != 0) {
      if (lengths.shape() != Shape({x.dim(1)})) return false;
      for (const int32_t length : lengths.flat<int32_t>()) {
        if (length != x.dim(0)) return false;
      }
    }
    return IsState(context.input(kInitialH), x.dim(1)) &&
           (!l_.is_lstm || IsState(context.input(kInitialC), x.dim(1)));
  }

  absl::StatusOr<float*> MakeState(int output, const Tensor& initial,
                                   int64_t batch,
                                   KernelContext* context) const {
    const int64_t dims[] = {l_.directions, batch, l_.hidden};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * state,
        context->AllocateOutput(output, tensorflow::DT_FLOAT, shape));
    float* const to = state->data<float>();
    if (initial.num_elements() == 0) {
      std::fill_n(to, state->num_elements(), 0.0f);
    } else {
      std::copy_n(initial.data<float>(), state->num_elements(), to);
    }
    return to;
  }

  absl::Status MakeOutputs(KernelContext* context, SequenceRun* run) const {
    const int64_t dims[] = {run->steps, l_.directions, run->batch, l_.hidden};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * y, context->AllocateOutput(0, tensorflow::DT_FLOAT, shape));
    run->y = y->data<float>();
    OPTFARM_ASSIGN_OR_RETURN(
        run->h, MakeState(1, context->input(kInitialH), run->batch, context));
    if (!l_.is_lstm) return absl::OkStatus();
    OPTFARM_ASSIGN_OR_RETURN(
        run->c, MakeState(2, context->input(kInitialC), run->batch, context));
    return absl::OkStatus();
  }

  // A direction has the inputs' biases, then the state's. An LSTM adds both at
  // once; a GRU resets the state's along with its products.
  void ReadBias(const Tensor& tensor, float* bias, float* sum_bias) const {
    if (tensor.num_elements() == 0) return;
    const float* from = tensor.data<float>();
    for (int64_t d = 0; d < l_.directions; ++d, from += 2 * l_.row()) {
      const float* const of_state = from + l_.row();
      for (int64_t i = 0; i < l_.row(); ++i) {
        const int64_t column = d * l_.row() + i;
        bias[column] = l_.is_lstm ? from[i] + of_state[i] : from[i];
        if (!l_.is_lstm) sum_bias[column] = of_state[i];
      }
    }
  }

  void RunDirection(const SequenceRun& run, int64_t direction) const {
    const bool is_reverse = direction == 1 || l_.first_is_reverse;
    const int64_t size = run.batch * l_.hidden;
    float* const h = run.h + direction * size;
    float* const c = l_.is_lstm ? run.c + direction * size : nullptr;
    for (int64_t step = 0; step < run.steps; ++step) {
      LeaveIfRunEnded();
      const int64_t time = is_reverse ? run.steps - 1 - step : step;
      float* const gates = run.gates +
                           time * run.batch * l_.input_panels.columns +
                           direction * l_.row();
      MultiplyState(run, direction, h, gates);
      for (int64_t b = 0; b < run.batch; ++b) {
        float* const row = gates + b * l_.input_panels.columns;
        if (l_.is_lstm) {
          AdvanceLstm(row, h + b * l_.hidden, c + b * l_.hidden);
        } else {
          AdvanceGru(row, run.sums + b * l_.row(), h + b * l_.hidden);
        }
      }
      std::copy_n(h, size, run.y + (time * l_.directions + direction) * size);
    }
  }

  // Into the gates themselves (LSTM) or into the sums (GRU).
  void MultiplyState(const SequenceRun& run, int64_t direction, const float* h,
                     float* gates) const {
    const int64_t first = direction * l_.row();
    FloatProduct product;
    product.panels = {l_.state_panels.tiles, l_.hidden, l_.row()};
    product.packed =
        run.state_weights +
        l_.state_panels.offset(first / l_.state_panels.tiles->width);
    product.rows = run.batch;
    if (l_.is_lstm) {
      product.out = gates;
      product.residual = gates;
      product.row_stride = l_.input_panels.columns;
    } else {
      product.bias = run.sum_bias + first;
      product.out = run.sums;
      product.row_stride = l_.row();
    }
    MultiplyRows(product, h, run.pool);
  }

  // Gates input, output, forget, cell.
  void AdvanceLstm(float* gates, float* h, float* c) const {
    const ElementFunctions& f = *l_.functions;
    const int64_t n = l_.hidden;
    float* const out = gates + n;
    float* const forget = gates + 2 * n;
    float* const cell = gates + 3 * n;
    f.sigmoid({gates}, {gates}, 3 * n, gates);
    f.tanh({cell}, {cell}, n, cell);
    f.multiply({forget}, {c}, n, c);
    f.multiply({gates}, {cell}, n, cell);
    f.add({c}, {cell}, n, c);
    f.tanh({c}, {c}, n, cell);
    f.multiply({out}, {cell}, n, h);
  }

  // Gates update, reset, hidden.
  void AdvanceGru(float* gates, float* sums, float* h) const {
    const ElementFunctions& f = *l_.functions;
    const int64_t n = l_.hidden;
    float* const reset = gates + n;
    float* const hidden = gates + 2 * n;
    f.add({gates}, {sums}, 2 * n, gates);
    f.sigmoid({gates}, {gates}, 2 * n, gates);
    f.multiply({reset}, {sums + 2 * n}, n, reset);
    f.add({reset}, {hidden}, n, hidden);
    f.tanh({hidden}, {hidden}, n, hidden);
    f.subtract({h}, {hidden}, n, h);
    f.multiply({gates}, {h}, n, h);
    f.add({h}, {hidden}, n, h);
  }

  const SequenceLayer l_;
};

bool HasUsualActivations(const Step& step, bool is_lstm, int64_t directions) {
  using Kind = RecurrentActivation::Kind;
  std::vector<absl::string_view> defaults = {"sigmoid", "tanh"};
  std::vector<Kind> wanted = {Kind::kSigmoid, Kind::kTanh};
  if (is_lstm) {
    defaults.push_back("tanh");
    wanted.push_back(Kind::kTanh);
  }
  const auto found = ReadRecurrentActivations(*step.node, directions, defaults);
  if (!found.ok()) return false;
  for (size_t i = 0; i < found->size(); ++i) {
    if ((*found)[i].kind != wanted[i % wanted.size()]) return false;
  }
  return true;
}

// False for a layer that is not served.
bool ReadLayer(const Step& step, SequenceLayer* layer) {
  const auto& node = *step.node;
  const auto hidden = graph::GetInt(node, "hidden_size");
  const auto direction = graph::GetStringOr(node, "direction", "forward");
  const auto clip = graph::GetFloatOr(node, "clip", 0);
  const auto couples = graph::GetBoolOr(node, "input_forget", false);
  const auto linear = graph::GetBoolOr(node, "linear_before_reset", false);
  if (!hidden.ok() || !direction.ok() || !clip.ok() || *clip != 0 ||
      !couples.ok() || *couples || !linear.ok() ||
      (!layer->is_lstm && !*linear)) {
    return false;
  }
  layer->hidden = *hidden;
  layer->directions = *direction == "bidirectional" ? 2 : 1;
  layer->first_is_reverse = *direction == "reverse";
  return layer->hidden > 0 &&
         HasUsualActivations(step, layer->is_lstm, layer->directions);
}

bool AreWeights(const Tensor* weights, const SequenceLayer& layer) {
  return weights != nullptr && weights->dtype() == tensorflow::DT_FLOAT &&
         weights->rank() == 3 && weights->num_elements() > 0 &&
         weights->dim(0) == layer.directions && weights->dim(1) == layer.row();
}

void FuseSequence(const FloatTiles* tiles, const ElementFunctions* functions,
                  int number, PlanEditor* plan) {
  const Step& step = *plan->step(number);
  SequenceLayer layer;
  layer.functions = functions;
  layer.is_lstm = IsFloatNode(&step, "LstmSequence");
  if (step.inputs.size() != (layer.is_lstm ? 8 : 6) ||
      !ReadLayer(step, &layer) || !plan->MayFuse({number}, step.outputs)) {
    return;
  }
  const int w_slot = step.inputs[kInputWeights];
  const int r_slot = step.inputs[kStateWeights];
  const Tensor* w = plan->ConstantOf(w_slot);
  const Tensor* r = plan->ConstantOf(r_slot);
  if (!AreWeights(w, layer) || !AreWeights(r, layer) || w_slot == r_slot ||
      r->dim(2) != layer.hidden ||
      (layer.directions > 1 && layer.row() % tiles->width != 0)) {
    return;
  }
  if (layer.is_lstm) {
    const Tensor* peepholes = plan->ConstantOf(step.inputs[kPeepholes]);
    if (peepholes == nullptr || peepholes->num_elements() > 0) return;
  }
  const int64_t columns = layer.directions * layer.row();
  layer.input_panels = {tiles, w->dim(2), columns};
  layer.state_panels = {tiles, layer.hidden, columns};
  FusedStep fused;
  int64_t state_bytes = 0;
  const auto packed_w =
      plan->Pack(*w, LayoutOf(layer.input_panels, true), &fused.constant_bytes);
  const auto packed_r =
      plan->Pack(*r, LayoutOf(layer.state_panels, true), &state_bytes);
  if (!packed_w.ok() || !packed_r.ok()) return;
  fused.constant_bytes += state_bytes;
  layer.input_weights = *packed_w;
  layer.state_weights = *packed_r;
  fused.inputs = {step.inputs[0]};
  fused.inputs.insert(fused.inputs.end(), step.inputs.begin() + 3,
                      step.inputs.begin() + (layer.is_lstm ? 7 : 6));
  fused.outputs = step.outputs;
  const auto restore = [](PackedWeights weights, const Shape& shape) {
    return [weights = std::move(weights), shape]() -> absl::StatusOr<Tensor> {
      OPTFARM_ASSIGN_OR_RETURN(const Tensor value, weights.Value());
      return value.Reshaped(shape);
    };
  };
  layer.chain =
      plan->TakeChain({number}, fused.inputs, fused.outputs,
                      {{w_slot, Tensor(), restore(*packed_w, w->shape())},
                       {r_slot, Tensor(), restore(*packed_r, r->shape())}});
  fused.kernel = std::make_unique<SequenceKernel>(std::move(layer));
  plan->Fuse({number}, std::move(fused));
}

void FuseSequences(const CpuFeatures& cpu, PlanEditor* plan) {
  const FloatTiles* tiles =
      SelectFunctions(&MicroKernelFunction::float_gemm, cpu);
  const ElementFunctions* functions =
      SelectFunctions(&MicroKernelFunction::element_functions, cpu);
  if (tiles == nullptr || functions == nullptr) return;
  for (int i = 0; i < plan->step_count(); ++i) {
    if (IsFloatNode(plan->step(i), "LstmSequence") ||
        IsFloatNode(plan->step(i), "GruSequence")) {
      FuseSequence(tiles, functions, i, plan);
    }
  }
}

}  // namespace

const Fusion kSequenceFusion = {
    .name = "sequences",
    .pattern =
        "LstmSequence, or GruSequence with linear_before_reset, with constant "
        "weights, sigmoid and tanh",
    .replacement =
        "the same with packed weights, and gates computed by vectors",
    .run = FuseSequences,
};

}  // namespace optfarm::runtime
