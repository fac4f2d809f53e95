// Depthwise convolution of codes: 32 channels of an output line at a time.

#include <algorithm>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/operators/int8_product.h"
#include "engine/runtime/ukernels/int8/int8_depthwise.h"

namespace optfarm::runtime {
namespace {

// Multiplications that are worth another thread.
constexpr int64_t kWorkPerRange = 1 << 14;
// Of a line that is finished in the registers: so many that a tile's beginning
// is short beside it, so few that what is laid out stays in the level-1 cache.
constexpr int64_t kMostPixels = 56;
// The layer before shares out its columns, not its rows, where its weights are
// so many times its image (int8_product.cc); channels for pixels, where its
// depth is about this image's.
constexpr int64_t kChannelsPerPixel = 4;

// How lines and blocks of channels are shared out. Where lines may be made in
// pairs an item has two, and an image's last one where their number is odd.
class Items {
 public:
  Items(const Int8Product& product, bool in_pairs)
      : blocks_(product.weights.blocks()),
        image_lines_(product.image.window.y.out),
        lines_(in_pairs ? 2 : 1),
        image_items_((image_lines_ + lines_ - 1) / lines_),
        rows_(product.image.batch * image_items_),
        by_block_(IsByBlock(product)) {}

  struct Item {
    // Counted over batch and height.
    int64_t line = 0;
    int lines = 0;
    int64_t block = 0;
  };
  int64_t count() const { return rows_ * blocks_; }
  int64_t lines() const { return lines_; }

  Item At(int64_t i) const {
    const int64_t inner = by_block_ ? rows_ : blocks_;
    const int64_t row = by_block_ ? i % inner : i / inner;
    const int64_t line = row % image_items_ * lines_;
    return {.line = row / image_items_ * image_lines_ + line,
            .lines = static_cast<int>(std::min(lines_, image_lines_ - line)),
            .block = by_block_ ? i / inner : i % inner};
  }

 private:
  // So that threads find the channels that they made themselves.
  static bool IsByBlock(const Int8Product& product) {
    const WindowAxis &y = product.image.window.y, &x = product.image.window.x;
    return product.image.channels / kChannelsPerPixel >
           product.image.batch * y.in * x.in;
  }

  int64_t blocks_, image_lines_, lines_, image_items_, rows_;
  bool by_block_;
};

// Whether two lines' windows lie one line of the image apart. Blocks whose
// tiles make no pairs (Int8DepthwiseTile::IsPaired) take one line after the
// other.
bool HasPairs(const Int8Product& product) {
  const WindowAxis& y = product.image.window.y;
  return product.functions.depthwise_pairs && y.stride == 1 && y.dilation == 1;
}

// What one thread does.
class Lines {
 public:
  Lines(const Int8Product& product, const int32_t* starts, const Int8Sink& sink)
      : product_(product),
        starts_(starts),
        sink_(sink),
        lines_(product.image.window.y.size + 1) {
    const WindowAxis &y = product.image.window.y, &x = product.image.window.x;
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
    tile_.scratch = near_;
    const int64_t bytes = ScratchBytesFor(product.image.window);
    if (bytes > int64_t{sizeof(near_)}) {
      tile_.scratch = far_.emplace(bytes).data();
    }
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  void Run(const Items::Item& item, Int8Extremes* extremes) {
    const int64_t channel = item.block * kInt8Columns;
    tile_.channels = static_cast<int>(
        std::min<int64_t>(kInt8Columns, product_.weights.columns() - channel));
    tile_.weights = product_.weights.block(item.block);
    tile_.sets = product_.weights.sets(item.block);
    tile_.start = starts_ + channel;
    if (item.lines == 2 && extremes == nullptr && tile_.IsPaired() &&
        FinishBlock(item.line, channel, 2)) {
      return;
    }
    for (int64_t line = item.line; line < item.line + item.lines; ++line) {
      RunBlock(line, channel, extremes);
    }
  }

 private:
  static int64_t ScratchBytesFor(const Window& window) {
    const WindowAxis &y = window.y, &x = window.x;
    const int64_t groups = (y.size + kInt8Group - 1) / kInt8Group;
    const int64_t pixels = std::max(LinePart(x.out), Int8TileRows(x.out));
    const int64_t columns =
        (pixels - 1) * x.stride + (x.size - 1) * x.dilation + 1;
    return columns * groups * kInt8ColumnBytes;
  }

  void PointAt(int64_t line, int64_t lines, int64_t channel) {
    const Int8Image& image = product_.image;
    const WindowAxis &y = image.window.y, &x = image.window.x;
    const int64_t line_bytes = x.in * image.channels;
    const uint8_t* codes =
        image.codes + line / y.out * y.in * line_bytes + channel;
    const int64_t first = line % y.out * y.stride - y.pad_before;
    for (int64_t fy = 0; fy < y.size + lines - 1; ++fy) {
      const int64_t in_y = first + fy * y.dilation;
      lines_[fy] =
          in_y >= 0 && in_y < y.in ? codes + in_y * line_bytes : nullptr;
    }
  }

  static int64_t LinePart(int64_t line) {
    const int64_t parts = (line + kMostPixels - 1) / kMostPixels;
    return (line + parts - 1) / parts;
  }

  // One line or a pair. False where sums are to be looked at.
  bool FinishBlock(int64_t line, int64_t channel, int lines) {
    const WindowAxis& x = product_.image.window.x;
    Int8Finish finish;
    const int64_t row = line * x.out;
    if (!product_.functions.depthwise_finishes ||
        !sink_.FindFinish(row, channel, &finish)) {
      return false;
    }
    PointAt(line, lines, channel);
    tile_.finish = &finish;
    if (lines == 2) tile_.below = x.out * finish.stride;
    const int64_t part = LinePart(x.out);
    for (int64_t pixel = 0; pixel < x.out; pixel += part) {
      const int count = static_cast<int>(std::min(part, x.out - pixel));
      tile_.column = pixel * x.stride - x.pad_before;
      product_.functions.depthwise(tile_, count);
      finish.out += count * finish.stride;
    }
    tile_.finish = nullptr;
    tile_.below = 0;
    return true;
  }

  void RunBlock(int64_t line, int64_t channel, Int8Extremes* extremes) {
    if (extremes == nullptr && FinishBlock(line, channel, 1)) return;
    PointAt(line, 1, channel);
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
  const int32_t* starts_;
  const Int8Sink& sink_;
  absl::InlinedVector<const uint8_t*, 8> lines_;
  // What is laid out, on the thread's own stack where there is room: pieces of
  // the run's working memory go from thread to thread.
  alignas(64) uint8_t near_[16384];
  std::optional<Scratch<uint8_t>> far_;
  Int8DepthwiseTile tile_;
};

}  // namespace

void MultiplyDepthwise(const Int8Product& product, ThreadPool* pool,
                       const Int8Sink& sink, Int8Extremes* extremes) {
  const Int8Starts starts(product);
  const Items items(product, extremes == nullptr && HasPairs(product));
  const int64_t work = product.image.window.x.out * product.depth() *
                       kInt8Columns * items.lines();
  ForInt8Ranges(pool, items.count(), kWorkPerRange / work,
                product.weights.blocks() * kInt8Columns, extremes,
                [&](int64_t begin, int64_t end, Int8Extremes* part) {
                  Lines lines(product, starts.data(), sink);
                  for (int64_t i = begin; i < end; ++i) {
                    lines.Run(items.At(i), part);
                  }
                });
}

}  // namespace optfarm::runtime
