#include "engine/runtime/fast/int8_product.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/synchronization/mutex.h"

namespace optfarm::runtime {
namespace {

// Weights that stay in a core's second cache while all rows pass them.
// UNITS: bytes.
constexpr int64_t kGroupBytes = 512 * 1024;
// Multiplications that are worth another thread.
constexpr int64_t kWorkPerRange = 1 << 19;

// How the work is cut: groups of blocks of columns, and within a group tiles of
// rows, as equal as can be.
struct Cut {
  int64_t tile_rows = 1;
  int64_t tiles = 1;
  int64_t group_blocks = 1;
  int64_t groups = 1;
};

Cut PlanCut(const Int8Product& product, int threads) {
  const int64_t rows = product.image.rows();
  const Int8Weights& weights = product.weights;
  Cut cut;
  cut.tile_rows = Int8TileRows(rows);
  cut.tiles = (rows + cut.tile_rows - 1) / cut.tile_rows;
  const int64_t block_bytes = weights.padded_depth() * kInt8Columns;
  cut.group_blocks =
      std::clamp<int64_t>(kGroupBytes / block_bytes, 1, weights.blocks());
  if (threads > 1 && cut.tiles < threads) {
    const int64_t wanted = 4 * int64_t{threads} / cut.tiles;
    cut.group_blocks = std::min(
        cut.group_blocks,
        std::max<int64_t>(1, (weights.blocks() + wanted - 1) / wanted));
  }
  cut.groups = (weights.blocks() + cut.group_blocks - 1) / cut.group_blocks;
  return cut;
}

// The rows of one tile as the tile functions read them. Each thread has one.
class Rows {
 public:
  explicit Rows(const Int8Product& product)
      : image_(product.image),
        sum_codes_(product.functions.stages->sum_codes),
        shifted_zero_(product.weights_zero - kInt8Shift),
        padded_depth_(product.weights.padded_depth()),
        is_matrix_(IsMatrix(product.image)),
        is_direct_(product.image.channels % kInt8Group == 0) {
    const int64_t taps = is_direct_ ? Taps() : 1;
    pixels_.resize(static_cast<size_t>(taps * kInt8Rows));
    if (is_direct_) {
      padding_.assign(static_cast<size_t>(image_.channels), PaddingCode());
    } else {
      patches_.assign(static_cast<size_t>(padded_depth_ * kInt8Rows), 0);
    }
  }

  // Makes rows [first, first + rows) those of the tile.
  void Fill(int64_t first, int rows) {
    for (int r = 0; r < rows; ++r) {
      const int64_t row = first + r;
      if (!is_direct_) {
        uint8_t* patch = patches_.data() + r * padded_depth_;
        Gather(row, patch);
        pixels_[r] = patch;
      } else if (is_matrix_) {
        pixels_[r] = image_.codes + row * image_.channels;
      } else {
        Point(row, r, rows);
      }
    }
    for (int r = 0; r < rows; ++r) row_start_[r] = RowStart(r, rows);
  }

  void Describe(Int8Tile* tile) const {
    tile->pixels = pixels_.data();
    tile->taps = is_direct_ ? Taps() : 1;
    tile->depth = is_direct_ ? image_.channels : padded_depth_;
    tile->row_start = row_start_;
  }

 private:
  // Rows lie one behind the other.
  static bool IsMatrix(const Int8Image& image) {
    const WindowAxis &y = image.window.y, &x = image.window.x;
    return y.size == 1 && x.size == 1 && y.stride == 1 && x.stride == 1 &&
           y.out == y.in && x.out == x.in;
  }
  int64_t Taps() const { return image_.window.y.size * image_.window.x.size; }
  uint8_t PaddingCode() const {
    return static_cast<uint8_t>(std::clamp(image_.zero, 0, 255));
  }

  // The top left corner of the window of an output pixel.
  struct Corner {
    const uint8_t* image = nullptr;
    int64_t y = 0;
    int64_t x = 0;
  };
  Corner CornerOf(int64_t row) const {
    const WindowAxis &y = image_.window.y, &x = image_.window.x;
    const int64_t batch = row / (y.out * x.out);
    return {image_.codes + batch * y.in * x.in * image_.channels,
            row / x.out % y.out * y.stride - y.pad_before,
            row % x.out * x.stride - x.pad_before};
  }

  // The pixels of row `r` of the tile where they lie.
  void Point(int64_t row, int r, int rows) {
    const WindowAxis &y = image_.window.y, &x = image_.window.x;
    const Corner corner = CornerOf(row);
    const uint8_t** out = pixels_.data() + r;
    for (int64_t fy = 0; fy < y.size; ++fy) {
      const int64_t in_y = corner.y + fy * y.dilation;
      const bool is_row = in_y >= 0 && in_y < y.in;
      for (int64_t fx = 0; fx < x.size; ++fx) {
        const int64_t in_x = corner.x + fx * x.dilation;
        *out = is_row && in_x >= 0 && in_x < x.in
                   ? corner.image + (in_y * x.in + in_x) * image_.channels
                   : padding_.data();
        out += rows;
      }
    }
  }

  // Copies what the window covers.
  void Gather(int64_t row, uint8_t* patch) const {
    const WindowAxis &y = image_.window.y, &x = image_.window.x;
    const Corner corner = CornerOf(row);
    const auto channels = static_cast<size_t>(image_.channels);
    // Pixels of one line lie together.
    const bool is_whole =
        x.dilation == 1 && corner.x >= 0 && corner.x + x.size <= x.in;
    for (int64_t fy = 0; fy < y.size; ++fy) {
      const int64_t in_y = corner.y + fy * y.dilation;
      const bool is_row = in_y >= 0 && in_y < y.in;
      const uint8_t* line = corner.image + in_y * x.in * image_.channels;
      if (is_row && is_whole) {
        std::memcpy(patch, line + corner.x * image_.channels,
                    channels * static_cast<size_t>(x.size));
        patch += channels * static_cast<size_t>(x.size);
        continue;
      }
      for (int64_t fx = 0; fx < x.size; ++fx, patch += channels) {
        const int64_t in_x = corner.x + fx * x.dilation;
        if (is_row && in_x >= 0 && in_x < x.in) {
          std::memcpy(patch, line + in_x * image_.channels, channels);
        } else {
          std::memset(patch, PaddingCode(), channels);
        }
      }
    }
  }

  // What the weights' zero code takes off all sums of a row.
  int32_t RowStart(int r, int rows) const {
    if (shifted_zero_ == 0) return 0;
    uint32_t sum = 0;
    if (is_direct_) {
      for (int64_t tap = 0; tap < Taps(); ++tap) {
        sum += static_cast<uint32_t>(
            sum_codes_(pixels_[tap * rows + r], image_.channels));
      }
    } else {
      sum = static_cast<uint32_t>(sum_codes_(pixels_[r], image_.depth()));
    }
    return static_cast<int32_t>(-static_cast<uint32_t>(shifted_zero_) * sum);
  }

  const Int8Image& image_;
  int32_t (*sum_codes_)(const uint8_t* codes, int64_t count);
  int32_t shifted_zero_;
  int64_t padded_depth_;
  bool is_matrix_;
  bool is_direct_;
  std::vector<const uint8_t*> pixels_;
  std::vector<uint8_t> padding_;
  std::vector<uint8_t> patches_;
  int32_t row_start_[kInt8Rows] = {};
};

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

// What one thread does: items [begin, end) of the cut.
struct Multiplication {
  const Int8Product& product;
  const Cut& cut;
  const std::vector<int32_t>& starts;
  const Int8Sink& sink;

  // `extremes` may be nullptr.
  void Run(int64_t begin, int64_t end, Int8Extremes* extremes) const;
};

void Multiplication::Run(int64_t begin, int64_t end,
                         Int8Extremes* extremes) const {
  const Int8Weights& weights = product.weights;
  const int64_t rows = product.image.rows();
  alignas(64) int32_t scratch[kInt8Rows * kInt8Columns];
  Rows source(product);
  Int8Tile tile;
  for (int64_t item = begin; item < end; ++item) {
    const int64_t row = item % cut.tiles * cut.tile_rows;
    const int count = static_cast<int>(std::min(cut.tile_rows, rows - row));
    source.Fill(row, count);
    source.Describe(&tile);
    const int64_t first = item / cut.tiles * cut.group_blocks;
    const int64_t last = std::min(first + cut.group_blocks, weights.blocks());
    for (int64_t block = first; block < last; ++block) {
      const int64_t column = block * kInt8Columns;
      tile.weights = weights.block(block);
      tile.start = starts.data() + column;
      tile.out = sink.PlaceOf(row, count, column, scratch);
      product.functions.tile(tile, count);
      const Int8Numbers numbers = {tile.out, count, column};
      if (extremes != nullptr) {
        product.functions.stages->find_range(numbers,
                                             extremes->low.data() + column,
                                             extremes->high.data() + column);
      }
      sink.Take(numbers, row);
    }
  }
}

}  // namespace

int64_t Int8TileRows(int64_t line) {
  const int64_t tiles = (line + kInt8Rows - 1) / kInt8Rows;
  return (line + tiles - 1) / tiles;
}

Window Int8MatrixWindow() {
  Window window;
  window.y = {.in = 1, .size = 1, .out = 1};
  window.x = {.in = 1, .size = 1, .out = 1};
  return window;
}

std::vector<int32_t> Int8Starts(const Int8Product& product) {
  const Int8Weights& weights = product.weights;
  const auto zero = static_cast<uint32_t>(product.image.zero);
  const auto shifted_zero =
      static_cast<uint32_t>(product.weights_zero - kInt8Shift);
  const uint32_t both =
      static_cast<uint32_t>(product.depth()) * zero * shifted_zero;
  std::vector<int32_t> starts(
      static_cast<size_t>(weights.blocks() * kInt8Columns));
  const int32_t* sums = weights.sums();
  for (int64_t c = 0; c < weights.columns(); ++c) {
    uint32_t start = both - zero * static_cast<uint32_t>(sums[c]);
    if (product.bias != nullptr) {
      start += static_cast<uint32_t>(product.bias[c]);
    }
    starts[c] = static_cast<int32_t>(start);
  }
  return starts;
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

void Multiply(const Int8Product& product, ThreadPool* pool,
              const Int8Sink& sink, Int8Extremes* extremes) {
  if (product.is_depthwise) {
    return MultiplyDepthwise(product, pool, sink, extremes);
  }
  const Cut cut = PlanCut(product, pool->threads());
  const std::vector<int32_t> starts = Int8Starts(product);
  const Multiplication multiplication = {product, cut, starts, sink};
  const int64_t work = cut.tile_rows * product.weights.padded_depth() *
                       cut.group_blocks * kInt8Columns;
  ForInt8Ranges(pool, cut.tiles * cut.groups, kWorkPerRange / work,
                product.weights.blocks() * kInt8Columns, extremes,
                [&](int64_t begin, int64_t end, Int8Extremes* part) {
                  multiplication.Run(begin, end, part);
                });
}

}  // namespace optfarm::runtime
