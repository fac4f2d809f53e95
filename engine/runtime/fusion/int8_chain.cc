#include "engine/runtime/fusion/int8_chain.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "engine/runtime/reference/quantized/quantized_inputs.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

// Enough for whole panels of any micro-kernel.
int64_t PaddedChannels(int64_t channels) {
  const int64_t most = channels + kMaxInt8Nr - 1;
  return (most + kInt8NrMultiple - 1) / kInt8NrMultiple * kInt8NrMultiple;
}

// The table's entry for each channel's quantized value.
std::vector<int32_t> LookUp(const AddendTable& table,
                            const std::vector<uint8_t>& quantized,
                            int64_t channels) {
  std::vector<int32_t> found(static_cast<size_t>(PaddedChannels(channels)));
  for (int64_t c = 0; c < channels; ++c) {
    found[c] =
        table[quantized[quantized.size() == 1 ? 0 : static_cast<size_t>(c)]];
  }
  return found;
}

// Whether Int8StageKind::kRounded with the stage's parameters gives the same
// values as a table; completes the stage.
bool IsRounded(const AddendTable& table, const std::vector<int32_t>& by_channel,
               Int8Stage* stage) {
  constexpr int64_t kMost = 1 << 29;
  const auto whole = [&](int q) {
    return static_cast<double>(std::round(
        std::fma(static_cast<float>(q), stage->factor, stage->summand) *
        stage->unit));
  };
  const double low = table[0] - whole(0);
  if (!(std::abs(low) < kMost)) return false;
  stage->low = static_cast<int32_t>(low);
  for (int q = 0; q < 256; ++q) {
    const double value = whole(q);
    // Above 2^22 adding a half would not be exact any more.
    if (!(std::abs(value) < 4194304.0) || value + low != table[q]) {
      return false;
    }
  }
  return std::all_of(by_channel.begin(), by_channel.end(),
                     [](int64_t value) { return std::abs(value) < kMost; });
}

// As InputRange takes it.
bool IsRange(Range range) {
  return std::isfinite(range.min) && std::isfinite(range.max) &&
         range.min <= range.max;
}

}  // namespace

// --- Building ----------------------------------------------------------------

void Int8Chain::BeginLayer(const Tensor* bias, bool has_relu,
                           bool is_per_channel) {
  Link link;
  link.kind = Kind::kBegin;
  if (bias != nullptr && bias->dtype() == tensorflow::DT_QINT32) {
    const auto quantized = bias->flat<int32_t>();
    link.accumulator_bias.assign(quantized.begin(), quantized.end());
  } else if (bias != nullptr) {
    const auto values = bias->flat<float>();
    link.floats.assign(values.begin(), values.end());
  }
  link.has_relu = has_relu;
  is_per_channel_ = is_per_channel;
  Append(std::move(link), Int8State::kAccumulators);
}

void Int8Chain::AddRequantizePerChannel(std::optional<Range> range,
                                        float clip) {
  needs_extremes_ |= !range.has_value();
  Link link;
  link.kind = Kind::kRequantizePerChannel;
  link.range = range;
  link.clip = clip;
  is_per_channel_ = false;
  Append(std::move(link), Int8State::kQuantized);
}

void Int8Chain::AddScales(bool are_ranges) {
  Link link;
  link.kind = Kind::kScales;
  link.are_ranges = are_ranges;
  is_per_channel_ = false;
  Append(std::move(link), Int8State::kFloat);
}

void Int8Chain::Append(Link link, Int8State state) {
  link.from = state_;
  state_ = state;
  links_.push_back(std::move(link));
}

std::vector<float> Int8Chain::ByChannel(absl::Span<const float> values) const {
  std::vector<float> all(static_cast<size_t>(PaddedChannels(channels_)));
  for (int64_t c = 0; c < channels_; ++c) {
    all[c] = values[values.size() == 1 ? 0 : static_cast<size_t>(c)];
  }
  return all;
}

void Int8Chain::AddRequantize(std::optional<Range> range) {
  needs_extremes_ |= !range.has_value();
  Link link;
  link.kind = Kind::kRequantize;
  link.range = range;
  Append(std::move(link), Int8State::kQuantized);
}

void Int8Chain::AddQuantizedActivation(graph::Activation activation) {
  Link link;
  link.kind = Kind::kQuantizedActivation;
  link.activation = activation;
  Append(std::move(link), state_);
}

void Int8Chain::AddQuantizedBiasAdd(Int8Operand bias) {
  Link link;
  link.kind = Kind::kQuantizedBiasAdd;
  link.operand = std::move(bias);
  Append(std::move(link), Int8State::kAccumulators);
}

void Int8Chain::AddQuantizedAdd(Int8Operand operand) {
  Link link;
  link.kind = Kind::kQuantizedAdd;
  link.operand = std::move(operand);
  Append(std::move(link), Int8State::kAccumulators);
}

void Int8Chain::AddQuantizedMul(Int8Operand operand) {
  Link link;
  link.kind = Kind::kQuantizedMul;
  link.operand = std::move(operand);
  Append(std::move(link), Int8State::kAccumulators);
}

void Int8Chain::AddDequantize(QuantizeMode mode) {
  Link link;
  link.kind = Kind::kDequantize;
  link.mode = mode;
  Append(std::move(link), Int8State::kFloat);
}

void Int8Chain::AddMul(absl::Span<const float> factors) {
  Link link;
  link.kind = Kind::kMul;
  link.floats = ByChannel(factors);
  Append(std::move(link), Int8State::kFloat);
}

void Int8Chain::AddAdd(absl::Span<const float> summands) {
  Link link;
  link.kind = Kind::kAdd;
  link.floats = ByChannel(summands);
  Append(std::move(link), Int8State::kFloat);
}

void Int8Chain::AddActivation(graph::Activation activation) {
  Link link;
  link.kind = Kind::kActivation;
  link.activation = activation;
  Append(std::move(link), Int8State::kFloat);
}

void Int8Chain::AddQuantize(std::optional<Range> range) {
  needs_extremes_ |= !range.has_value();
  Link link;
  link.kind = Kind::kQuantize;
  link.range = range;
  Append(std::move(link), Int8State::kQuantized);
}

// --- Stages ------------------------------------------------------------------

// Makes stages link by link and tracks the range of the quantized values.
class Int8Chain::Maker {
 public:
  Maker(const Int8Chain& chain, const Int8AccumulatorScale& scale,
        bool is_single, const Int8Extremes* extremes,
        const Int8StageFunctions& functions, Int8Stages* made)
      : chain_(chain),
        scale_(scale),
        is_single_(is_single),
        extremes_(extremes),
        functions_(functions),
        made_(*made) {}

  bool Add(const Link& link) {
    switch (link.kind) {
      case Kind::kBegin:
        return Begin(link);
      case Kind::kRequantizePerChannel:
        return RequantizePerChannel(link);
      case Kind::kScales:
        return Scales(link);
      case Kind::kRequantize:
        return Requantize(link);
      case Kind::kQuantizedActivation:
        return QuantizedActivation(link);
      case Kind::kQuantizedBiasAdd:
      case Kind::kQuantizedAdd:
        return QuantizedSum(link);
      case Kind::kQuantizedMul:
        return QuantizedMul(link);
      case Kind::kDequantize:
        return Dequantize(link);
      case Kind::kMul:
      case Kind::kAdd:
        Push(link.kind == Kind::kMul ? Int8StageKind::kScale
                                     : Int8StageKind::kShift)
            .floats = link.floats.data();
        return true;
      case Kind::kActivation:
        Push(IsRelu6(link) ? Int8StageKind::kRelu6 : Int8StageKind::kRelu);
        return true;
      case Kind::kQuantize:
        return Quantize(link);
    }
    return false;
  }

 private:
  Int8Stage& Push(Int8StageKind kind) {
    made_.stages.emplace_back();
    made_.stages.back().kind = kind;
    return made_.stages.back();
  }
  const int32_t* Keep(std::vector<int32_t> table) {
    made_.tables.push_back(std::move(table));
    return made_.tables.back().data();
  }

  // Runs the stages so far on the extremes and calls visit(value, channel) for
  // each result.
  template <typename Visit>
  void ForEachExtreme(Visit visit) const;
  std::optional<Range> FoundAccumulatorRange() const;
  std::optional<Range> FoundFloat() const;

  bool Begin(const Link& link);
  bool RequantizePerChannel(const Link& link);
  bool Scales(const Link& link);
  std::optional<Range> FoundByChannel(float clip) const;
  float ScaleOf(int64_t channel) const {
    return scale_
        .scales[scale_.scales.size() == 1 ? 0 : static_cast<size_t>(channel)];
  }
  std::vector<float>& KeepFloats() {
    made_.float_tables.emplace_back(
        static_cast<size_t>(PaddedChannels(chain_.channels_)));
    return made_.float_tables.back();
  }

  bool Requantize(const Link& link);
  bool QuantizedActivation(const Link& link);
  static bool IsRelu6(const Link& link) {
    return link.activation == graph::Activation::kRelu6;
  }
  bool QuantizedSum(const Link& link);
  bool QuantizedMul(const Link& link);
  bool Dequantize(const Link& link);
  bool Quantize(const Link& link);

  const Int8Chain& chain_;
  const Int8AccumulatorScale& scale_;
  bool is_single_;
  const Int8Extremes* extremes_;
  const Int8StageFunctions& functions_;
  Int8Stages& made_;
};

template <typename Visit>
void Int8Chain::Maker::ForEachExtreme(Visit visit) const {
  alignas(64) int32_t values[2 * kInt8NrMultiple];
  for (int64_t first = 0; first < chain_.channels_; first += kInt8NrMultiple) {
    std::copy_n(extremes_->low.data() + first, kInt8NrMultiple, values);
    std::copy_n(extremes_->high.data() + first, kInt8NrMultiple,
                values + kInt8NrMultiple);
    functions_.run(made_.stages.data(), static_cast<int>(made_.stages.size()),
                   {values, 2, kInt8NrMultiple, first});
    const int64_t count =
        std::min<int64_t>(kInt8NrMultiple, chain_.channels_ - first);
    for (int64_t i = 0; i < count; ++i) {
      visit(values[i], first + i);
      visit(values[kInt8NrMultiple + i], first + i);
    }
  }
}

// As RequantizationRange.
std::optional<Range> Int8Chain::Maker::FoundAccumulatorRange() const {
  if (extremes_ == nullptr) return std::nullopt;
  int32_t low = std::numeric_limits<int32_t>::max();
  int32_t high = std::numeric_limits<int32_t>::min();
  ForEachExtreme([&](int32_t value, int64_t) {
    low = std::min(low, value);
    high = std::max(high, value);
  });
  const Dequantizer<int32_t> dequantize(made_.range);
  return Range{std::min(0.0f, dequantize(low)), dequantize(high)};
}

// As Min and Max.
std::optional<Range> Int8Chain::Maker::FoundFloat() const {
  if (extremes_ == nullptr) return std::nullopt;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Range range = {kInfinity, -kInfinity};
  bool is_finite = true;
  ForEachExtreme([&](int32_t bits, int64_t) {
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    is_finite &= std::isfinite(value);
    range.min = std::min(range.min, value);
    range.max = std::max(range.max, value);
  });
  if (!is_finite) return std::nullopt;
  return range;
}

// As RequantizationRangePerChannel.
std::optional<Range> Int8Chain::Maker::FoundByChannel(float clip) const {
  if (extremes_ == nullptr) return std::nullopt;
  Range range;
  ForEachExtreme([&](int32_t accumulator, int64_t channel) {
    const float value = static_cast<float>(accumulator) * ScaleOf(channel);
    range.min = std::min(range.min, value);
    range.max = std::max(range.max, value);
  });
  if (clip > 0) range.max = std::min(range.max, clip);
  return range;
}

// The bias becomes part of the accumulator init.
bool Int8Chain::Maker::Begin(const Link& link) {
  for (float scale : scale_.scales) {
    // The range that stands for it must be one (InputRanges).
    if (!std::isfinite(scale * 2147483648.0f)) return false;
  }
  made_.bias = chain_.Bias(scale_);
  if (link.has_relu) {
    Int8Stage& stage = Push(Int8StageKind::kClamp);
    stage.low = 0;
    stage.high = std::numeric_limits<int32_t>::max();
  }
  if (scale_.scales.size() == 1) made_.range = RangeOfScale(scale_.scales[0]);
  return true;
}

bool Int8Chain::Maker::RequantizePerChannel(const Link& link) {
  const std::optional<Range> found =
      link.range ? link.range : FoundByChannel(link.clip);
  if (!found || !IsRange(*found)) return false;
  const Range to = WithZero(*found);
  const absl::StatusOr<int32_t> zero = ZeroPointOf(to);
  if (!zero.ok()) return false;
  std::vector<float>& factors = KeepFloats();
  for (int64_t c = 0; c < chain_.channels_; ++c) {
    factors[c] = RequantizeFactor(ScaleOf(c), to);
    if (!std::isfinite(factors[c])) return false;
  }
  // Requantization applies the Relu.
  bool has_relu = false;
  if (!made_.stages.empty() &&
      made_.stages.back().kind == Int8StageKind::kClamp &&
      made_.stages.size() == 1) {
    made_.stages.pop_back();
    has_relu = true;
  }
  Int8Stage& stage = Push(Int8StageKind::kRequantizeFloat);
  stage.floats = factors.data();
  stage.has_small_scales =
      std::all_of(factors.begin(), factors.end(),
                  [](float factor) { return factor <= 0.5f; });
  stage.factor = has_relu ? 0.0f : static_cast<float>(-*zero);
  stage.summand = static_cast<float>(255 - *zero);
  stage.low = *zero;
  made_.range = to;
  return true;
}

bool Int8Chain::Maker::Scales(const Link& link) {
  Int8Stage& stage = Push(Int8StageKind::kDequantize);
  stage.factor = 1.0f;
  stage.summand = 0.0f;
  std::vector<float>& scales = KeepFloats();
  for (int64_t c = 0; c < chain_.channels_; ++c) {
    scales[c] = ScaleOf(c);
    if (!link.are_ranges) continue;
    const Range range = RangeOfScale(ScaleOf(c));
    if (!IsRange(range)) return false;
    scales[c] = AffineOf<int32_t>(QuantizeMode::kScaled, range).scale;
  }
  Push(Int8StageKind::kScale).floats = scales.data();
  return true;
}

bool Int8Chain::Maker::Requantize(const Link& link) {
  const std::optional<Range> to =
      link.range ? link.range : FoundAccumulatorRange();
  if (!to || !IsRange(*to) || to->min > 0.0f || !IsRange(made_.range)) {
    return false;
  }
  const Requantizer requantizer(made_.range, *to);
  Int8Stage& stage = Push(Int8StageKind::kRequantize);
  stage.scale = requantizer.scale();
  stage.offset = requantizer.offset();
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  stage.low = static_cast<int32_t>(-std::min(requantizer.bound(), kMost + 1));
  stage.high = static_cast<int32_t>(std::min(requantizer.bound(), kMost));
  made_.range = *to;
  return true;
}

bool Int8Chain::Maker::QuantizedActivation(const Link& link) {
  const Range range = made_.range;
  if (!IsRange(range)) return false;
  Int8Stage& stage = Push(Int8StageKind::kClamp);
  if (link.from == Int8State::kQuantized) {
    stage.low = ::optfarm::runtime::Quantize<uint8_t>(0.0f, range);
    stage.high = IsRelu6(link)
                     ? ::optfarm::runtime::Quantize<uint8_t>(6.0f, range)
                     : 255;
  } else {
    stage.low = ::optfarm::runtime::Quantize<int32_t>(0.0f, range);
    stage.high = IsRelu6(link)
                     ? ::optfarm::runtime::Quantize<int32_t>(6.0f, range)
                     : std::numeric_limits<int32_t>::max();
  }
  return true;
}

bool Int8Chain::Maker::QuantizedSum(const Link& link) {
  const Range a = made_.range, b = link.operand.range;
  if (!IsRange(a) || !IsRange(b)) return false;
  const bool is_bias = link.kind == Kind::kQuantizedBiasAdd;
  const Range range = is_bias ? RangeOfBiasSum(a, b) : RangeOfSum(a, b);
  const AddendTable of_b =
      is_bias ? TableOfBias(b, range)
              : TableForAdd(b, range, link.operand.values.size() == 1);
  AddendTable of_a =
      is_bias ? TableForBias(a, range) : TableForAdd(a, range, is_single_);
  std::vector<int32_t> by_channel =
      LookUp(of_b, link.operand.values, chain_.channels_);
  Int8Stage& stage = Push(Int8StageKind::kTable);
  stage.factor = static_cast<float>((a.max - a.min) / 255.0);
  stage.summand =
      a.min == a.max ? a.min : std::round(a.min / stage.factor) * stage.factor;
  stage.unit = range.min == range.max
                   ? 0.0f
                   : static_cast<float>(4294967295.0 / (range.max - range.min));
  if (!is_bias) {
    stage.factor = static_cast<float>(int64_t{of_a[1]} - of_a[0]);
    stage.summand = static_cast<float>(of_a[0]);
    stage.unit = 1.0f;
  }
  if (IsRounded(of_a, by_channel, &stage)) stage.kind = Int8StageKind::kRounded;
  stage.table = Keep(std::move(of_a));
  stage.by_channel = Keep(std::move(by_channel));
  made_.range = range;
  return true;
}

bool Int8Chain::Maker::QuantizedMul(const Link& link) {
  // As the kernel's own bound.
  constexpr int32_t kMostZero = 32000;
  const Range a = made_.range, b = link.operand.range;
  if (!IsRange(a) || !IsRange(b)) return false;
  const absl::StatusOr<int32_t> zero_a = ZeroPointOf(a, kMostZero);
  const absl::StatusOr<int32_t> zero_b = ZeroPointOf(b, kMostZero);
  if (!zero_a.ok() || !zero_b.ok()) return false;
  AddendTable of_b(256);
  for (int q = 0; q < 256; ++q) of_b[q] = q - *zero_b;
  Int8Stage& stage = Push(Int8StageKind::kProduct);
  stage.low = *zero_a;
  stage.by_channel = Keep(LookUp(of_b, link.operand.values, chain_.channels_));
  made_.range = RangeOfProduct<uint8_t, uint8_t>(a, b);
  return true;
}

bool Int8Chain::Maker::Dequantize(const Link& link) {
  if (!IsRange(made_.range)) return false;
  const Affine affine = link.from == Int8State::kQuantized
                            ? AffineOf<uint8_t>(link.mode, made_.range)
                            : AffineOf<int32_t>(link.mode, made_.range);
  Int8Stage& stage = Push(Int8StageKind::kDequantize);
  stage.factor = affine.scale;
  stage.summand = affine.offset;
  return true;
}

bool Int8Chain::Maker::Quantize(const Link& link) {
  const std::optional<Range> found = link.range ? link.range : FoundFloat();
  if (!found || !IsRange(*found)) return false;
  const Range range = WidenedForQuantize(*found);
  const MinFirst<uint8_t> min_first(range);
  Int8Stage& stage = Push(Int8StageKind::kQuantize);
  stage.factor = min_first.per_unit;
  stage.summand = min_first.start;
  made_.range = range;
  return true;
}

std::vector<int32_t> Int8Chain::Bias(const Int8AccumulatorScale& scale) const {
  std::vector<int32_t> all;
  if (links_.empty() || links_[0].kind != Kind::kBegin) return all;
  for (int32_t bias : links_[0].accumulator_bias) all.push_back(CutBias(bias));
  const std::vector<float>& floats = links_[0].floats;
  for (size_t c = 0; c < floats.size(); ++c) {
    all.push_back(QuantizeBias(floats[c],
                               scale.scales[scale.scales.size() == 1 ? 0 : c]));
  }
  return all;
}

bool Int8Chain::Prepare(const Int8AccumulatorScale& scale, bool is_single,
                        const Int8Extremes* extremes,
                        const Int8StageFunctions& functions,
                        Int8Stages* made) const {
  made->range = scale.range;
  Maker maker(*this, scale, is_single, extremes, functions, made);
  for (const Link& link : links_) {
    if (!maker.Add(link)) return false;
  }
  return true;
}

}  // namespace optfarm::runtime
