// Depthwise convolution of codes: 32 channels of an output line at a time.

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/runtime/fast/int8_depthwise.h"
#include "engine/runtime/fast/int8_product.h"

namespace optfarm::runtime {
namespace {

// Multiplications that are worth another thread.
constexpr int64_t kWorkPerRange = 1 << 16;
// Of a line that is finished in the registers: so many that a tile's beginning
// is short beside it, so few that what is laid out stays in the level-1 cache.
constexpr int64_t kMostPixels = 56;

// What one thread does.
class Lines {
 public:
  Lines(const Int8Product& product, const std::vector<int32_t>& starts,
        const Int8Sink& sink)
      : product_(product), starts_(starts), sink_(sink) {
    const WindowAxis &y = product.image.window.y, &x = product.image.window.x;
    const int64_t groups = (y.size + kInt8Group - 1) / kInt8Group;
    const int64_t pixels = std::max(LinePart(x.out), Int8TileRows(x.out));
    const int64_t columns =
        (pixels - 1) * x.stride + (x.size - 1) * x.dilation + 1;
    lines_.resize(static_cast<size_t>(y.size));
    scratch_.resize(static_cast<size_t>(columns * groups * kInt8ColumnBytes) +
                    kAlignment);
    tile_.lines = lines_.data();
    tile_.end = product.image.codes +
                product.image.batch * y.in * x.in * product.image.channels;
    tile_.taps_y = static_cast<int>(y.size);
    tile_.taps_x = static_cast<int>(x.size);
    tile_.width = x.in;
    tile_.pixel_bytes = product.image.channels;
    tile_.stride = x.stride;
    tile_.dilation = x.dilation;
    tile_.padding = static_cast<uint8_t>(product.image.zero);
    void* aligned = scratch_.data();
    size_t space = scratch_.size();
    tile_.scratch = static_cast<uint8_t*>(
        std::align(kAlignment, scratch_.size() - kAlignment, aligned, space));
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // Block `block` of output line `line`, counted over batch and height.
  void Run(int64_t line, int64_t block, Int8Extremes* extremes) {
    const int64_t channel = block * kInt8Columns;
    PointAt(line, channel);
    tile_.channels = static_cast<int>(
        std::min<int64_t>(kInt8Columns, product_.weights.columns() - channel));
    tile_.weights = product_.weights.block(block);
    tile_.sets = product_.weights.sets(block);
    tile_.start = starts_.data() + channel;
    RunBlock(line, channel, extremes);
  }

 private:
  static constexpr size_t kAlignment = 64;

  void PointAt(int64_t line, int64_t channel) {
    const Int8Image& image = product_.image;
    const WindowAxis &y = image.window.y, &x = image.window.x;
    const int64_t line_bytes = x.in * image.channels;
    const uint8_t* codes =
        image.codes + line / y.out * y.in * line_bytes + channel;
    const int64_t first = line % y.out * y.stride - y.pad_before;
    for (int64_t fy = 0; fy < y.size; ++fy) {
      const int64_t in_y = first + fy * y.dilation;
      lines_[fy] =
          in_y >= 0 && in_y < y.in ? codes + in_y * line_bytes : nullptr;
    }
  }

  static int64_t LinePart(int64_t line) {
    const int64_t parts = (line + kMostPixels - 1) / kMostPixels;
    return (line + parts - 1) / parts;
  }

  // False where sums are to be looked at.
  bool FinishBlock(int64_t line, int64_t channel) {
    const WindowAxis& x = product_.image.window.x;
    Int8Finish finish;
    const int64_t row = line * x.out;
    if (!product_.functions.depthwise_finishes ||
        !sink_.FindFinish(row, channel, &finish)) {
      return false;
    }
    tile_.finish = &finish;
    const int64_t part = LinePart(x.out);
    for (int64_t pixel = 0; pixel < x.out; pixel += part) {
      const int count = static_cast<int>(std::min(part, x.out - pixel));
      tile_.column = pixel * x.stride - x.pad_before;
      product_.functions.depthwise(tile_, count);
      finish.out += count * finish.stride;
    }
    tile_.finish = nullptr;
    return true;
  }

  void RunBlock(int64_t line, int64_t channel, Int8Extremes* extremes) {
    if (extremes == nullptr && FinishBlock(line, channel)) return;
    const WindowAxis& x = product_.image.window.x;
    const int64_t tile_rows = Int8TileRows(x.out);
    alignas(64) int32_t scratch[kInt8Rows * kInt8Columns];
    for (int64_t pixel = 0; pixel < x.out; pixel += tile_rows) {
      const int count = static_cast<int>(std::min(tile_rows, x.out - pixel));
      const int64_t row = line * x.out + pixel;
      tile_.column = pixel * x.stride - x.pad_before;
      tile_.out = sink_.PlaceOf(row, count, channel, scratch);
      product_.functions.depthwise(tile_, count);
      const Int8Numbers numbers = {tile_.out, count, channel};
      if (extremes != nullptr) {
        product_.functions.stages->find_range(numbers,
                                              extremes->low.data() + channel,
                                              extremes->high.data() + channel);
      }
      sink_.Take(numbers, row);
    }
  }

  const Int8Product& product_;
  const std::vector<int32_t>& starts_;
  const Int8Sink& sink_;
  std::vector<const uint8_t*> lines_;
  std::vector<uint8_t> scratch_;
  Int8DepthwiseTile tile_;
};

}  // namespace

void MultiplyDepthwise(const Int8Product& product, ThreadPool* pool,
                       const Int8Sink& sink, Int8Extremes* extremes) {
  const std::vector<int32_t> starts = Int8Starts(product);
  const Int8Image& image = product.image;
  const int64_t blocks = product.weights.blocks();
  const int64_t work = image.window.x.out * product.depth() * kInt8Columns;
  ForInt8Ranges(pool, image.batch * image.window.y.out * blocks,
                kWorkPerRange / work, blocks * kInt8Columns, extremes,
                [&](int64_t begin, int64_t end, Int8Extremes* part) {
                  Lines lines(product, starts, sink);
                  for (int64_t i = begin; i < end; ++i) {
                    lines.Run(i / blocks, i % blocks, part);
                  }
                });
}

}  // namespace optfarm::runtime
