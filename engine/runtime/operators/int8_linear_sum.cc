#include "engine/runtime/operators/int8_linear_sum.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

// Of a Requantize: (v * scale / 2^32 + offset) / 2^16.
constexpr int kScaleBits = 48;
constexpr int kLimbBits = Int8LinearSum::kLimbBits;
constexpr int kBits = Int8LinearSum::kLimbs * kLimbBits;
// Of a line without the lowest limb (Int8LinearSum::IsShort).
constexpr int kShortBits = kBits - kLimbBits;
// Added to the line, which is rounded: sums that are whole numbers must not
// fall below them. As much as 511 roundings by one half, and more.
constexpr int64_t kLift = 256;
// The highest limb is a signed number of 16 bits.
constexpr int64_t kMostStep = (int64_t{1} << (kBits + 1)) - 1;
constexpr int64_t kMostZero = int64_t{1} << 56;

// The only Requantize among stages that otherwise cut off; nullptr when there
// are others.
const Int8Stage* RequantizeAmong(const std::vector<Int8Stage>& stages) {
  const Int8Stage* found = nullptr;
  for (const Int8Stage& stage : stages) {
    if (stage.kind == Int8StageKind::kClamp) continue;
    if (stage.kind != Int8StageKind::kRequantize || found != nullptr) {
      return nullptr;
    }
    found = &stage;
  }
  return found;
}

bool SplitStep(int64_t step, int operand, Int8LinearSum* sum) {
  if (step < 0 || step > kMostStep) return false;
  for (int limb = 0; limb < Int8LinearSum::kLimbs; ++limb) {
    const bool is_last = limb + 1 == Int8LinearSum::kLimbs;
    const int64_t part = step >> (limb * kLimbBits);
    sum->steps[limb][operand] =
        static_cast<int16_t>(is_last ? part : part & ((1 << kLimbBits) - 1));
  }
  return true;
}

bool SplitZero(int64_t zero, Int8LinearSum* sum) {
  if (std::abs(zero) > kMostZero) return false;
  for (int limb = 0; limb < Int8LinearSum::kLimbs; ++limb) {
    const bool is_last = limb + 1 == Int8LinearSum::kLimbs;
    const int64_t part = zero >> (limb * kLimbBits);
    sum->zeros[limb] =
        static_cast<int32_t>(is_last ? part : part & ((1 << kLimbBits) - 1));
  }
  return true;
}

// False when the product leaves what may be added without a care.
bool MultiplyBounded(int64_t a, int64_t b, int64_t* product) {
  constexpr double kMost = 1ll << 61;
  if (!(std::abs(static_cast<double>(a) * static_cast<double>(b)) < kMost)) {
    return false;
  }
  *product = a * b;
  return true;
}

// In kBits, of which those behind `bits` are zero.
int64_t Rounded(int64_t value, int bits) {
  const int less = kScaleBits - bits;
  return ((value + (int64_t{1} << (less - 1))) >> less) << (kBits - bits);
}

// The line before anything is cut off, rounded to so many binary places.
bool SplitLine(const Int8Line& line, const Int8Stage& requantize, int bits,
               Int8LinearSum* sum) {
  int64_t zero = 0, offset = 0, step_a = 0, step_b = 0;
  return MultiplyBounded(line.zero, requantize.scale, &zero) &&
         MultiplyBounded(requantize.offset, int64_t{1} << 32, &offset) &&
         MultiplyBounded(line.step_a, requantize.scale, &step_a) &&
         MultiplyBounded(line.step_b, requantize.scale, &step_b) &&
         SplitStep(Rounded(step_a, bits), 0, sum) &&
         SplitStep(Rounded(step_b, bits), 1, sum) &&
         SplitZero(Rounded(zero + offset, bits) + (kLift << (kBits - bits)),
                   sum);
}

constexpr int kValues = 256;

// What the stages make of a value with all others.
void RunStages(const Int8Line& line, const std::vector<Int8Stage>& stages,
               const Int8StageFunctions& functions, const uint8_t* a,
               const uint8_t* all, int32_t* numbers) {
  functions.add_values(a, all, kValues, line.zero, line.step_a, line.step_b,
                       numbers);
  functions.run(stages.data(), static_cast<int>(stages.size()),
                {numbers, kValues / kInt8NrMultiple, kInt8NrMultiple, 0});
}

// Whether the line, of at most `bits` binary places, gives what the stages give
// for each of the 65536 pairs of values.
bool FindExactLine(const Int8Line& line, const std::vector<Int8Stage>& stages,
                   const Int8StageFunctions& functions, int bits,
                   Int8LinearSum* sum) {
  if (!SplitLine(line, *RequantizeAmong(stages), bits, sum)) return false;
  alignas(64) int32_t numbers[kValues];
  uint8_t a[kValues], all[kValues], made[kValues];
  for (int value = 0; value < kValues; ++value) {
    all[value] = static_cast<uint8_t>(value);
  }
  // All steps are monotonic: the extremes are at the corners.
  std::fill_n(a, kValues, uint8_t{0});
  RunStages(line, stages, functions, a, all, numbers);
  sum->least = numbers[0];
  std::fill_n(a, kValues, uint8_t{255});
  RunStages(line, stages, functions, a, all, numbers);
  sum->most = numbers[kValues - 1];
  if (sum->least < 0 || sum->most > 255) return false;
  for (int value = 0; value < kValues; ++value) {
    std::fill_n(a, kValues, static_cast<uint8_t>(value));
    RunStages(line, stages, functions, a, all, numbers);
    functions.linear_sum(a, all, kValues, *sum, made);
    for (int other = 0; other < kValues; ++other) {
      if (numbers[other] != made[other]) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<Int8LinearSum> FindLinearSum(
    const Int8Line& line, const std::vector<Int8Stage>& stages,
    const Int8StageFunctions& functions) {
  if (RequantizeAmong(stages) == nullptr) return std::nullopt;
  // The short one takes fewer instructions where it will do.
  for (const int bits : {kShortBits, kBits}) {
    Int8LinearSum sum;
    if (FindExactLine(line, stages, functions, bits, &sum)) return sum;
  }
  return std::nullopt;
}

}  // namespace optfarm::runtime
