#include "engine/runtime/fusion/int8_quantize.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "engine/runtime/fusion/row_bands.h"
#include "engine/runtime/operators/int8_gemm.h"
#include "engine/runtime/reference/quantized/quantized_inputs.h"
#include "engine/runtime/ukernels/int8/int8_stage.h"

namespace optfarm::runtime {
namespace {

// Numbers that are worth another thread.
constexpr int64_t kNumbersPerRange = 16384;
constexpr int64_t kElementBytes = sizeof(int32_t);
// What is worked on at a time.
constexpr int kTileRows = 12, kTileColumns = 32;

int32_t BitsOf(float value) {
  int32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float FloatOf(int32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// A tensor as rows x columns.
struct Matrix {
  const float* values = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  // Those of the last row that exist.
  int64_t last = 0;

  int64_t count() const { return (rows - 1) * columns + last; }
  int64_t bands() const { return (rows + kTileRows - 1) / kTileRows; }
  // How many of the 32 columns from `first` on exist in a row.
  int64_t Existing(int64_t row, int64_t first) const {
    const int64_t exist = row + 1 == rows ? last : columns;
    return std::clamp<int64_t>(exist - first, 0, int64_t{kTileColumns});
  }
};

class Int8Quantize final : public Kernel, public RowProducer {
 public:
  Int8Quantize(Int8Chain chain, bool has_channels, const Int8Kernels& kernels,
               StepChain steps)
      : chain_(std::move(chain)),
        has_channels_(has_channels),
        functions_(*kernels.stages),
        steps_(std::move(steps)) {
    if (chain_.needs_extremes()) return;
    is_ready_ = chain_.Prepare({}, false, nullptr, functions_, &ready_);
  }

  absl::Status Compute(KernelContext* context) const override;

  // Nothing where more is done than to quantize floats, or by a range that is
  // found in them.
  std::optional<RowElements> Elements() const override {
    if (!is_ready_ || !IsPlain(ready_)) return std::nullopt;
    return RowElements{tensorflow::DT_QUINT8, ready_.range};
  }
  std::optional<RowImage> ImageOf(const Tensor& input) const override {
    if (input.dtype() != tensorflow::DT_FLOAT || input.rank() != 4) {
      return std::nullopt;
    }
    return RowImage{input.dim(0), input.dim(1), input.dim(2), input.dim(3)};
  }
  absl::StatusOr<bool> WithRows(
      const Tensor& input, ThreadPool*,
      absl::FunctionRef<absl::StatusOr<bool>(const Rows&)> use) const override {
    return use(QuantizedRows(functions_, ready_.stages[0], input));
  }

 private:
  class QuantizedRows final : public Rows {
   public:
    QuantizedRows(const Int8StageFunctions& functions,
                  const Int8Stage& quantize, const Tensor& input)
        : functions_(functions),
          quantize_(quantize),
          floats_(input.data<float>()),
          size_(input.dim(2) * input.dim(3)) {}

    void Make(int64_t begin, int64_t end, FirstWeights::Place,
              void* out) const override {
      functions_.quantize(quantize_, floats_ + begin * size_,
                          (end - begin) * size_, static_cast<uint8_t*>(out));
    }
    // Nobody read the image before: it comes from afar.
    FirstWeights::Place InputOf(int64_t begin, int64_t end) const override {
      constexpr int64_t kBytes = sizeof(float);
      return {reinterpret_cast<const char*>(floats_ + begin * size_),
              (end - begin) * size_ * kBytes};
    }

   private:
    const Int8StageFunctions& functions_;
    const Int8Stage& quantize_;
    const float* const floats_;
    // Of a row.
    const int64_t size_;
  };

  static bool IsPlain(const Int8Stages& stages) {
    return stages.stages.size() == 1 &&
           stages.stages[0].kind == Int8StageKind::kQuantize;
  }
  // False for what the kernels of the steps are to look at.
  bool Read(const KernelContext& context, Matrix* matrix) const;
  // Calls visit(numbers, first row) for each tile of bands [begin, end). What
  // fills up a tile are copies of its first number.
  template <typename Visit>
  void ForEachTile(const Matrix& matrix, int64_t begin, int64_t end,
                   Visit visit) const;
  // False when there is a NaN: it has no place in an order.
  bool FindExtremes(const Matrix& matrix, ThreadPool* pool,
                    Int8Extremes* extremes) const;
  void Store(const Matrix& matrix, const Int8Stages& stages, ThreadPool* pool,
             Tensor* out) const;
  void StoreTile(const Matrix& matrix, const Int8Accumulators& numbers,
                 int64_t row, uint8_t* bytes) const;

  Int8Chain chain_;
  bool has_channels_;
  const Int8StageFunctions& functions_;
  StepChain steps_;
  bool is_ready_ = false;
  Int8Stages ready_;
};

int64_t Grain(const Matrix& matrix) {
  return kNumbersPerRange / (kTileRows * matrix.columns);
}

bool Int8Quantize::Read(const KernelContext& context, Matrix* matrix) const {
  if (context.num_inputs() != 1) return false;
  const Tensor& input = context.input(0);
  // One element is a scalar to QuantizedAdd.
  if (input.dtype() != tensorflow::DT_FLOAT || input.num_elements() < 2) {
    return false;
  }
  matrix->values = input.data<float>();
  matrix->columns = chain_.channels();
  if (has_channels_ &&
      (input.rank() == 0 || input.dim(input.rank() - 1) != matrix->columns)) {
    return false;
  }
  const int64_t count = input.num_elements();
  matrix->rows = (count + matrix->columns - 1) / matrix->columns;
  matrix->last = count - (matrix->rows - 1) * matrix->columns;
  return true;
}

template <typename Visit>
void Int8Quantize::ForEachTile(const Matrix& matrix, int64_t begin, int64_t end,
                               Visit visit) const {
  alignas(64) int32_t data[kTileRows * kTileColumns];
  for (int64_t band = begin; band < end; ++band) {
    const int64_t row = band * kTileRows;
    const int rows =
        static_cast<int>(std::min<int64_t>(kTileRows, matrix.rows - row));
    for (int64_t c = 0; c < matrix.columns; c += kTileColumns) {
      for (int r = 0; r < rows; ++r) {
        const int64_t count = matrix.Existing(row + r, c);
        int32_t* to = data + r * kTileColumns;
        std::memcpy(to, matrix.values + (row + r) * matrix.columns + c,
                    static_cast<size_t>(count * kElementBytes));
        std::fill(to + count, to + kTileColumns, data[0]);
      }
      visit(Int8Accumulators{data, rows, kTileColumns, c}, row);
    }
  }
}

bool Int8Quantize::FindExtremes(const Matrix& matrix, ThreadPool* pool,
                                Int8Extremes* extremes) const {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto columns = static_cast<size_t>((matrix.columns + kTileColumns - 1) /
                                           kTileColumns * kTileColumns);
  const Int8Extremes none = {std::vector<int32_t>(columns, BitsOf(kInfinity)),
                             std::vector<int32_t>(columns, BitsOf(-kInfinity))};
  *extremes = none;
  bool has_nan = false;
  absl::Mutex mutex;
  pool->ParallelFor(
      matrix.bands(), Grain(matrix), [&](int64_t begin, int64_t end) {
        Int8Extremes part = none;
        bool nan_here = false;
        ForEachTile(
            matrix, begin, end, [&](const Int8Accumulators& numbers, int64_t) {
              functions_.find_float_range(numbers,
                                          part.low.data() + numbers.channel,
                                          part.high.data() + numbers.channel);
              nan_here |= functions_.has_nan(numbers);
            });
        const absl::MutexLock lock(&mutex);
        has_nan |= nan_here;
        for (size_t c = 0; c < columns; ++c) {
          extremes->low[c] =
              BitsOf(std::min(FloatOf(extremes->low[c]), FloatOf(part.low[c])));
          extremes->high[c] = BitsOf(
              std::max(FloatOf(extremes->high[c]), FloatOf(part.high[c])));
        }
      });
  return !has_nan;
}

void Int8Quantize::StoreTile(const Matrix& matrix,
                             const Int8Accumulators& numbers, int64_t row,
                             uint8_t* bytes) const {
  for (int r = 0; r < numbers.rows; ++r) {
    const int64_t count = matrix.Existing(row + r, numbers.channel);
    if (count == 0) continue;
    const int64_t place = (row + r) * matrix.columns + numbers.channel;
    int32_t* data = numbers.data + r * kTileColumns;
    if (chain_.state() == Int8State::kQuantized) {
      functions_.store_quantized({data, 1, kTileColumns, 0},
                                 static_cast<int>(count), 0, bytes + place);
    } else {
      std::memcpy(bytes + place * kElementBytes, data,
                  static_cast<size_t>(count * kElementBytes));
    }
  }
}

void Int8Quantize::Store(const Matrix& matrix, const Int8Stages& stages,
                         ThreadPool* pool, Tensor* out) const {
  auto* bytes = static_cast<uint8_t*>(out->raw());
  if (IsPlain(stages)) {
    return pool->ParallelFor(
        matrix.count(), kNumbersPerRange, [&](int64_t begin, int64_t end) {
          functions_.quantize(stages.stages[0], matrix.values + begin,
                              end - begin, bytes + begin);
        });
  }
  pool->ParallelFor(
      matrix.bands(), Grain(matrix), [&](int64_t begin, int64_t end) {
        ForEachTile(matrix, begin, end,
                    [&](const Int8Accumulators& numbers, int64_t row) {
                      functions_.run(stages.stages.data(),
                                     static_cast<int>(stages.stages.size()),
                                     numbers);
                      StoreTile(matrix, numbers, row, bytes);
                    });
      });
}

absl::Status Int8Quantize::Compute(KernelContext* context) const {
  Matrix matrix;
  if (!Read(*context, &matrix)) return steps_.Run(context);
  Int8Stages made;
  if (!is_ready_) {
    Int8Extremes extremes;
    if (!chain_.needs_extremes() ||
        !FindExtremes(matrix, context->pool(), &extremes) ||
        !chain_.Prepare({}, false, &extremes, functions_, &made)) {
      return steps_.Run(context);
    }
  }
  const Int8Stages& stages = is_ready_ ? ready_ : made;
  const Int8State state = chain_.state();
  const DataType dtype = state == Int8State::kFloat ? tensorflow::DT_FLOAT
                         : state == Int8State::kQuantized
                             ? tensorflow::DT_QUINT8
                             : tensorflow::DT_QINT32;
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * out,
      context->AllocateOutput(0, dtype, context->input(0).shape()));
  Store(matrix, stages, context->pool(), out);
  if (state != Int8State::kFloat) SetOutputRange(context, 1, stages.range);
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Kernel> MakeInt8Quantize(Int8Chain chain, bool has_channels,
                                         const Int8Kernels& kernels,
                                         StepChain steps) {
  return std::make_unique<Int8Quantize>(std::move(chain), has_channels, kernels,
                                        std::move(steps));
}

}  // namespace optfarm::runtime
