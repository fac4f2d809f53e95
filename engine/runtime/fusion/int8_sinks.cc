#include "engine/runtime/fusion/int8_sinks.h"

#include <algorithm>
#include <cstring>

namespace optfarm::runtime {
namespace {

constexpr int64_t kElementBytes = sizeof(int32_t);

}  // namespace

std::optional<Int8Epilogue> FindInt8Epilogue(
    const std::vector<Int8Stage>& stages) {
  if (stages.size() != 1 || stages[0].kind != Int8StageKind::kRequantizeFloat) {
    return std::nullopt;
  }
  const Int8Stage& stage = stages[0];
  Int8Epilogue epilogue;
  epilogue.scales = stage.floats;
  epilogue.has_small_scales = stage.has_small_scales;
  epilogue.most = stage.summand;
  epilogue.zero_point = stage.low;
  epilogue.least = stage.low + static_cast<int32_t>(stage.factor);
  if (epilogue.zero_point < 0 || epilogue.zero_point > 255 ||
      epilogue.least < 0 ||
      epilogue.most != static_cast<float>(255 - epilogue.zero_point)) {
    return std::nullopt;
  }
  return epilogue;
}

Int8Output::Int8Output(int64_t columns, int nr,
                       const Int8StageFunctions& functions,
                       QuantizedPlace values)
    : is_quantized_(true),
      columns_(columns),
      nr_(nr),
      stride_(values.pixel_stride),
      functions_(functions),
      out_(values.data) {}

Int8Output::Int8Output(int64_t columns, int nr,
                       const Int8StageFunctions& functions,
                       Tensor* accumulators)
    : is_quantized_(false),
      columns_(columns),
      nr_(nr),
      stride_(columns),
      functions_(functions),
      out_(static_cast<uint8_t*>(accumulators->raw())) {}

void Int8Output::Point(int64_t row, int64_t column,
                       Int8Epilogue* epilogue) const {
  epilogue->scales += column;
  epilogue->channels = Existing(column);
  epilogue->stride = stride_;
  epilogue->out = out_ + row * stride_ + column;
}

void Int8Output::Store(const Int8Accumulators& tile, int64_t row) const {
  const int count = Existing(tile.channel);
  const int64_t place = row * stride_ + tile.channel;
  if (is_quantized_) {
    functions_.store_quantized(tile, count, stride_, out_ + place);
    return;
  }
  for (int r = 0; r < tile.rows; ++r) {
    std::memcpy(out_ + (place + r * stride_) * kElementBytes,
                tile.data + r * tile.nr,
                static_cast<size_t>(count) * kElementBytes);
  }
}

int Int8Output::Existing(int64_t column) const {
  return static_cast<int>(std::min<int64_t>(nr_, columns_ - column));
}

Int8StagesSink::Int8StagesSink(const std::vector<Int8Stage>& stages,
                               const Int8StageFunctions& functions,
                               const Int8Output& output)
    : stages_(stages),
      functions_(functions),
      output_(output),
      epilogue_(FindInt8Epilogue(stages)) {}

bool Int8StagesSink::FindEpilogue(int64_t row, int64_t column,
                                  Int8Epilogue* epilogue) const {
  if (!epilogue_) return false;
  *epilogue = *epilogue_;
  output_.Point(row, column, epilogue);
  return true;
}

void Int8StagesSink::Take(const Int8Accumulators& tile, int64_t row) const {
  Int8Epilogue epilogue;
  if (FindEpilogue(row, tile.channel, &epilogue)) {
    return functions_.requantize(tile, epilogue);
  }
  functions_.run(stages_.data(), static_cast<int>(stages_.size()), tile);
  output_.Store(tile, row);
}

int32_t* Int8KeepingSink::PlaceOf(int64_t row, int rows, int64_t column,
                                  int32_t*) const {
  return accumulators_ + row * gemm_.weights.padded_columns() + column * rows;
}

void Int8KeepingSink::Replay(ThreadPool* pool, const Int8Sink& sink) const {
  const int64_t run = gemm_.run(), tile_rows = gemm_.tile_rows();
  const int64_t tiles = (run + tile_rows - 1) / tile_rows;
  const int64_t columns = gemm_.weights.padded_columns();
  const int nr = gemm_.weights.layout().nr;
  constexpr int64_t kAccumulatorsPerRange = 16384;
  pool->ParallelFor(
      gemm_.input.rows() / run * tiles,
      kAccumulatorsPerRange / (tile_rows * columns),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t in_run = i % tiles * tile_rows;
          const int64_t row = i / tiles * run + in_run;
          const int count = static_cast<int>(std::min(tile_rows, run - in_run));
          for (int64_t column = 0; column < columns; column += nr) {
            sink.Take({PlaceOf(row, count, column, nullptr), count, nr, column},
                      row);
          }
        }
      });
}

}  // namespace optfarm::runtime
