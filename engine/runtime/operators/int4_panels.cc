#include "engine/runtime/operators/int4_panels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/core/scratch.h"

namespace optfarm::runtime {
namespace {

// UNITS: multiply-adds worth handing to another thread.
constexpr int64_t kGrain = 64 * 1024;
// From so many rows on it pays to unpack weights once for all of them.
constexpr int64_t kManyRows = 12;
// UNITS: weights along the depth that are unpacked at a time, so that they stay
// near the processor.
constexpr int64_t kUnpackedDepth = 512;
// Sums of 20 million smaller inputs times 4 bits are finite.
constexpr float kMostInput = 1e30f;

// Where value (k, column) of the matrix stands among the grid's. One of the
// two strides is 1.
class Places {
 public:
  explicit Places(const BlockGrid& grid)
      : is_deep_(grid.inner() == 1), grid_(grid) {}
  int64_t Value(int64_t k, int64_t column) const {
    return is_deep_ ? grid_.ValueOf(column, k, 0) : grid_.ValueOf(0, k, column);
  }
  int64_t Scale(int64_t k, int64_t column) const {
    return is_deep_ ? grid_.ScaleOf(column, k, 0) : grid_.ScaleOf(0, k, column);
  }

 private:
  const bool is_deep_;
  const BlockGrid& grid_;
};

void PackPanel(const Int4Panels& panels, const Places& places,
               const uint8_t* values, int64_t panel, uint32_t* codes) {
  const int64_t first = panel * kInt4Width;
  const int64_t used = std::min<int64_t>(kInt4Width, panels.columns - first);
  for (int64_t k = 0; k < panels.depth; ++k) {
    uint32_t* const words = codes + k / kInt4Group * kInt4Width;
    for (int64_t c = 0; c < used; ++c) {
      words[c] |=
          static_cast<uint32_t>(FourBitsAt(values, places.Value(k, first + c)))
          << (4 * (k % kInt4Group));
    }
  }
}

// All of a form but its codes.
void PackScales(const Int4Panels& panels, const Places& places,
                const Tensor& scale, const Tensor& zero_point, float* scales,
                uint8_t* zeros) {
  for (int64_t panel = 0; panel < panels.count(); ++panel) {
    for (int64_t b = 0; b < panels.blocks(); ++b) {
      for (int64_t c = 0; c < kInt4Width; ++c, ++scales, ++zeros) {
        const int64_t column = panel * kInt4Width + c;
        if (column >= panels.columns) continue;
        const int64_t at = places.Scale(b * panels.block, column);
        *scales = ScaleAt(scale, at);
        *zeros = static_cast<uint8_t>(ZeroPointAt(zero_point, at));
      }
    }
  }
}

float Rectified(float x, Rectifier rectifier) {
  if (rectifier != Rectifier::kNone && x < 0) return 0;
  return rectifier == Rectifier::kRelu6 && x > 6 ? 6 : x;
}

class Int4Multiplier {
 public:
  Int4Multiplier(const Int4Product& product, ThreadPool* pool)
      : p_(product),
        pool_(pool),
        blocks_(product.panels.blocks()),
        sums_(product.rows * blocks_),
        scaled_(product.panels.tiles->input_factors == nullptr
                    ? 1
                    : product.rows * product.panels.depth),
        in_at_(product.rows),
        sums_at_(product.rows) {
    for (int64_t row = 0; row < p_.rows; ++row) ReadRow(row);
  }

  void Run() const {
    const int64_t work = p_.rows * p_.panels.depth * kInt4Width;
    // As many panels at a time as a row is multiplied by, so that the cut
    // between threads stands between them.
    const int64_t count = p_.panels.count();
    const int64_t units = (count + kInt4RowPanels - 1) / kInt4RowPanels;
    pool_->ParallelFor(units, 1 + kGrain / (work * kInt4RowPanels + 1),
                       [&](int64_t begin, int64_t end) {
                         LeaveIfRunEnded();
                         RunPanels(begin * kInt4RowPanels,
                                   std::min(count, end * kInt4RowPanels));
                       });
  }

 private:
  // The sums of a row's blocks, and the row as tiles want it.
  void ReadRow(int64_t row) {
    const int64_t depth = p_.panels.depth;
    const float* const from = p_.in + row * depth;
    float* const sums = sums_.data() + row * blocks_;
    for (int64_t b = 0; b < blocks_; ++b) {
      float sum = 0;
      const int64_t end = std::min(depth, (b + 1) * p_.panels.block);
      for (int64_t k = b * p_.panels.block; k < end; ++k) sum += from[k];
      sums[b] = sum;
    }
    sums_at_[row] = sums;
    in_at_[row] = from;
    const float* const factors = p_.panels.tiles->input_factors;
    if (factors == nullptr) return;
    float* const scaled = scaled_.data() + row * depth;
    for (int64_t k = 0; k < depth; ++k) {
      scaled[k] = from[k] * factors[k % kInt4Group];
    }
    in_at_[row] = scaled;
  }

  void RunPanels(int64_t begin, int64_t end) const {
    const Int4Tiles& tiles = *p_.panels.tiles;
    float sums[kMostInt4Rows * kInt4RowPanels * kInt4Width];
    if (p_.rows == 1) {
      int64_t panel = begin;
      Int4Tile tile = TileAt(0, panel, sums);
      tile.rows = 1;
      tile.row_stride = kInt4RowPanels * kInt4Width;
      for (; panel + kInt4RowPanels <= end; panel += kInt4RowPanels) {
        tile.panel = p_.panels.At(p_.packed, panel);
        tiles.multiply_row(tile);
        Finish(tile, 0, panel, kInt4RowPanels);
      }
      begin = panel;
    }
    for (int64_t panel = begin; panel < end; ++panel) {
      for (int64_t row = 0; row < p_.rows; row += tiles.rows) {
        Int4Tile tile = TileAt(row, panel, sums);
        tile.rows =
            static_cast<int>(std::min<int64_t>(tiles.rows, p_.rows - row));
        tiles.multiply(tile);
        Finish(tile, row, panel, 1);
      }
    }
  }

  Int4Tile TileAt(int64_t row, int64_t panel, float* out) const {
    Int4Tile tile;
    tile.panel = p_.panels.At(p_.packed, panel);
    tile.inputs = in_at_.data() + row;
    tile.sums = sums_at_.data() + row;
    tile.out = out;
    tile.row_stride = kInt4Width;
    return tile;
  }

  // What follows the sums of a tile, and to its place.
  void Finish(const Int4Tile& tile, int64_t row, int64_t panel,
              int64_t panels) const {
    const int64_t first = panel * kInt4Width;
    const int64_t used =
        std::min<int64_t>(panels * kInt4Width, p_.panels.columns - first);
    for (int64_t m = 0; m < tile.rows; ++m) {
      const float* const sums = tile.out + m * tile.row_stride;
      const int64_t at = (row + m) * p_.panels.columns + first;
      for (int64_t c = 0; c < used; ++c) {
        float value = sums[c];
        if (p_.scale != nullptr) value *= p_.scale[first + c];
        if (p_.bias != nullptr) value += p_.bias[first + c];
        if (p_.residual != nullptr) value += p_.residual[at + c];
        p_.out[at + c] = Rectified(value, p_.rectifier);
      }
    }
  }

  const Int4Product& p_;
  ThreadPool* const pool_;
  const int64_t blocks_;
  const Scratch<float> sums_;
  const Scratch<float> scaled_;
  const Scratch<const float*> in_at_, sums_at_;
};

// Many rows by weights that are unpacked, some of the depth at a time.
class UnpackedMultiplier {
 public:
  UnpackedMultiplier(const Int4Product& product, ThreadPool* pool)
      : p_(product), pool_(pool) {}

  void Run() const {
    const int64_t width = p_.float_tiles->width;
    const int64_t work = p_.rows * p_.panels.depth * width;
    pool_->ParallelFor((p_.panels.columns + width - 1) / width,
                       1 + kGrain / (work + 1),
                       [&](int64_t begin, int64_t end) {
                         const Scratch<float> room(Step() * width);
                         for (int64_t i = begin; i < end; ++i) {
                           LeaveIfRunEnded();
                           RunPanel(i * width, room.data());
                         }
                       });
  }

 private:
  // Whole blocks.
  int64_t Step() const {
    const int64_t block = p_.panels.block;
    return std::max<int64_t>(1, kUnpackedDepth / block) * block;
  }

  // The float tiles' panel that begins with the column.
  void RunPanel(int64_t column, float* room) const {
    const Int4Panels& panels = p_.panels;
    const int64_t width = p_.float_tiles->width;
    for (int64_t k = 0; k < panels.depth; k += Step()) {
      const int64_t depth = std::min(Step(), panels.depth - k);
      for (int64_t c = 0; c < width; c += kInt4Width) {
        const int64_t panel = (column + c) / kInt4Width;
        if (panel >= panels.count()) {
          FillColumns(room + c, depth, width);
          continue;
        }
        panels.tiles->unpack(panels.At(p_.packed, panel), k / panels.block,
                             (depth + panels.block - 1) / panels.block,
                             room + c, width);
      }
      MultiplyPart(column, k, depth, room);
    }
  }

  static void FillColumns(float* room, int64_t depth, int64_t width) {
    for (int64_t i = 0; i < depth; ++i) {
      std::fill_n(room + i * width, kInt4Width, 0.0f);
    }
  }

  // Rows [k, k + depth) of the weights. The epilogue is the last part's.
  void MultiplyPart(int64_t column, int64_t k, int64_t depth,
                    const float* weights) const {
    const FloatTiles& tiles = *p_.float_tiles;
    const int64_t columns = p_.panels.columns;
    const bool is_first = k == 0, is_last = k + depth == p_.panels.depth;
    FloatTile tile;
    tile.taps = 1;
    tile.run = depth;
    tile.weights = weights;
    tile.prefetch = reinterpret_cast<const char*>(weights);
    tile.row_stride = columns;
    tile.columns =
        static_cast<int>(std::min<int64_t>(tiles.width, columns - column));
    if (is_first && p_.bias != nullptr) tile.bias = p_.bias + column;
    if (p_.scale != nullptr) tile.scale = p_.scale + column;
    if (is_last) tile.rectifier = p_.rectifier;
    const float* rows[kMostTileRows];
    for (int64_t row = 0; row < p_.rows; row += tiles.rows) {
      tile.rows =
          static_cast<int>(std::min<int64_t>(tiles.rows, p_.rows - row));
      for (int m = 0; m < tile.rows; ++m) {
        rows[m] = p_.in + (row + m) * p_.panels.depth + k;
      }
      tile.inputs = rows;
      const int64_t at = row * columns + column;
      tile.out = p_.out + at;
      tile.residual = is_first
                          ? p_.residual == nullptr ? nullptr : p_.residual + at
                          : tile.out;
      tiles.wide(tile);
    }
  }

  const Int4Product& p_;
  ThreadPool* const pool_;
};

bool MayUnpack(const Int4Product& product) {
  return product.float_tiles != nullptr && product.rows >= kManyRows &&
         product.float_tiles->width % kInt4Width == 0;
}

}  // namespace

Int4Panel Int4Panels::At(const void* packed, int64_t i) const {
  const auto* const bytes = static_cast<const char*>(packed);
  const char* const scales = bytes + code_bytes();
  const char* const zeros = scales + scale_bytes();
  Int4Panel panel;
  panel.codes =
      reinterpret_cast<const uint32_t*>(bytes) + i * groups() * kInt4Width;
  panel.scales =
      reinterpret_cast<const float*>(scales) + i * blocks() * kInt4Width;
  panel.zeros =
      reinterpret_cast<const uint8_t*>(zeros) + i * blocks() * kInt4Width;
  panel.depth = depth;
  panel.block = block;
  return panel;
}

Int4Panels PanelsOf(const BlockGrid& grid, const Int4Tiles* tiles) {
  const bool is_matrix = grid.inner() == 1 || grid.outer() == 1;
  if (tiles == nullptr || !is_matrix || grid.block() % kInt4Group != 0 ||
      grid.shape().num_elements() == 0) {
    return {};
  }
  // A block may be said to be far longer than the depth is: as long as that, it
  // is the same block, and sums of both cannot overflow.
  const int64_t whole =
      (grid.size() + kInt4Group - 1) / kInt4Group * kInt4Group;
  return {tiles, grid.size(), grid.inner() == 1 ? grid.outer() : grid.inner(),
          std::min(grid.block(), whole)};
}

WeightLayout LayoutOf(const Int4Panels& panels, const BlockGrid& grid,
                      const Tensor& scale, const Tensor& zero_point) {
  WeightLayout layout;
  // Scales are part of the packed form: other scales, another form.
  layout.name = absl::StrCat(
      "int4 ", panels.depth, "x", panels.columns, " by ", panels.block, " of ",
      reinterpret_cast<uintptr_t>(scale.raw()), " and ",
      zero_point.num_elements() == 0
          ? 0
          : reinterpret_cast<uintptr_t>(zero_point.raw()),
      grid.inner() == 1 ? " deep" : "");
  layout.packed_bytes = panels.size();
  layout.pack = [panels, grid, scale, zero_point](
                    const Tensor& weights, ThreadPool* pool,
                    WeightLayout::Done done) -> absl::StatusOr<Tensor> {
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor packed,
        Tensor::Zeros(tensorflow::DT_UINT8, Shape({panels.size()})));
    const Places places(grid);
    auto* const bytes = packed.data<uint8_t>();
    const auto* const values = static_cast<const uint8_t*>(weights.raw());
    const int64_t words = panels.groups() * kInt4Width;
    pool->ParallelFor(panels.count(), 1 + kGrain / (words * kInt4Group),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) {
                          PackPanel(
                              panels, places, values, i,
                              reinterpret_cast<uint32_t*>(bytes) + i * words);
                        }
                      });
    uint8_t* const scales = bytes + panels.code_bytes();
    PackScales(panels, places, scale, zero_point,
               reinterpret_cast<float*>(scales), scales + panels.scale_bytes());
    done(weights.TotalBytes());
    return packed;
  };
  layout.unpack = [panels,
                   grid](const Tensor& packed) -> absl::StatusOr<Tensor> {
    const int64_t count = grid.shape().num_elements();
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor weights,
        Tensor::Zeros(tensorflow::DT_UINT8, Shape({FourBitBytes(count)})));
    const Places places(grid);
    auto* const values = weights.data<uint8_t>();
    for (int64_t n = 0; n < panels.columns; ++n) {
      const Int4Panel panel = panels.At(packed.raw(), n / kInt4Width);
      for (int64_t k = 0; k < panels.depth; ++k) {
        const uint32_t word =
            panel.codes[k / kInt4Group * kInt4Width + n % kInt4Width];
        SetFourBits(values, places.Value(k, n),
                    static_cast<int>(word >> (4 * (k % kInt4Group)) & 15));
      }
    }
    return weights;
  };
  return layout;
}

int64_t PaddedColumns(const Int4Panels& panels) {
  return (panels.columns + kMostTileColumns - 1) / kMostTileColumns *
         kMostTileColumns;
}

bool MayMultiplyInt4(const Int4Product& product) {
  return MayUnpack(product) ||
         std::all_of(product.in,
                     product.in + product.rows * product.panels.depth,
                     [](float value) { return std::abs(value) < kMostInput; });
}

void MultiplyInt4(const Int4Product& product, ThreadPool* pool) {
  if (product.rows == 0) return;
  if (MayUnpack(product)) return UnpackedMultiplier(product, pool).Run();
  Int4Multiplier(product, pool).Run();
}

}  // namespace optfarm::runtime
