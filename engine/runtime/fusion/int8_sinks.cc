#include "engine/runtime/fusion/int8_sinks.h"

#include <algorithm>
#include <cstring>

#include "engine/runtime/ukernels/int8/int8_tile.h"

namespace optfarm::runtime {
namespace {

constexpr int64_t kWide = sizeof(int32_t);

}  // namespace

std::optional<Int8Finish> FindInt8Finish(const std::vector<Int8Stage>& stages) {
  if (stages.size() != 1 || stages[0].kind != Int8StageKind::kNarrow) {
    return std::nullopt;
  }
  const Int8Stage& stage = stages[0];
  Int8Finish finish;
  finish.factors = stage.floats;
  finish.is_small = stage.is_small;
  finish.most = stage.summand;
  finish.zero = stage.low;
  finish.least = stage.low + static_cast<int32_t>(stage.factor);
  if (finish.zero < 0 || finish.zero > 255 || finish.least < 0 ||
      finish.most != static_cast<float>(255 - finish.zero)) {
    return std::nullopt;
  }
  return finish;
}

Int8Output::Int8Output(int64_t columns, const Int8StageFunctions& functions,
                       CodePlace codes)
    : is_codes_(true),
      columns_(columns),
      stride_(codes.pixel_stride),
      functions_(functions),
      out_(codes.data) {}

Int8Output::Int8Output(int64_t columns, const Int8StageFunctions& functions,
                       Tensor* wide)
    : is_codes_(false),
      columns_(columns),
      stride_(columns),
      functions_(functions),
      out_(static_cast<uint8_t*>(wide->raw())) {}

void Int8Output::Point(int64_t row, int64_t column, Int8Finish* finish) const {
  finish->factors += column;
  finish->columns = Existing(column);
  finish->stride = stride_;
  finish->out = out_ + row * stride_ + column;
}

void Int8Output::Store(const Int8Numbers& numbers, int64_t row) const {
  const int count = Existing(numbers.channel);
  const int64_t place = row * stride_ + numbers.channel;
  if (is_codes_) {
    functions_.store_codes(numbers, count, stride_, out_ + place);
    return;
  }
  for (int r = 0; r < numbers.rows; ++r) {
    std::memcpy(out_ + (place + r * stride_) * kWide,
                numbers.data + r * kInt8Columns,
                static_cast<size_t>(count) * kWide);
  }
}

int Int8Output::Existing(int64_t column) const {
  return static_cast<int>(std::min<int64_t>(kInt8Columns, columns_ - column));
}

Int8StagesSink::Int8StagesSink(const std::vector<Int8Stage>& stages,
                               const Int8StageFunctions& functions,
                               const Int8Output& output)
    : stages_(stages),
      functions_(functions),
      output_(output),
      finish_(FindInt8Finish(stages)) {}

bool Int8StagesSink::FindFinish(int64_t row, int64_t column,
                                Int8Finish* finish) const {
  if (!finish_) return false;
  *finish = *finish_;
  output_.Point(row, column, finish);
  return true;
}

void Int8StagesSink::Take(const Int8Numbers& numbers, int64_t row) const {
  Int8Finish finish;
  if (FindFinish(row, numbers.channel, &finish)) {
    return functions_.finish(numbers, finish);
  }
  functions_.run(stages_.data(), static_cast<int>(stages_.size()), numbers);
  output_.Store(numbers, row);
}

int32_t* Int8KeepingSink::PlaceOf(int64_t row, int rows, int64_t column,
                                  int32_t*) const {
  return numbers_ + row * blocks_ * kInt8Columns + column * rows;
}

void Int8KeepingSink::Replay(int64_t rows, int64_t line, ThreadPool* pool,
                             const Int8Sink& sink) const {
  const int64_t tile_rows = Int8TileRows(line);
  const int64_t tiles = (line + tile_rows - 1) / tile_rows;
  constexpr int64_t kNumbersPerRange = 16384;
  const int64_t grain = kNumbersPerRange / (tile_rows * blocks_ * kInt8Columns);
  pool->ParallelFor(
      rows / line * tiles, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t in_line = i % tiles * tile_rows;
          const int64_t row = i / tiles * line + in_line;
          const int count =
              static_cast<int>(std::min(tile_rows, line - in_line));
          for (int64_t block = 0; block < blocks_; ++block) {
            const int64_t column = block * kInt8Columns;
            sink.Take({PlaceOf(row, count, column, nullptr), count, column},
                      row);
          }
        }
      });
}

}  // namespace optfarm::runtime
