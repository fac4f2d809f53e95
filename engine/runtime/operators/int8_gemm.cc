// What all drivers of int8 micro-kernels share.

#include "engine/runtime/operators/int8_gemm.h"

#include <algorithm>
#include <limits>

#include "absl/synchronization/mutex.h"
#include "engine/runtime/operators/int8_cost.h"

namespace optfarm::runtime {
namespace {

Int8Extremes NoExtremes(int64_t columns) {
  const auto count = static_cast<size_t>(columns);
  return {std::vector<int32_t>(count, std::numeric_limits<int32_t>::max()),
          std::vector<int32_t>(count, std::numeric_limits<int32_t>::min())};
}

void Join(const Int8Extremes& part, Int8Extremes* all) {
  for (size_t c = 0; c < part.low.size(); ++c) {
    all->low[c] = std::min(all->low[c], part.low[c]);
    all->high[c] = std::max(all->high[c], part.high[c]);
  }
}

}  // namespace

int64_t TileRows(int64_t rows, int mr) {
  const int64_t tiles = (rows + mr - 1) / mr;
  return (rows + tiles - 1) / tiles;
}

Window Int8MatrixWindow() {
  Window window;
  window.y = {.in = 1, .size = 1, .out = 1};
  window.x = {.in = 1, .size = 1, .out = 1};
  return window;
}

const MicroKernel& Int8Gemm::kernel() const {
  if (is_depthwise) return *kernels.depthwise;
  if (kernels.matrix == nullptr) return *kernels.gemm;
  const Int8ProductSize size = {
      .rows = input.rows(),
      .depth = weights.depth(),
      .columns = weights.columns(),
      .copies_rows = !input.is_matrix() && !RunsAtStride(*kernels.matrix)};
  return PrefersMatrixUnit(size) ? *kernels.matrix : *kernels.gemm;
}

bool Int8Gemm::RunsAtStride(const MicroKernel& by) const {
  // Tiles of fewer rows take longer than copying their windows together.
  constexpr int64_t kLeastTileRows = 24;
  return by.activations == ActivationLayout::kStrided && !is_by_row &&
         !input.is_matrix() && input.channels % DepthUnit(by.panel) == 0 &&
         TileRows(input.window.x.out, by.mr) >= kLeastTileRows;
}

std::vector<int32_t> FindAccumulatorInit(const Int8Gemm& gemm) {
  const Int8Weights& weights = gemm.weights;
  const auto zero_point = static_cast<uint32_t>(gemm.input.zero_point);
  // Of the activations as products see them.
  const uint32_t shifted_zero_point =
      zero_point - static_cast<uint32_t>(gemm.kernel().activation_shift);
  const auto weights_zero_point = static_cast<uint32_t>(weights.zero_point());
  const uint32_t both =
      static_cast<uint32_t>(gemm.depth()) * zero_point * weights_zero_point;
  std::vector<int32_t> init(static_cast<size_t>(weights.padded_columns()));
  const int32_t* sums = weights.column_sums();
  for (int64_t c = 0; c < weights.columns(); ++c) {
    uint32_t value = both - shifted_zero_point * static_cast<uint32_t>(sums[c]);
    if (gemm.bias != nullptr) {
      value += static_cast<uint32_t>(gemm.bias[c]);
    }
    init[c] = static_cast<int32_t>(value);
  }
  return init;
}

AccumulatorInit::AccumulatorInit(const Int8Gemm& gemm) : data_(gemm.init) {
  if (data_ != nullptr) return;
  found_ = FindAccumulatorInit(gemm);
  data_ = found_.data();
}

void ForInt8Ranges(
    ThreadPool* pool, int64_t count, int64_t grain, int64_t columns,
    Int8Extremes* extremes,
    absl::FunctionRef<void(int64_t, int64_t, Int8Extremes*)> work) {
  absl::Mutex mutex;
  if (extremes != nullptr) *extremes = NoExtremes(columns);
  pool->ParallelFor(count, std::max<int64_t>(grain, 1),
                    [&](int64_t begin, int64_t end) {
                      if (extremes == nullptr) return work(begin, end, nullptr);
                      Int8Extremes part = NoExtremes(columns);
                      work(begin, end, &part);
                      const absl::MutexLock lock(&mutex);
                      Join(part, extremes);
                    });
}

}  // namespace optfarm::runtime
