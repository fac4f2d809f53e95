#include "engine/runtime/fusion/qdq/qdq_elements.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "engine/runtime/reference/quantized/inner_loops.h"
#include "engine/runtime/reference/quantized/lite_sum.h"

namespace optfarm::runtime {
namespace {

// UNITS: elements that are worth another thread.
constexpr int64_t kSumGrain = 16 * 1024;
constexpr int64_t kTableGrain = 8 * 1024;

// (a - zero) * scale_a + (b - zero) * scale_b in steps of the result.
struct SumLine {
  explicit SumLine(const QdqPair& pair);

  // `out` is neither of the operands.
  void Add(const uint8_t* a, const uint8_t* b, int64_t count,
           const QdqBounds& bounds, uint8_t* __restrict out) const {
    for (int64_t i = 0; i < count; i += kInnerLoop) {
      AddSome(a + i, b + i, std::min(kInnerLoop, count - i), bounds, out + i);
    }
  }

  double step_a = 0;
  double step_b = 0;
  double zero = 0;
  bool rounds_up = false;

 private:
  void AddSome(const uint8_t* a, const uint8_t* b, int64_t count,
               const QdqBounds& bounds, uint8_t* __restrict out) const {
    double values[kInnerLoop];
    for (int64_t i = 0; i < count; ++i) {
      values[i] = zero + a[i] * step_a + b[i] * step_b;
    }
    ClampEach(static_cast<double>(bounds.least),
              static_cast<double>(bounds.most), count, values);
    // No value is negative: a conversion rounds down.
    for (int64_t i = 0; i < count; ++i) {
      const double whole = rounds_up ? values[i] + 0.5 : RoundToEven(values[i]);
      out[i] = static_cast<uint8_t>(static_cast<int32_t>(whole));
    }
  }
};

SumLine::SumLine(const QdqPair& pair)
    : step_a(double{pair.a.scale} / pair.out.scale),
      step_b(double{pair.b.scale} / pair.out.scale),
      rounds_up(pair.rounds_up) {
  if (rounds_up) {
    const LiteSumFactors factors =
        FactorsOfLiteSum(pair.a.scale, pair.b.scale, pair.out.scale);
    step_a = factors.a;
    step_b = factors.b;
  }
  zero = pair.out.unsigned_zero() - pair.a.unsigned_zero() * step_a -
         pair.b.unsigned_zero() * step_b;
}

// One of the numbers of Int8LinearSum, in its limbs. False for one that is too
// large.
bool SplitIntoLimbs(double value, double most, int64_t* limbs) {
  constexpr int kBits = Int8LinearSum::kLimbs * Int8LinearSum::kLimbBits;
  if (!(std::abs(value) < most)) return false;
  const auto fixed = std::llrint(std::ldexp(value, kBits));
  for (int limb = 0; limb < Int8LinearSum::kLimbs; ++limb) {
    const int64_t part = fixed >> (limb * Int8LinearSum::kLimbBits);
    const bool is_last = limb + 1 == Int8LinearSum::kLimbs;
    limbs[limb] = is_last ? part : part & ((1 << Int8LinearSum::kLimbBits) - 1);
  }
  return true;
}

// Nothing where the line is too steep for the micro-kernel.
std::optional<Int8LinearSum> LinearSumOf(const SumLine& line,
                                         const QdqBounds& bounds) {
  Int8LinearSum sum;
  int64_t limbs[Int8LinearSum::kLimbs];
  // A step below 2 fits into 16 bits; and a zero, with what is added to it,
  // into 32.
  const double steps[2] = {line.step_a, line.step_b};
  for (int operand = 0; operand < 2; ++operand) {
    if (!SplitIntoLimbs(steps[operand], 1.9, limbs)) return std::nullopt;
    for (int limb = 0; limb < Int8LinearSum::kLimbs; ++limb) {
      sum.steps[limb][operand] = static_cast<int16_t>(limbs[limb]);
    }
  }
  if (!SplitIntoLimbs(line.zero + 0.5, 1 << 15, limbs)) return std::nullopt;
  for (int limb = 0; limb < Int8LinearSum::kLimbs; ++limb) {
    sum.zeros[limb] = static_cast<int32_t>(limbs[limb]);
  }
  sum.least = bounds.least;
  sum.most = bounds.most;
  return sum;
}

class QdqSum final : public QdqKernel {
 public:
  QdqSum(const QdqPair& pair, const Int8StageFunctions& functions,
         QdqSteps steps)
      : QdqKernel({pair.a, pair.b}, pair.out, std::move(steps)),
        bounds_(pair.bounds),
        functions_(functions),
        line_(pair),
        fast_(LinearSumOf(line_, bounds_)) {}

 protected:
  absl::StatusOr<bool> ComputeUnsigned(KernelContext* context) const override {
    const Shape& shape = context->input(0).shape();
    if (shape != context->input(1).shape()) return false;
    Values a;
    Values b;
    Read(0, *context, &a);
    Read(1, *context, &b);
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out, Allocate(shape, context));
    auto* values = static_cast<uint8_t*>(out->raw());
    context->pool()->ParallelFor(
        shape.num_elements(), kSumGrain, [&](int64_t begin, int64_t end) {
          if (fast_) {
            functions_.linear_sum(a.data + begin, b.data + begin, end - begin,
                                  *fast_, values + begin);
            return;
          }
          line_.Add(a.data + begin, b.data + begin, end - begin, bounds_,
                    values + begin);
        });
    Finish(out, context);
    return true;
  }

 private:
  const QdqBounds bounds_;
  const Int8StageFunctions& functions_;
  const SumLine line_;
  const std::optional<Int8LinearSum> fast_;
};

// Steps of the result in one of a product, in floats as runtimes compute it.
float ProductScale(const QdqPair& pair) {
  return pair.a.scale * pair.b.scale / pair.out.scale;
}

class QdqProduct final : public QdqKernel {
 public:
  QdqProduct(const QdqPair& pair, QdqSteps steps)
      : QdqKernel({pair.a, pair.b}, pair.out, std::move(steps)),
        bounds_(pair.bounds),
        scale_(ProductScale(pair)) {}

 protected:
  absl::StatusOr<bool> ComputeUnsigned(KernelContext* context) const override;

 private:
  // out = a * b with a factor for each of `count` values, or one for all.
  void Multiply(const uint8_t* a, const uint8_t* b, int64_t count,
                uint8_t* out) const {
    const int32_t zero_a = in(0).unsigned_zero();
    const int32_t zero_b = in(1).unsigned_zero();
    const int32_t zero = this->out().unsigned_zero();
    const auto least = static_cast<float>(bounds_.least - zero);
    const auto most = static_cast<float>(bounds_.most - zero);
    for (int64_t i = 0; i < count; ++i) {
      const int32_t product = (a[i] - zero_a) * (b[i] - zero_b);
      const float value =
          std::clamp(static_cast<float>(product) * scale_, least, most);
      out[i] =
          static_cast<uint8_t>(static_cast<int32_t>(RoundToEven(value)) + zero);
    }
  }

  const QdqBounds bounds_;
  const float scale_;
};

// Whether `small` is [n, 1, ..., 1, c] for a tensor [n, ..., c].
bool IsByChannel(const Shape& small, const Shape& large) {
  const int rank = large.rank();
  if (rank < 3 || small.rank() != rank || small.dim(0) != large.dim(0) ||
      small.dim(rank - 1) != large.dim(rank - 1)) {
    return false;
  }
  for (int i = 1; i < rank - 1; ++i) {
    if (small.dim(i) != 1) return false;
  }
  return true;
}

absl::StatusOr<bool> QdqProduct::ComputeUnsigned(KernelContext* context) const {
  const Shape& shape_a = context->input(0).shape();
  const Shape& shape_b = context->input(1).shape();
  const bool is_alike = shape_a == shape_b;
  const bool is_by_channel_b = !is_alike && IsByChannel(shape_b, shape_a);
  if (!is_alike && !is_by_channel_b && !IsByChannel(shape_a, shape_b)) {
    return false;
  }
  const Shape shape = is_alike || is_by_channel_b ? shape_a : shape_b;
  if (shape.num_elements() == 0) return false;
  Values a;
  Values b;
  Read(0, *context, &a);
  Read(1, *context, &b);
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out, Allocate(shape, context));
  auto* values = static_cast<uint8_t*>(out->raw());
  const int64_t channels = shape.rank() == 0 ? 1 : shape.dim(shape.rank() - 1);
  const int64_t rows = shape.num_elements() / channels;
  const int64_t rows_of_image = is_alike ? 1 : rows / shape.dim(0);
  context->pool()->ParallelFor(
      rows, 1 + kTableGrain / channels, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t large = row * channels;
          const int64_t small = row / rows_of_image * channels;
          Multiply(a.data + (is_alike || is_by_channel_b ? large : small),
                   b.data + (is_by_channel_b ? small : large), channels,
                   values + large);
        }
      });
  Finish(out, context);
  return true;
}

class QdqTableKernel final : public QdqKernel {
 public:
  QdqTableKernel(QdqTensor in, QdqTensor out, const QdqTable& table,
                 QdqSteps steps)
      : QdqKernel({in}, out, std::move(steps)), table_(table) {}

 protected:
  absl::StatusOr<bool> ComputeUnsigned(KernelContext* context) const override {
    const Shape shape = context->input(0).shape();
    Values in;
    Read(0, *context, &in);
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out, Allocate(shape, context));
    auto* values = static_cast<uint8_t*>(out->raw());
    context->pool()->ParallelFor(
        shape.num_elements(), kTableGrain, [&](int64_t begin, int64_t end) {
          LookUp(in.data + begin, end - begin, values + begin);
        });
    Finish(out, context);
    return true;
  }

 private:
  // What bytes are written to is nothing that is read: the compiler need not
  // look up again where the table is.
  void LookUp(const uint8_t* values, int64_t count,
              uint8_t* __restrict out) const {
    const uint8_t* const table = table_.data();
    for (int64_t i = 0; i < count; ++i) out[i] = table[values[i]];
  }

  const QdqTable table_;
};

}  // namespace

std::unique_ptr<QdqKernel> MakeQdqSum(const QdqPair& pair,
                                      const Int8StageFunctions& functions,
                                      QdqSteps steps) {
  return std::make_unique<QdqSum>(pair, functions, std::move(steps));
}

std::unique_ptr<QdqKernel> MakeQdqProduct(const QdqPair& pair, QdqSteps steps) {
  return std::make_unique<QdqProduct>(pair, std::move(steps));
}

QdqTable QdqSumTable(const QdqPair& pair, uint8_t b) {
  const SumLine line(pair);
  QdqTable all, same, table;
  std::iota(all.begin(), all.end(), uint8_t{0});
  same.fill(b);
  line.Add(all.data(), same.data(), 256, pair.bounds, table.data());
  return table;
}

QdqTable QdqProductTable(const QdqPair& pair, uint8_t b) {
  const float scale = ProductScale(pair);
  const int32_t zero = pair.out.unsigned_zero();
  const auto least = static_cast<float>(pair.bounds.least - zero);
  const auto most = static_cast<float>(pair.bounds.most - zero);
  QdqTable table;
  for (int a = 0; a < 256; ++a) {
    const int32_t product =
        (a - pair.a.unsigned_zero()) * (b - pair.b.unsigned_zero());
    const float steps = std::nearbyint(
        std::clamp(static_cast<float>(product) * scale, least, most));
    table[a] = static_cast<uint8_t>(static_cast<int32_t>(steps) + zero);
  }
  return table;
}

std::unique_ptr<QdqKernel> MakeQdqTable(QdqTensor in, QdqTensor out,
                                        const QdqTable& table, QdqSteps steps) {
  return std::make_unique<QdqTableKernel>(in, out, table, std::move(steps));
}

}  // namespace optfarm::runtime
