#include "engine/runtime/operators/winograd_layer.h"

#include <algorithm>

#include "engine/runtime/core/run_bounds.h"

namespace optfarm::runtime {
namespace {

// Positions stand a cache line further apart than they are long: at multiples
// of 4 KB they would push each other out of the cache.
constexpr int64_t kLine = 16;

}  // namespace

// One tile after the other.
class WinogradConvolution::TileWalk {
 public:
  TileWalk(const WinogradTiling& tiling, int64_t first)
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
  const WinogradTiling& tiling_;
  int64_t x_;
  int64_t y_;
  int64_t image_;
};

WinogradConvolution::WinogradConvolution(const WinogradTransforms& transforms,
                                         const FloatProduct& product,
                                         const WinogradImages& images)
    : transforms_(transforms),
      product_(product),
      images_(images),
      tiling_(images),
      height_(product.panels.tiles->rows),
      input_stride_(height_ * images.channels + kLine),
      filter_stride_(product.panels.tiles->width * images.channels + kLine),
      sum_stride_(height_ * product.panels.tiles->width) {}

int64_t WinogradConvolution::CountBlocks(int64_t tiles, int64_t threads) const {
  int64_t room = std::min(3 * BlockBytes() / 2 - 4 * panel_size(),
                          2 * BlockBytes() / threads);
  // Each block transforms all filters.
  if (HasNarrowVectors(transforms_)) {
    room = std::max(room, 2 * 4 * panel_size() / threads);
  }
  const int64_t most = std::max<int64_t>(1, room / (4 * group_size()));
  return (CountGroups(tiles) + most - 1) / most;
}

WinogradBlock WinogradConvolution::BlockAt(int64_t begin, int64_t end,
                                           int64_t blocks, int64_t i,
                                           float* inputs) const {
  WinogradBlock block;
  block.begin = begin + Boundary(end - begin, blocks, i);
  block.end = begin + Boundary(end - begin, blocks, i + 1);
  block.groups = CountGroups(block.end - block.begin);
  block.inputs = inputs;
  block.is_first = i == 0;
  block.is_last = i + 1 == blocks;
  return block;
}

void WinogradConvolution::TransformInputs(const WinogradBlock& block,
                                          int64_t group, int64_t last) const {
  WinogradInputs in;
  in.channels = images_.channels;
  in.position_stride = input_stride_;
  TileWalk walk(tiling_, block.GroupBegin(group));
  for (; group < last; ++group) {
    in.to = block.inputs + group * group_size();
    const int64_t count = block.GroupBegin(group + 1) - block.GroupBegin(group);
    for (int64_t i = 0; i < count; ++i, in.to += in.channels, walk.Next()) {
      FillIndirection(walk, &in);
      transforms_.inputs(in);
    }
  }
}

void WinogradConvolution::MultiplyPanels(const WinogradBlock& block,
                                         int64_t panel, int64_t last,
                                         FirstWeights::Place next,
                                         float* room) const {
  float* filters = room;
  float* sums = room + kWinogradPositions * filter_stride_;
  const FloatPanels& panels = product_.panels;
  for (; panel < last; ++panel) {
    LeaveIfRunEnded();
    transforms_.filters({product_.packed + panels.offset(panel),
                         images_.channels, panels.width(panel), filters,
                         filter_stride_});
    FirstWeights::Place ahead;
    if (panel + 1 < last) {
      // What the first block reads the others find nearby.
      if (block.is_first) ahead = PanelAt(panel + 1);
    } else if (block.is_last) {
      ahead = next;
    }
    MultiplyPanel(block, panel, ahead, filters, sums);
  }
}

FirstWeights::Place WinogradConvolution::PanelAt(int64_t panel) const {
  const FloatPanels& panels = product_.panels;
  return {reinterpret_cast<const char*>(product_.packed + panels.offset(panel)),
          4 * panels.width(panel) * panels.depth};
}

void WinogradConvolution::FillIndirection(const TileWalk& tile,
                                          WinogradInputs* in) const {
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

void WinogradConvolution::MultiplyPanel(const WinogradBlock& block,
                                        int64_t panel,
                                        FirstWeights::Place ahead,
                                        const float* filters,
                                        float* sums) const {
  const FloatPanels& panels = product_.panels;
  const int width = panels.width(panel);
  FloatTile tile;
  tile.taps = 1;
  tile.run = images_.channels;
  tile.row_stride = width;
  tile.columns = width;
  // Each tile fetches its share, some bytes a row of filters.
  const int64_t rows = block.groups * kWinogradPositions * tile.run;
  tile.prefetch_step = (ahead.bytes + rows - 1) / rows;
  tile.prefetch =
      ahead.bytes == 0 ? reinterpret_cast<const char*>(filters) : ahead.begin;
  TileWalk walk(tiling_, block.begin);
  for (int64_t group = 0; group < block.groups; ++group) {
    tile.rows =
        static_cast<int>(block.GroupBegin(group + 1) - block.GroupBegin(group));
    const float* in = block.inputs + group * group_size();
    for (int position = 0; position < kWinogradPositions; ++position) {
      const float* at[kMostTileRows];
      for (int i = 0; i < tile.rows; ++i) at[i] = in + i * tile.run;
      tile.inputs = at;
      tile.weights = filters + position * filter_stride_;
      tile.out = sums + position * sum_stride_;
      (IsNarrow(panel) ? panels.tiles->narrow : panels.tiles->wide)(tile);
      tile.prefetch += tile.prefetch_step * tile.run;
      in += input_stride_;
    }
    Store(panel, sums, tile.rows, &walk);
  }
}

void WinogradConvolution::Store(int64_t panel, const float* sums, int count,
                                TileWalk* walk) const {
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
    results.sums = sums + i * panels.width(panel);
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

void WinogradConvolution::AddPlainly(int64_t panel, uint32_t left_out,
                                     const TileWalk& walk,
                                     const WinogradResults& results) const {
  const FloatPanels& panels = product_.panels;
  WinogradInputs in;
  FillIndirection(walk, &in);
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
    (IsNarrow(panel) ? panels.tiles->narrow : panels.tiles->wide)(tile);
    for (int c = 0; c < tile.columns; ++c) {
      if ((left_out >> (c / transforms_.lanes) & 1) != 0) {
        results.out[pixel][c] = sums[c];
      }
    }
  }
}

}  // namespace optfarm::runtime
