// Drives the int8 depthwise micro-kernels: the channels of a panel in an output
// row at a time.

#include "engine/runtime/ukernels/int8/int8_depthwise.h"

#include <algorithm>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/operators/int8_gemm.h"

namespace optfarm::runtime {
namespace {

// Multiplications that are worth another thread.
constexpr int64_t kWorkPerRange = 1 << 14;
// Of a row that is requantized in the registers: so many that a tile's
// beginning is short beside it, so few that interleaved columns stay in the
// level-1 cache.
constexpr int64_t kMostPixels = 56;
// The layer before shares out its columns, not its rows, where its weights are
// so many times its image (int8_tiled_gemm.cc); channels for pixels, where its
// depth is about this image's.
constexpr int64_t kChannelsPerPixel = 4;

// How output rows and panels of channels are shared out. Where rows may be made
// in pairs an item has two, and an image's last one where their number is odd.
class Items {
 public:
  Items(const Int8Gemm& gemm, bool in_pairs)
      : panels_(gemm.weights.panels()),
        image_rows_(gemm.input.window.y.out),
        rows_(in_pairs ? 2 : 1),
        image_items_((image_rows_ + rows_ - 1) / rows_),
        row_items_(gemm.input.batch * image_items_),
        by_panel_(IsByPanel(gemm)) {}

  struct Item {
    // Counted over batch and height.
    int64_t row = 0;
    int rows = 0;
    int64_t panel = 0;
  };
  int64_t count() const { return row_items_ * panels_; }
  int64_t rows() const { return rows_; }

  Item At(int64_t i) const {
    const int64_t inner = by_panel_ ? row_items_ : panels_;
    const int64_t place = by_panel_ ? i % inner : i / inner;
    const int64_t row = place % image_items_ * rows_;
    return {.row = place / image_items_ * image_rows_ + row,
            .rows = static_cast<int>(std::min(rows_, image_rows_ - row)),
            .panel = by_panel_ ? i / inner : i % inner};
  }

 private:
  // So that threads find the channels that they made themselves.
  static bool IsByPanel(const Int8Gemm& gemm) {
    const WindowAxis &y = gemm.input.window.y, &x = gemm.input.window.x;
    return gemm.input.channels / kChannelsPerPixel >
           gemm.input.batch * y.in * x.in;
  }

  int64_t panels_, image_rows_, rows_, image_items_, row_items_;
  bool by_panel_;
};

// Whether the windows of two output rows lie one row of the input apart. Panels
// whose tiles make no pairs (Int8DepthwiseTile::IsPaired) take one row after
// the other.
bool HasPairs(const Int8Gemm& gemm) {
  const WindowAxis& y = gemm.input.window.y;
  return gemm.kernels.depthwise->Can(kPairsRows) && y.stride == 1 &&
         y.dilation == 1;
}

// What one thread does.
class Rows {
 public:
  Rows(const Int8Gemm& gemm, const int32_t* init, const Int8Sink& sink)
      : gemm_(gemm),
        panel_(gemm.weights.layout()),
        init_(init),
        sink_(sink),
        rows_(gemm.input.window.y.size + 1) {
    const WindowAxis &y = gemm.input.window.y, &x = gemm.input.window.x;
    tile_.rows = rows_.data();
    tile_.end = gemm.input.values +
                gemm.input.batch * y.in * x.in * gemm.input.channels;
    tile_.taps_y = static_cast<int>(y.size);
    tile_.taps_x = static_cast<int>(x.size);
    tile_.width = x.in;
    tile_.pixel_bytes = gemm.input.channels;
    tile_.stride = x.stride;
    tile_.dilation = x.dilation;
    tile_.padding = static_cast<uint8_t>(gemm.input.zero_point);
    tile_.scratch = near_;
    const int64_t bytes = ScratchBytesFor(gemm.input.window);
    if (bytes > int64_t{sizeof(near_)}) {
      tile_.scratch = far_.emplace(bytes).data();
    }
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  void Run(const Items::Item& item, Int8Extremes* extremes) {
    const int64_t channel = item.panel * panel_.nr;
    tile_.channels = static_cast<int>(
        std::min<int64_t>(panel_.nr, gemm_.weights.columns() - channel));
    tile_.weights = gemm_.weights.panel(item.panel);
    tile_.sets = gemm_.weights.sets(item.panel);
    tile_.init = init_ + channel;
    if (item.rows == 2 && extremes == nullptr && tile_.IsPaired(panel_.kr) &&
        RequantizeRows(item.row, channel, 2)) {
      return;
    }
    for (int64_t row = item.row; row < item.row + item.rows; ++row) {
      RunRow(row, channel, extremes);
    }
  }

 private:
  int64_t ScratchBytesFor(const Window& window) const {
    const WindowAxis &y = window.y, &x = window.x;
    const int64_t groups = (y.size + panel_.kr - 1) / panel_.kr;
    const int64_t pixels = std::max(RowPart(x.out), gemm_.tile_rows());
    const int64_t columns =
        (pixels - 1) * x.stride + (x.size - 1) * x.dilation + 1;
    return columns * groups * panel_.nr * panel_.kr;
  }

  void FillIndirection(int64_t row, int64_t rows, int64_t channel) {
    const Int8Activations& image = gemm_.input;
    const WindowAxis &y = image.window.y, &x = image.window.x;
    const int64_t row_bytes = x.in * image.channels;
    const uint8_t* values =
        image.values + row / y.out * y.in * row_bytes + channel;
    const int64_t first = row % y.out * y.stride - y.pad_before;
    for (int64_t fy = 0; fy < y.size + rows - 1; ++fy) {
      const int64_t in_y = first + fy * y.dilation;
      rows_[fy] =
          in_y >= 0 && in_y < y.in ? values + in_y * row_bytes : nullptr;
    }
  }

  static int64_t RowPart(int64_t pixels) {
    const int64_t parts = (pixels + kMostPixels - 1) / kMostPixels;
    return (pixels + parts - 1) / parts;
  }

  // One row or a pair. False where the accumulators are to be looked at.
  bool RequantizeRows(int64_t row, int64_t channel, int rows) {
    const WindowAxis& x = gemm_.input.window.x;
    Int8Epilogue epilogue;
    const int64_t first = row * x.out;
    if (!gemm_.kernels.depthwise->Can(kRequantizes) ||
        !sink_.FindEpilogue(first, channel, &epilogue)) {
      return false;
    }
    FillIndirection(row, rows, channel);
    tile_.epilogue = &epilogue;
    if (rows == 2) tile_.below = x.out * epilogue.stride;
    const int64_t part = RowPart(x.out);
    for (int64_t pixel = 0; pixel < x.out; pixel += part) {
      const int count = static_cast<int>(std::min(part, x.out - pixel));
      tile_.column = pixel * x.stride - x.pad_before;
      gemm_.kernels.depthwise->run.int8_depthwise(tile_, count);
      epilogue.out += count * epilogue.stride;
    }
    tile_.epilogue = nullptr;
    tile_.below = 0;
    return true;
  }

  void RunRow(int64_t row, int64_t channel, Int8Extremes* extremes) {
    if (extremes == nullptr && RequantizeRows(row, channel, 1)) return;
    FillIndirection(row, 1, channel);
    const WindowAxis& x = gemm_.input.window.x;
    const int64_t tile_rows = gemm_.tile_rows();
    alignas(64) int32_t scratch[kMaxInt8Mr * kMaxInt8Nr];
    for (int64_t pixel = 0; pixel < x.out; pixel += tile_rows) {
      const int count = static_cast<int>(std::min(tile_rows, x.out - pixel));
      const int64_t first = row * x.out + pixel;
      tile_.column = pixel * x.stride - x.pad_before;
      tile_.out = sink_.PlaceOf(first, count, channel, scratch);
      gemm_.kernels.depthwise->run.int8_depthwise(tile_, count);
      const Int8Accumulators accumulators = {tile_.out, count, panel_.nr,
                                             channel};
      if (extremes != nullptr) {
        gemm_.kernels.stages->find_range(accumulators,
                                         extremes->low.data() + channel,
                                         extremes->high.data() + channel);
      }
      sink_.Take(accumulators, first);
    }
  }

  const Int8Gemm& gemm_;
  const PanelLayout panel_;
  const int32_t* init_;
  const Int8Sink& sink_;
  absl::InlinedVector<const uint8_t*, 8> rows_;
  // Interleaved columns, on the thread's own stack where there is room: pieces
  // of the run's working memory go from thread to thread.
  alignas(64) uint8_t near_[16384];
  std::optional<Scratch<uint8_t>> far_;
  Int8DepthwiseTile tile_;
};

}  // namespace

void MultiplyDepthwise(const Int8Gemm& gemm, ThreadPool* pool,
                       const Int8Sink& sink, Int8Extremes* extremes) {
  const AccumulatorInit init(gemm);
  const Items items(gemm, extremes == nullptr && HasPairs(gemm));
  const int64_t work = gemm.input.window.x.out * gemm.depth() *
                       gemm.weights.layout().nr * items.rows();
  ForInt8Ranges(pool, items.count(), kWorkPerRange / work,
                gemm.weights.padded_columns(), extremes,
                [&](int64_t begin, int64_t end, Int8Extremes* part) {
                  Rows rows(gemm, init.data(), sink);
                  for (int64_t i = begin; i < end; ++i) {
                    rows.Run(items.At(i), part);
                  }
                });
}

}  // namespace optfarm::runtime
