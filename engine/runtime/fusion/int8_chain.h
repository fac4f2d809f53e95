// What follows an 8-bit product in a graph, up to the next quantized values or
// floats, as stages (int8_stage.h). Ranges that are known only when a graph
// runs give other stages each time; ranges that are found in the numbers
// themselves (RequantizationRange, Min and Max before QuantizeV2) are found
// from the least and the greatest product of each channel alone: all steps of a
// chain are monotonic, and so is rounding, so the extremes of what they make
// are made of the extremes of what they get.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_INT8_CHAIN_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_INT8_CHAIN_H_

#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "engine/runtime/core/quantization.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/operators/int8_gemm.h"
#include "engine/runtime/reference/quantized/quantized_arithmetic.h"
#include "engine/runtime/ukernels/int8/int8_stage.h"

namespace optfarm::runtime {

// What the numbers are at a place of a chain.
enum class Int8State { kAccumulators, kQuantized, kFloat };

// An operand of 8-bit values: one for each channel, or one for all.
struct Int8Operand {
  std::vector<uint8_t> values;
  Range range;
};

// What the accumulators of a product stand for.
struct Int8AccumulatorScale {
  // Of TensorFlow's first ops: the range.
  Range range;
  // Of whole layers: one step, for all channels or for each. Empty for the
  // above.
  std::vector<float> steps;
};

// Stages for known ranges. Not to be copied: stages point into the tables.
struct Int8Stages {
  std::vector<Int8Stage> stages;
  std::list<std::vector<int32_t>> tables;
  std::list<std::vector<float>> float_tables;
  // What the quantized values at the end stand for; nothing for floats.
  Range range;
  // By channel; empty for none.
  std::vector<int32_t> bias;

  Int8Stages() = default;
  Int8Stages(const Int8Stages&) = delete;
  Int8Stages& operator=(const Int8Stages&) = delete;
};

class Int8Chain {
 public:
  // Of numbers with so many channels.
  explicit Int8Chain(int64_t channels,
                     Int8State begin = Int8State::kAccumulators)
      : channels_(channels), state_(begin) {}

  Int8State state() const { return state_; }
  bool is_empty() const { return links_.empty(); }
  int64_t channels() const { return channels_; }
  // Whether a range is found in the numbers.
  bool needs_extremes() const { return needs_extremes_; }

  // Whether the last link gives quantized values a range that the plan has:
  // that of the result, whatever comes in.
  bool has_given_range() const {
    return !links_.empty() && state_ == Int8State::kQuantized &&
           links_.back().range.has_value();
  }

  // Whether the numbers have a step for each channel, so that no one range
  // stands for them.
  bool is_per_channel() const { return is_per_channel_; }

  // What a whole layer begins with: adds a bias in float or in accumulator
  // steps, of as many values as channels (nullptr for none), and cuts off what
  // is below zero. `is_per_channel`: the product has a step for each channel.
  void BeginLayer(const Tensor* bias, bool has_relu, bool is_per_channel);
  // RequantizePerChannel; `clip` is that of RequantizationRangePerChannel.
  void AddRequantizePerChannel(std::optional<Range> range, float clip);
  // Accumulators of a layer times their steps. `are_ranges`: the steps came to
  // a Dequantize as ranges, whose rounding is its own.
  void AddSteps(bool are_ranges);

  // Each adds what the op of that name does. No range: it is found in the
  // numbers that come to it.
  // REQUIRES: the state that the op works on; operands have one value
  // or as many as there are channels, and floats are finite.
  void AddRequantize(std::optional<Range> range);
  void AddQuantizedRelu(bool is_relu6);
  void AddQuantizedBiasAdd(Int8Operand bias);
  void AddQuantizedAdd(Int8Operand operand);
  void AddQuantizedMul(Int8Operand operand);
  void AddDequantize(QuantizeMode mode);
  void AddMul(absl::Span<const float> factors);
  void AddAdd(absl::Span<const float> summands);
  void AddRelu(bool is_relu6);
  // With MIN_FIRST.
  void AddQuantize(std::optional<Range> range);

  // What BeginLayer's bias adds to the sums of each channel; empty for none.
  std::vector<int32_t> Bias(const Int8AccumulatorScale& scale) const;
  // The stages for a product whose accumulators have this `scale`. `is_single`:
  // the product has one element. `extremes` may be nullptr when they are not
  // needed. False: the ranges are not served, or an error; the kernels of the
  // ops know which.
  bool Prepare(const Int8AccumulatorScale& scale, bool is_single,
               const Int8Extremes* extremes,
               const Int8StageFunctions& functions, Int8Stages* made) const;

 private:
  enum class Kind {
    kBegin,
    kRequantizePerChannel,
    kSteps,
    kRequantize,
    kQuantizedRelu,
    kQuantizedBiasAdd,
    kQuantizedAdd,
    kQuantizedMul,
    kDequantize,
    kMul,
    kAdd,
    kRelu,
    kQuantize,
  };
  struct Link {
    Kind kind = Kind::kRelu;
    Int8State from = Int8State::kAccumulators;
    std::optional<Range> range;
    bool is_relu6 = false;
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
