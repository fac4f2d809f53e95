#include "engine/runtime/operators/float_panels.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/operators/parts.h"

namespace optfarm::runtime {
namespace {

// UNITS: bytes of pointers of a block.
constexpr int64_t kPointerBytes = 64 * 1024;
constexpr int64_t kMostTiles = 64;
// UNITS: bytes of scratch of a block.
constexpr int64_t kScratchBytes = 128 * 1024;
// UNITS: multiply-adds worth handing to another thread.
constexpr int64_t kGrain = 64 * 1024;

constexpr int64_t kFewPointers = 128;

// Room for pointers: a few need no working memory.
class Pointers {
 public:
  explicit Pointers(int64_t count) {
    if (count > kFewPointers) many_.emplace(count);
  }
  const float** data() { return many_ ? many_->data() : few_; }

 private:
  const float* few_[kFewPointers];
  std::optional<Scratch<const float*>> many_;
};

// One part of a product: some tiles of rows by some panels.
class Part {
 public:
  // `next` is fetched by the part's last tiles.
  Part(const FloatProduct& product, FillIndirection fill, int64_t tiles,
       FirstWeights::Place next)
      : product_(product), fill_(fill), tiles_(tiles), next_(next) {}

  // One row without working memory: there is nothing to cut into blocks. False
  // for any other product.
  bool RunAlone() {
    if (product_.rows != 1 || product_.scratch > 0 ||
        product_.taps > kFewPointers) {
      return false;
    }
    const float* at[kFewPointers];
    fill_(0, 1, nullptr, at);
    RunRow(0, product_.panels.count(), at);
    return true;
  }

  void Run(int64_t tile_begin, int64_t tile_end, int64_t panel_begin,
           int64_t panel_end) {
    const int64_t height = product_.panels.tiles->rows;
    const int64_t pointers =
        height * product_.taps * static_cast<int64_t>(sizeof(float*));
    const int64_t bytes = std::max<int64_t>(1, height * product_.row_bytes);
    const int64_t count = tile_end - tile_begin;
    int64_t most = std::min(
        {kMostTiles, BlockBytes() / bytes, kPointerBytes / pointers, count});
    if (product_.scratch > 0) {
      most = std::min(most, kScratchBytes / (4 * height * product_.scratch));
    }
    most = std::max<int64_t>(1, most);
    const int64_t blocks = (count + most - 1) / most;
    most = (count + blocks - 1) / blocks;
    Pointers at(most * height * product_.taps);
    std::optional<Scratch<float>> scratch;
    if (product_.scratch > 0) {
      scratch.emplace(most * height * product_.scratch);
    }
    for (int64_t begin = tile_begin; begin < tile_end; begin += most) {
      const int64_t end = std::min(tile_end, begin + most);
      LeaveIfRunEnded();
      Point(begin, end, scratch ? scratch->data() : nullptr, at.data());
      if (product_.rows == 1) {
        RunRow(panel_begin, panel_end, at.data());
        continue;
      }
      for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
        RunPanel(begin, end, panel,
                 FindAhead(begin, end, panel,
                           {tile_begin, tile_end, panel_begin, panel_end}),
                 at.data());
      }
    }
  }

 private:
  void Point(int64_t begin, int64_t end, float* scratch, const float** at) {
    PartWalk walk(product_.rows, tiles_, begin);
    int64_t* first = first_rows_;
    for (int64_t tile = begin; tile < end; ++tile, walk.Next()) {
      const int rows = static_cast<int>(walk.count());
      *first++ = walk.begin();
      fill_(walk.begin(), rows, scratch, at);
      at += rows * product_.taps;
      scratch += rows * product_.scratch;
    }
    *first = walk.begin();
  }

  // Several panels at a time, as many each time.
  void RunRow(int64_t panel, int64_t last_panel, const float* const* at) {
    const FloatPanels& panels = product_.panels;
    const int64_t width = panels.tiles->width;
    for (int64_t left = last_panel - panel; left > 0;) {
      const int64_t groups = (left + kRowPanels - 1) / kRowPanels;
      const int64_t count = (left + groups - 1) / groups;
      FloatTile tile = TileAt(panel);
      tile.columns = static_cast<int>((count - 1) * width) +
                     panels.used(panel + count - 1);
      tile.rows = 1;
      tile.inputs = at;
      tile.out = product_.out + panel * width;
      if (product_.residual != nullptr) {
        tile.residual = product_.residual + panel * width;
      }
      panels.tiles->row(tile, width * panels.depth);
      panel += count;
      left -= count;
    }
  }

  // What all tiles of a panel share.
  FloatTile TileAt(int64_t panel) const {
    const FloatPanels& panels = product_.panels;
    const int64_t column = panel * panels.tiles->width;
    FloatTile tile;
    tile.taps = product_.taps;
    tile.run = product_.run;
    tile.weights = product_.packed + panels.offset(panel);
    if (product_.scale != nullptr) tile.scale = product_.scale + column;
    if (product_.bias != nullptr) tile.bias = product_.bias + column;
    tile.row_stride = product_.row_stride;
    tile.columns = panels.used(panel);
    tile.rectifier = product_.rectifier;
    return tile;
  }

  // All tiles of the part.
  struct Range {
    int64_t tile_begin, tile_end;
    int64_t panel_begin, panel_end;
  };

  // What the tiles [begin, end) of a panel have to fetch.
  FirstWeights::Place FindAhead(int64_t begin, int64_t end, int64_t panel,
                                const Range& all) const {
    const FloatPanels& panels = product_.panels;
    if (panel + 1 == all.panel_end) {
      return end == all.tile_end ? next_ : FirstWeights::Place();
    }
    // What the first block reads the others find nearby.
    if (begin != all.tile_begin) return {};
    return {reinterpret_cast<const char*>(product_.packed +
                                          panels.offset(panel + 1)),
            4 * panels.width(panel + 1) * panels.depth};
  }

  void RunPanel(int64_t begin, int64_t end, int64_t panel,
                const FirstWeights::Place& ahead, const float* const* at) {
    const FloatPanels& panels = product_.panels;
    const int64_t column = panel * panels.tiles->width;
    FloatTile tile = TileAt(panel);
    const bool is_narrow = panels.width(panel) < panels.tiles->width;
    // Every tile fetches its share, some bytes a weight row.
    const int64_t rows = (end - begin) * panels.depth;
    tile.prefetch_step = (ahead.bytes + rows - 1) / rows;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = first_rows_[i - begin];
      const int64_t place = row * product_.row_stride + column;
      tile.rows = static_cast<int>(first_rows_[i - begin + 1] - row);
      tile.inputs = at;
      tile.out = product_.out + place;
      if (product_.residual != nullptr) {
        tile.residual = product_.residual + place;
      }
      tile.prefetch =
          ahead.bytes == 0
              ? reinterpret_cast<const char*>(tile.weights)
              : ahead.begin + (i - begin) * tile.prefetch_step * panels.depth;
      if (is_narrow) {
        panels.tiles->narrow(tile);
      } else {
        panels.tiles->wide(tile);
      }
      at += tile.rows * product_.taps;
    }
  }

  const FloatProduct& product_;
  FillIndirection fill_;
  const int64_t tiles_;
  const FirstWeights::Place next_;
  // Of the tiles that Point was called for last, and where they end.
  int64_t first_rows_[kMostTiles + 1];
};

// Whether threads share out rows, so that each reads all weights, instead of
// panels. Weights can be fetched ahead; rows were just written, each part by
// the thread that has that part again, and are dear to read for others.
bool SplitsRows(const FloatProduct& product, int64_t threads) {
  const double by_rows = Imbalance(product.rows, threads);
  const double by_panels = Imbalance(product.panels.count(), threads);
  // With few rows weights are hardly read before the next are waited for.
  constexpr int64_t kFewTiles = 4;
  const bool are_few =
      product.rows < kFewTiles * product.panels.tiles->rows * threads;
  const int64_t image = product.rows * product.row_bytes;
  const bool favors_panels =
      4 * product.panels.size() > (are_few ? image : 4 * image);
  return favors_panels ? by_rows * 1.1 < by_panels : by_rows <= by_panels * 1.1;
}

// Rows [begin, end) of a product.
FloatProduct RowsOf(const FloatProduct& product, int64_t begin, int64_t end) {
  FloatProduct part = product;
  part.rows = end - begin;
  part.out += begin * product.row_stride;
  if (part.residual != nullptr) part.residual += begin * product.row_stride;
  return part;
}

}  // namespace

FirstWeights FirstPanels(const FloatPanels& panels, PackedWeights packed) {
  constexpr int64_t kMostBytes = 256 * 1024;
  const int64_t bytes = 4 * panels.tiles->width * panels.depth;
  return {std::move(packed), bytes, panels.count(),
          std::min(bytes, kMostBytes)};
}

FirstWeights::Place NextOf(const FloatProduct& product, int64_t thread,
                           int64_t threads) {
  if (product.next == nullptr) return {};
  // The next image is likely to be the result, and threads to share it out by
  // SplitsRows.
  const bool is_shared =
      product.next->IsLargerThan(4 * product.rows * product.panels.columns);
  return product.next->Of(is_shared ? thread : 0, threads);
}

void MultiplyPanelsAlone(const FloatProduct& product, FillIndirection fill,
                         FirstWeights::Place next) {
  if (product.rows == 0 || product.panels.columns == 0) return;
  const int64_t height = product.panels.tiles->rows;
  const int64_t tiles = (product.rows + height - 1) / height;
  Part whole(product, fill, tiles, next);
  if (!whole.RunAlone()) whole.Run(0, tiles, 0, product.panels.count());
}

void MultiplyPanels(const FloatProduct& product, FillIndirection fill,
                    ThreadPool* pool) {
  const FloatPanels& panels = product.panels;
  if (product.rows == 0 || panels.columns == 0) return;
  const int64_t height = panels.tiles->rows;
  const int64_t tiles = (product.rows + height - 1) / height;
  const int64_t work = product.rows * panels.columns * panels.depth;
  const int64_t threads =
      std::clamp<int64_t>(work / kGrain, 1, pool->threads());
  const auto next = [&](int64_t thread) {
    return NextOf(product, thread, threads);
  };
  if (threads == 1) return MultiplyPanelsAlone(product, fill, next(0));
  const bool splits_rows = SplitsRows(product, threads);
  pool->ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (splits_rows) {
        const int64_t first = Boundary(product.rows, threads, i);
        MultiplyPanelsAlone(
            RowsOf(product, first, Boundary(product.rows, threads, i + 1)),
            [&](int64_t row, int count, float* scratch, const float** to) {
              fill(first + row, count, scratch, to);
            },
            next(i));
      } else {
        Part(product, fill, tiles, next(i))
            .Run(0, tiles, Boundary(panels.count(), threads, i),
                 Boundary(panels.count(), threads, i + 1));
      }
    }
  });
}

}  // namespace optfarm::runtime
