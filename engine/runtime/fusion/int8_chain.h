// The output pipeline of an 8-bit layer: the ops that follow the product in the
// graph, up to the next quantized values or floats, as output stages
// (int8_stage.h). A range that is known only at run time gives new stages in
// each run. A dynamic range (RequantizationRange, Min and Max before
// QuantizeV2) is computed from the smallest and the largest accumulator of each
// channel: every op of a chain is monotonic, and so is rounding.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_INT8_CHAIN_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_INT8_CHAIN_H_

#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "engine/graph/ops/op_row.h"
#include "engine/runtime/core/quantization.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/operators/int8_gemm.h"
#include "engine/runtime/reference/quantized/quantized_arithmetic.h"
#include "engine/runtime/ukernels/int8/int8_stage.h"

namespace optfarm::runtime {

// What the values are at one point of the pipeline.
enum class Int8State { kAccumulators, kQuantized, kFloat };

// Quantized values of an operand: one for each channel, or one for all.
struct Int8Operand {
  std::vector<uint8_t> values;
  Range range;
};

// The scale or range of a product's accumulators.
struct Int8AccumulatorScale {
  // For QuantizedConv2D and QuantizedMatMul, which have a range.
  Range range;
  // For whole layers: one scale, or one for each channel. Empty for the ops
  // above.
  std::vector<float> scales;
};

// Stages for known ranges. Not copyable: stages point into the tables.
struct Int8Stages {
  std::vector<Int8Stage> stages;
  std::list<std::vector<int32_t>> tables;
  std::list<std::vector<float>> float_tables;
  // Range of the quantized values at the end; unused for floats.
  Range range;
  // One for each channel; empty without a bias.
  std::vector<int32_t> bias;

  Int8Stages() = default;
  Int8Stages(const Int8Stages&) = delete;
  Int8Stages& operator=(const Int8Stages&) = delete;
};

class Int8Chain {
 public:
  // For values with this many channels.
  explicit Int8Chain(int64_t channels,
                     Int8State begin = Int8State::kAccumulators)
      : channels_(channels), state_(begin) {}

  Int8State state() const { return state_; }
  bool is_empty() const { return links_.empty(); }
  int64_t channels() const { return channels_; }
  // Whether a range depends on the values of the run.
  bool needs_extremes() const { return needs_extremes_; }

  // Whether the last link requantizes to a constant range, which is then the
  // range of the result for any input.
  bool has_given_range() const {
    return !links_.empty() && state_ == Int8State::kQuantized &&
           links_.back().range.has_value();
  }

  // Whether the values have one scale for each channel, and thus no common
  // range.
  bool is_per_channel() const { return is_per_channel_; }

  // Starts the pipeline of a whole layer: adds a bias (float, or quantized in
  // the accumulator's scale; one value for each channel; nullptr for none) and
  // applies Relu. `is_per_channel`: the product has a scale for each channel.
  void BeginLayer(const Tensor* bias, bool has_relu, bool is_per_channel);
  // RequantizePerChannel; `clip` is that of RequantizationRangePerChannel.
  void AddRequantizePerChannel(std::optional<Range> range, float clip);
  // Multiplies a layer's accumulators by their scales. `are_ranges`: the scales
  // came to a Dequantize as ranges, which round differently.
  void AddScales(bool are_ranges);

  // Each appends the op of that name. Without a range, the op's range is
  // computed from its input.
  // REQUIRES: the state that the op works on; operands have one value or one
  // for each channel, floats are finite, and an activation is not kNone.
  void AddRequantize(std::optional<Range> range);
  void AddQuantizedActivation(graph::Activation activation);
  void AddQuantizedBiasAdd(Int8Operand bias);
  void AddQuantizedAdd(Int8Operand operand);
  void AddQuantizedMul(Int8Operand operand);
  void AddDequantize(QuantizeMode mode);
  void AddMul(absl::Span<const float> factors);
  void AddAdd(absl::Span<const float> summands);
  void AddActivation(graph::Activation activation);
  // With MIN_FIRST.
  void AddQuantize(std::optional<Range> range);

  // BeginLayer's bias in the accumulator's scale; empty without a bias.
  std::vector<int32_t> Bias(const Int8AccumulatorScale& scale) const;
  // Makes the stages for a product whose accumulators have this `scale`.
  // `is_single`: the product has one element. `extremes` may be nullptr unless
  // needs_extremes(). Returns false for ranges that stages cannot express or
  // that are invalid; the ops' own kernels then compute them or report the
  // error.
  bool Prepare(const Int8AccumulatorScale& scale, bool is_single,
               const Int8Extremes* extremes,
               const Int8StageFunctions& functions, Int8Stages* made) const;

 private:
  enum class Kind {
    kBegin,
    kRequantizePerChannel,
    kScales,
    kRequantize,
    kQuantizedActivation,
    kQuantizedBiasAdd,
    kQuantizedAdd,
    kQuantizedMul,
    kDequantize,
    kMul,
    kAdd,
    kActivation,
    kQuantize,
  };
  struct Link {
    Kind kind = Kind::kActivation;
    Int8State from = Int8State::kAccumulators;
    std::optional<Range> range;
    graph::Activation activation = graph::Activation::kNone;
    bool has_relu = false;
    bool are_ranges = false;
    float clip = 0;
    // A layer's bias: as accumulators, or in `floats`.
    std::vector<int32_t> accumulator_bias;
    QuantizeMode mode = QuantizeMode::kMinFirst;
    Int8Operand operand;
    // As many as whole tiles have channels, or there are.
    std::vector<float> floats;
  };
  class Maker;

  void Append(Link link, Int8State state);
  std::vector<float> ByChannel(absl::Span<const float> values) const;

  int64_t channels_;
  Int8State state_;
  bool needs_extremes_ = false;
  bool is_per_channel_ = false;
  std::vector<Link> links_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_INT8_CHAIN_H_
