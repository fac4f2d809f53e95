#include "engine/runtime/fast/winograd_convolution.h"

#include <algorithm>
#include <cstring>

#include "engine/runtime/fast/parts.h"
#include "engine/runtime/run_bounds.h"
#include "engine/runtime/scratch.h"

namespace optfarm::runtime {
namespace {

// Positions stand a cache line further apart than they are long: at multiples
// of 4 KB they would push each other out of the cache.
constexpr int64_t kLine = 16;
// UNITS: multiply-adds worth handing to another thread.
constexpr int64_t kGrain = 64 * 1024;

// Tiles of two by two pixels, counted over batch, height and width.
struct Tiling {
  explicit Tiling(const WinogradImages& images)
      : rows((images.window.y.out + 1) / 2),
        columns((images.window.x.out + 1) / 2),
        count(images.batch * rows * columns) {}

  int64_t rows;
  int64_t columns;
  int64_t count;
};

// One tile after the other.
class TileWalk {
 public:
  TileWalk(const Tiling& tiling, int64_t first)
      : tiling_(tiling),
        x_(first % tiling.columns),
        y_(first / tiling.columns % tiling.rows),
        image_(first / tiling.columns / tiling.rows) {}

  int64_t image() const { return image_; }
  int64_t x() const { return x_; }
  int64_t y() const { return y_; }
  void Next() {
    if (++x_ < tiling_.columns) return;
    x_ = 0;
    if (++y_ < tiling_.rows) return;
    y_ = 0;
    ++image_;
  }

 private:
  const Tiling& tiling_;
  int64_t x_;
  int64_t y_;
  int64_t image_;
};

// UNITS of all below: operations on one vector of channels or filters. Those of
// transforms are counted with their loads and stores, and twice, because they
// wait for memory where products do not; filters come from furthest away.
constexpr double kFilterWork = 264;
constexpr double kInputWork = 128;
constexpr double kResultWork = 90;

// How long each transform takes beside the products of all positions.
struct Work {
  Work(const WinogradImages& images, int64_t filters) {
    const double tiles = static_cast<double>(Tiling(images).count);
    const double channels = static_cast<double>(images.channels);
    const double columns = static_cast<double>(filters);
    products = kWinogradPositions * tiles * channels * columns;
    filter = kFilterWork * channels * columns;
    input = kInputWork * tiles * channels;
    result = kResultWork * tiles * columns;
  }

  double products;
  double filter;
  double input;
  double result;
};

// Some tiles of the result by some panels.
class Part {
 public:
  Part(const WinogradTransforms& transforms, const FloatProduct& product,
       const WinogradImages& images, FirstWeights::Place next)
      : transforms_(transforms),
        product_(product),
        images_(images),
        tiling_(images),
        next_(next),
        height_(product.panels.tiles->rows),
        input_stride_(height_ * images.channels + kLine),
        filter_stride_(product.panels.tiles->width * images.channels + kLine),
        sum_stride_(height_ * product.panels.tiles->width) {}

  void Run(int64_t tile_begin, int64_t tile_end, int64_t panel_begin,
           int64_t panel_end) {
    if (tile_begin == tile_end || panel_begin == panel_end) return;
    const int64_t group_bytes = 4 * kWinogradPositions * input_stride_;
    const int64_t count = tile_end - tile_begin;
    const int64_t groups = (count + height_ - 1) / height_;
    const int64_t most =
        std::clamp<int64_t>(BlockBytes() / group_bytes, 1, groups);
    const int64_t blocks = (groups + most - 1) / most;
    const int64_t of_block = (groups + blocks - 1) / blocks;
    const Scratch<float> inputs(of_block * kWinogradPositions * input_stride_);
    const Scratch<float> filters(kWinogradPositions * filter_stride_);
    const Scratch<float> sums(kWinogradPositions * sum_stride_);
    inputs_ = inputs.data();
    filters_ = filters.data();
    sums_ = sums.data();
    for (int64_t block = 0; block < blocks; ++block) {
      begin_ = tile_begin + Boundary(count, blocks, block);
      end_ = tile_begin + Boundary(count, blocks, block + 1);
      groups_ = (end_ - begin_ + height_ - 1) / height_;
      TransformInputs();
      for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
        LeaveIfRunEnded();
        TransformFilters(panel);
        FirstWeights::Place ahead;
        if (panel + 1 < panel_end) {
          // What the first block reads the others find nearby.
          if (block == 0) ahead = PanelAt(panel + 1);
        } else if (block + 1 == blocks) {
          ahead = next_;
        }
        RunPanel(panel, ahead);
      }
    }
  }

 private:
  // Where the tiles of a group begin.
  int64_t GroupBegin(int64_t group) const {
    return begin_ + Boundary(end_ - begin_, groups_, group);
  }
  float* InputsOf(int64_t group) const {
    return inputs_ + group * kWinogradPositions * input_stride_;
  }
  FirstWeights::Place PanelAt(int64_t panel) const {
    const FloatPanels& panels = product_.panels;
    return {
        reinterpret_cast<const char*>(product_.packed + panels.offset(panel)),
        4 * panels.width(panel) * panels.depth};
  }

  // Says where a tile's inputs stand.
  void PointAt(const TileWalk& tile, WinogradInputs* in) const {
    const WindowAxis& wy = images_.window.y;
    const WindowAxis& wx = images_.window.x;
    const int64_t left = 2 * tile.x() - wx.pad_before;
    for (int dy = 0; dy < 4; ++dy) {
      const int64_t y = 2 * tile.y() - wy.pad_before + dy;
      const bool is_row = y >= 0 && y < wy.in;
      const float* row =
          images_.data + (tile.image() * wy.in + y) * wx.in * images_.channels;
      for (int dx = 0; dx < 4; ++dx) {
        const int64_t x = left + dx;
        in->pixels[4 * dy + dx] = is_row && x >= 0 && x < wx.in
                                      ? row + x * images_.channels
                                      : images_.zeros;
      }
    }
  }

  void TransformInputs() const {
    WinogradInputs in;
    in.channels = images_.channels;
    in.position_stride = input_stride_;
    TileWalk walk(tiling_, begin_);
    for (int64_t group = 0; group < groups_; ++group) {
      in.to = InputsOf(group);
      const int64_t count = GroupBegin(group + 1) - GroupBegin(group);
      for (int64_t i = 0; i < count; ++i, in.to += in.channels, walk.Next()) {
        PointAt(walk, &in);
        transforms_.inputs(in);
      }
    }
  }

  void TransformFilters(int64_t panel) const {
    const FloatPanels& panels = product_.panels;
    transforms_.filters({product_.packed + panels.offset(panel),
                         images_.channels, panels.width(panel), filters_,
                         filter_stride_});
  }

  void RunPanel(int64_t panel, FirstWeights::Place ahead) const {
    const FloatPanels& panels = product_.panels;
    const int width = panels.width(panel);
    const bool is_narrow = width < panels.tiles->width;
    FloatTile tile;
    tile.taps = 1;
    tile.run = images_.channels;
    tile.row_stride = width;
    tile.columns = width;
    // Each tile fetches its share, some bytes a row of filters.
    const int64_t rows = groups_ * kWinogradPositions * tile.run;
    tile.prefetch_step = (ahead.bytes + rows - 1) / rows;
    tile.prefetch = ahead.bytes == 0 ? reinterpret_cast<const char*>(filters_)
                                     : ahead.begin;
    TileWalk walk(tiling_, begin_);
    for (int64_t group = 0; group < groups_; ++group) {
      tile.rows = static_cast<int>(GroupBegin(group + 1) - GroupBegin(group));
      const float* in = InputsOf(group);
      for (int position = 0; position < kWinogradPositions; ++position) {
        const float* at[kMostTileRows];
        for (int i = 0; i < tile.rows; ++i) at[i] = in + i * tile.run;
        tile.inputs = at;
        tile.weights = filters_ + position * filter_stride_;
        tile.out = sums_ + position * sum_stride_;
        (is_narrow ? panels.tiles->narrow : panels.tiles->wide)(tile);
        tile.prefetch += tile.prefetch_step * tile.run;
        in += input_stride_;
      }
      Store(panel, tile.rows, &walk);
    }
  }

  // The results of a group.
  void Store(int64_t panel, int count, TileWalk* walk) const {
    const FloatPanels& panels = product_.panels;
    const int64_t column = panel * panels.tiles->width;
    WinogradResults results;
    results.position_stride = sum_stride_;
    if (product_.scale != nullptr) results.scale = product_.scale + column;
    if (product_.bias != nullptr) results.bias = product_.bias + column;
    results.columns = panels.used(panel);
    results.rectifier = product_.rectifier;
    const int64_t height = images_.window.y.out;
    const int64_t width = images_.window.x.out;
    for (int i = 0; i < count; ++i, walk->Next()) {
      results.sums = sums_ + i * panels.width(panel);
      for (int pixel = 0; pixel < 4; ++pixel) {
        const int64_t y = 2 * walk->y() + pixel / 2;
        const int64_t x = 2 * walk->x() + pixel % 2;
        results.out[pixel] = nullptr;
        if (y >= height || x >= width) continue;
        const int64_t at =
            ((walk->image() * height + y) * width + x) * product_.row_stride +
            column;
        results.out[pixel] = product_.out + at;
        if (product_.residual != nullptr) {
          results.residual[pixel] = product_.residual + at;
        }
      }
      const uint32_t left_out = transforms_.results(results);
      if (left_out != 0) AddPlainly(panel, left_out, *walk, results);
    }
  }

  // The columns of a tile that the transform left out, from plain sums.
  void AddPlainly(int64_t panel, uint32_t left_out, const TileWalk& walk,
                  const WinogradResults& results) const {
    const FloatPanels& panels = product_.panels;
    WinogradInputs in;
    PointAt(walk, &in);
    FloatTile tile;
    tile.rows = 1;
    tile.taps = kWinogradTaps;
    tile.run = images_.channels;
    tile.weights = product_.packed + panels.offset(panel);
    tile.scale = results.scale;
    tile.bias = results.bias;
    tile.columns = results.columns;
    tile.rectifier = results.rectifier;
    tile.prefetch = reinterpret_cast<const char*>(tile.weights);
    for (int pixel = 0; pixel < 4; ++pixel) {
      if (results.out[pixel] == nullptr) continue;
      const float* at[kWinogradTaps];
      for (int tap = 0; tap < kWinogradTaps; ++tap) {
        at[tap] = in.pixels[(pixel / 2 + tap / 3) * 4 + pixel % 2 + tap % 3];
      }
      // Columns that were stored may have been their own residual.
      float sums[kMostTileColumns];
      tile.inputs = at;
      tile.out = sums;
      if (results.residual[pixel] != nullptr) {
        std::copy_n(results.residual[pixel], tile.columns, sums);
        tile.residual = sums;
      }
      const bool is_narrow = panels.width(panel) < panels.tiles->width;
      (is_narrow ? panels.tiles->narrow : panels.tiles->wide)(tile);
      for (int c = 0; c < tile.columns; ++c) {
        if ((left_out >> (c / transforms_.lanes) & 1) != 0) {
          results.out[pixel][c] = sums[c];
        }
      }
    }
  }

  const WinogradTransforms& transforms_;
  const FloatProduct& product_;
  const WinogradImages& images_;
  const Tiling tiling_;
  const FirstWeights::Place next_;
  // Tiles that are multiplied at a time.
  const int64_t height_;
  // UNITS: elements from position to position.
  const int64_t input_stride_;
  const int64_t filter_stride_;
  const int64_t sum_stride_;
  // By group of tiles and position.
  float* inputs_ = nullptr;
  // One panel's by position.
  float* filters_ = nullptr;
  // One group's by position.
  float* sums_ = nullptr;
  // The block's tiles, and into how many groups they fall.
  int64_t begin_ = 0;
  int64_t end_ = 0;
  int64_t groups_ = 0;
};

// Whether threads share out tiles, so that each transforms all filters, instead
// of panels, so that each transforms all inputs.
bool SplitsTiles(const Work& work, int64_t tiles, int64_t panels,
                 int64_t threads) {
  const double parts = static_cast<double>(threads);
  const double by_tiles =
      (work.products + work.input) / parts * Imbalance(tiles, threads) +
      work.filter;
  const double by_panels =
      (work.products + work.filter) / parts * Imbalance(panels, threads) +
      work.input;
  return by_tiles <= by_panels;
}

}  // namespace

const WinogradTransforms* FindWinograd(const CpuFeatures& cpu) {
#if defined(__x86_64__)
  if (cpu.avx512) return &Avx512Winograd();
  if (cpu.avx2) return &Avx2Winograd();
#elif defined(__aarch64__) || defined(__arm__)
  if (cpu.neon) return &NeonWinograd();
#endif
  return nullptr;
}

bool FavorsWinograd(const WinogradImages& images, int64_t filters) {
  for (const WindowAxis& axis : {images.window.y, images.window.x}) {
    if (axis.size != 3 || axis.stride != 1 || axis.dilation != 1) return false;
  }
  if (images.channels % kWinogradChannels != 0) return false;
  const double pixels = static_cast<double>(images.batch * images.window.y.out *
                                            images.window.x.out);
  const double plain = kWinogradTaps * pixels *
                       static_cast<double>(images.channels) *
                       static_cast<double>(filters);
  const Work work(images, filters);
  return 1.1 * (work.products + work.filter + work.input + work.result) < plain;
}

void ConvolveByWinograd(const WinogradTransforms& transforms,
                        const FloatProduct& product,
                        const WinogradImages& images, ThreadPool* pool) {
  const FloatPanels& panels = product.panels;
  const int64_t tiles = Tiling(images).count;
  if (tiles == 0 || panels.columns == 0) return;
  const Work work(images, panels.columns);
  const int64_t threads = std::clamp<int64_t>(
      static_cast<int64_t>(work.products) / kGrain, 1, pool->threads());
  const bool splits_tiles = SplitsTiles(work, tiles, panels.count(), threads);
  pool->ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Part part(transforms, product, images, NextOf(product, i, threads));
      if (splits_tiles) {
        part.Run(Boundary(tiles, threads, i), Boundary(tiles, threads, i + 1),
                 0, panels.count());
      } else {
        part.Run(0, tiles, Boundary(panels.count(), threads, i),
                 Boundary(panels.count(), threads, i + 1));
      }
    }
  });
}

}  // namespace optfarm::runtime
