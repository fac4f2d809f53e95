#include "engine/runtime/fusion/int8_sum.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/runtime/operators/int8_gemm.h"
#include "engine/runtime/operators/int8_linear_sum.h"
#include "engine/runtime/reference/quantized/quantized_arithmetic.h"
#include "engine/runtime/reference/quantized/quantized_inputs.h"
#include "engine/runtime/ukernels/int8/int8_stage.h"

namespace optfarm::runtime {
namespace {

constexpr int kTileColumns = static_cast<int>(kInt8SumChannels);
constexpr int64_t kTileNumbers = 12 * kInt8SumChannels;
// Tiles that are worth another thread.
constexpr int64_t kTilesPerRange = 64;

// The line through a table of QuantizedAdd. False when it was cut off.
bool ReadLine(const AddendTable& table, int64_t* zero, int32_t* step) {
  *zero = table[0];
  const int64_t difference = int64_t{table[1]} - table[0];
  if (*zero + 255 * difference != table[255] ||
      std::abs(difference) > std::numeric_limits<int32_t>::max()) {
    return false;
  }
  *step = static_cast<int32_t>(difference);
  return true;
}

std::optional<Int8Line> LineOf(Range a, Range b, Range sum) {
  Int8Line line;
  int64_t zero_a = 0, zero_b = 0;
  if (!ReadLine(TableForAdd(a, sum, false), &zero_a, &line.step_a) ||
      !ReadLine(TableForAdd(b, sum, false), &zero_b, &line.step_b)) {
    return std::nullopt;
  }
  // No sum of the four corners leaves 32 bits.
  for (const int64_t x : {0, 255}) {
    for (const int64_t y : {0, 255}) {
      const int64_t corner =
          zero_a + zero_b + x * line.step_a + y * line.step_b;
      if (corner != CutTo32Bits(corner)) return std::nullopt;
    }
  }
  const int64_t zero = zero_a + zero_b;
  line.zero = static_cast<int32_t>(zero);
  return line;
}

bool IsSame(Range a, Range b) { return a.min == b.min && a.max == b.max; }

class Int8Sum final : public Kernel {
 public:
  Int8Sum(Int8Chain chain, const std::optional<Int8SumRanges>& expected,
          const Int8Kernels& kernels, StepChain steps)
      : chain_(std::move(chain)),
        functions_(*kernels.stages),
        steps_(std::move(steps)) {
    if (expected) FindReady(*expected);
  }

  absl::Status Compute(KernelContext* context) const override;

 private:
  struct Call {
    const uint8_t* a = nullptr;
    const uint8_t* b = nullptr;
    int64_t count = 0;
    Int8SumRanges ranges;
    Int8Line line;
    Int8AccumulatorScale scale;
  };
  // All that known ranges leave to do.
  struct Ready {
    Int8SumRanges ranges;
    Int8LinearSum sum;
    Range range;
  };

  void FindReady(const Int8SumRanges& ranges);
  bool IsReady(const Int8SumRanges& ranges) const {
    return ready_ && IsSame(ready_->ranges.a, ranges.a) &&
           IsSame(ready_->ranges.b, ranges.b);
  }
  absl::Status ComputeReady(const Call& call, KernelContext* context) const;

  // Nothing for what the kernels of the steps are to look at.
  std::optional<Call> ReadInputs(const KernelContext& context) const;
  // Calls visit(numbers, place of the first) for each tile of [begin, end).
  template <typename Visit>
  void ForEachTile(const Call& call, int64_t begin, int64_t end,
                   Visit visit) const;
  Int8Extremes FindExtremes(const Call& call, ThreadPool* pool) const;
  void Store(const Call& call, const Int8Stages& stages, ThreadPool* pool,
             Tensor* out) const;

  Int8Chain chain_;
  const Int8StageFunctions& functions_;
  StepChain steps_;
  std::optional<Ready> ready_;
};

void Int8Sum::FindReady(const Int8SumRanges& ranges) {
  const Range sum = RangeOfSum(ranges.a, ranges.b);
  const auto line = LineOf(ranges.a, ranges.b, sum);
  Int8Stages stages;
  if (!line || chain_.needs_extremes() ||
      chain_.state() != Int8State::kQuantized ||
      !chain_.Prepare({sum, {}}, false, nullptr, functions_, &stages)) {
    return;
  }
  const auto linear_sum = FindLinearSum(*line, stages.stages, functions_);
  if (linear_sum) ready_ = Ready{ranges, *linear_sum, stages.range};
}

absl::Status Int8Sum::ComputeReady(const Call& call,
                                   KernelContext* context) const {
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, tensorflow::DT_QUINT8,
                                                   context->input(0).shape()));
  auto* quantized = static_cast<uint8_t*>(out->raw());
  context->pool()->ParallelFor(
      call.count, kTilesPerRange * kTileNumbers,
      [&](int64_t begin, int64_t end) {
        functions_.linear_sum(call.a + begin, call.b + begin, end - begin,
                              ready_->sum, quantized + begin);
      });
  SetOutputRange(context, 1, ready_->range);
  return absl::OkStatus();
}

std::optional<Int8Sum::Call> Int8Sum::ReadInputs(
    const KernelContext& context) const {
  if (context.num_inputs() != 6) return std::nullopt;
  const Tensor &a = context.input(0), &b = context.input(1);
  const auto range_a = InputRange(context, 2), range_b = InputRange(context, 4);
  if (a.dtype() != tensorflow::DT_QUINT8 ||
      b.dtype() != tensorflow::DT_QUINT8 || !(a.shape() == b.shape()) ||
      a.num_elements() < 2 || !range_a.ok() || !range_b.ok()) {
    return std::nullopt;
  }
  Call call;
  call.a = a.data<uint8_t>();
  call.b = b.data<uint8_t>();
  call.count = a.num_elements();
  call.ranges = {*range_a, *range_b};
  if (IsReady(call.ranges)) return call;
  call.scale.range = RangeOfSum(*range_a, *range_b);
  const auto line = LineOf(*range_a, *range_b, call.scale.range);
  if (!line) return std::nullopt;
  call.line = *line;
  return call;
}

template <typename Visit>
void Int8Sum::ForEachTile(const Call& call, int64_t begin, int64_t end,
                          Visit visit) const {
  alignas(64) int32_t data[kTileNumbers];
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t first = tile * kTileNumbers;
    const int64_t count = std::min(kTileNumbers, call.count - first);
    functions_.add_values(call.a + first, call.b + first, count, call.line.zero,
                          call.line.step_a, call.line.step_b, data);
    // What fills the last row is one of the numbers.
    const int64_t rows = (count + kTileColumns - 1) / kTileColumns;
    std::fill(data + count, data + rows * kTileColumns, data[0]);
    visit(Int8Accumulators{data, static_cast<int>(rows), kTileColumns, 0},
          first, count);
  }
}

Int8Extremes Int8Sum::FindExtremes(const Call& call, ThreadPool* pool) const {
  Int8Extremes extremes;
  const int64_t tiles = (call.count + kTileNumbers - 1) / kTileNumbers;
  ForInt8Ranges(pool, tiles, kTilesPerRange, kTileColumns, &extremes,
                [&](int64_t begin, int64_t end, Int8Extremes* part) {
                  ForEachTile(
                      call, begin, end,
                      [&](const Int8Accumulators& numbers, int64_t, int64_t) {
                        functions_.find_range(numbers, part->low.data(),
                                              part->high.data());
                      });
                });
  return extremes;
}

void Int8Sum::Store(const Call& call, const Int8Stages& stages,
                    ThreadPool* pool, Tensor* out) const {
  const bool is_quantized = chain_.state() == Int8State::kQuantized;
  auto* bytes = static_cast<uint8_t*>(out->raw());
  const int64_t tiles = (call.count + kTileNumbers - 1) / kTileNumbers;
  pool->ParallelFor(tiles, kTilesPerRange, [&](int64_t begin, int64_t end) {
    ForEachTile(
        call, begin, end,
        [&](const Int8Accumulators& numbers, int64_t first, int64_t count) {
          functions_.run(stages.stages.data(),
                         static_cast<int>(stages.stages.size()), numbers);
          if (!is_quantized) {
            std::memcpy(bytes + first * static_cast<int64_t>(sizeof(int32_t)),
                        numbers.data,
                        static_cast<size_t>(count) * sizeof(int32_t));
            return;
          }
          const auto whole = static_cast<int>(count / kTileColumns);
          functions_.store_quantized({numbers.data, whole, kTileColumns, 0},
                                     kTileColumns, kTileColumns, bytes + first);
          for (int64_t i = int64_t{whole} * kTileColumns; i < count; ++i) {
            bytes[first + i] = static_cast<uint8_t>(numbers.data[i]);
          }
        });
  });
}

absl::Status Int8Sum::Compute(KernelContext* context) const {
  const std::optional<Call> call = ReadInputs(*context);
  if (!call) return steps_.Run(context);
  if (IsReady(call->ranges)) return ComputeReady(*call, context);
  Int8Extremes extremes;
  if (chain_.needs_extremes()) {
    extremes = FindExtremes(*call, context->pool());
  }
  Int8Stages stages;
  if (!chain_.Prepare(call->scale, false,
                      chain_.needs_extremes() ? &extremes : nullptr, functions_,
                      &stages)) {
    return steps_.Run(context);
  }
  const Int8State state = chain_.state();
  const DataType dtype = state == Int8State::kFloat ? tensorflow::DT_FLOAT
                         : state == Int8State::kQuantized
                             ? tensorflow::DT_QUINT8
                             : tensorflow::DT_QINT32;
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * out,
      context->AllocateOutput(0, dtype, context->input(0).shape()));
  Store(*call, stages, context->pool(), out);
  if (state != Int8State::kFloat) SetOutputRange(context, 1, stages.range);
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Kernel> MakeInt8Sum(
    Int8Chain chain, const std::optional<Int8SumRanges>& expected,
    const Int8Kernels& kernels, StepChain steps) {
  return std::make_unique<Int8Sum>(std::move(chain), expected, kernels,
                                   std::move(steps));
}

}  // namespace optfarm::runtime
