// Drives the int8 GEMM micro-kernels: cuts the product into tiles of rows and
// groups of panels.

#include <algorithm>
#include <optional>

#include "engine/runtime/core/scratch.h"
#include "engine/runtime/operators/int8_gemm.h"
#include "engine/runtime/operators/int8_indirection.h"
#include "engine/runtime/operators/int8_padded_image.h"
#include "engine/runtime/operators/int8_row_sums.h"
#include "engine/runtime/ukernels/micro_kernel_catalog.h"

namespace optfarm::runtime {
namespace {

// Weights that are worked on at a time, while the next are fetched: so few that
// waiting for the first is short, so many that indirection buffers are not
// filled too often. UNITS: bytes.
constexpr int64_t kPassBytes = 96 * 1024;
// Multiplications that are worth another thread.
constexpr int64_t kWorkPerRange = 1 << 19;
// Tiles that fetch what is read after them: enough to fetch four times as much
// as they read.
constexpr int64_t kFetchingTiles = 16;

// How the work is cut. Tiles of rows, as equal as can be, stand in sections;
// each section passes groups of panels, one after the other. Items are counted
// over sections, groups and the section's tiles.
struct Cut {
  struct Item {
    int64_t tile = 0;
    int64_t group = 0;
    // Of the tiles in its section.
    int64_t place = 0;
    int64_t places = 1;
  };

  // Rows that a tile has at most, and beyond which none reaches: of the run
  // that it begins in, which has run_tiles.
  int64_t tile_rows = 1;
  int64_t run = 1;
  int64_t run_tiles = 1;
  int64_t tiles = 1;
  int64_t sections = 1;
  int64_t group_panels = 1;
  int64_t groups = 1;
  // Equal parts of the items that are likely to have a thread each.
  int64_t threads = 1;

  int64_t items() const { return tiles * groups; }
  int64_t RowOf(int64_t tile) const {
    if (run_tiles == tiles) return tile * tile_rows;
    return tile / run_tiles * run + tile % run_tiles * tile_rows;
  }
  int64_t CountOf(int64_t tile) const {
    const int64_t place = run_tiles == tiles ? tile : tile % run_tiles;
    return std::min(tile_rows, run - place * tile_rows);
  }
  int64_t SectionBegin(int64_t i) const { return tiles * i / sections; }
  int64_t ThreadOf(int64_t item) const { return item * threads / items(); }
  Item ItemAt(int64_t i) const {
    int64_t section = 0;
    while (SectionBegin(section + 1) * groups <= i) ++section;
    const int64_t first = SectionBegin(section);
    const int64_t places = SectionBegin(section + 1) - first;
    const int64_t in_section = i - first * groups;
    const int64_t place = in_section % places;
    return {first + place, in_section / places, place, places};
  }
  // Item i, which comes after `item`: a tile begins with its number, and the
  // divisions took longer than what is left of the tile before hides.
  Item After(const Item& item, int64_t i) const {
    if (item.place + 1 == item.places) return ItemAt(i);
    return {item.tile + 1, item.group, item.place + 1, item.places};
  }
};

// Whether threads share out columns, so that each reads all rows and a part of
// the weights, instead of the other way round. Weights can be fetched ahead;
// rows were just written by other threads, which makes them dear.
bool SplitsColumns(const Int8Gemm& gemm, int64_t tiles, int threads) {
  const WindowAxis &y = gemm.input.window.y, &x = gemm.input.window.x;
  const int64_t input_bytes =
      gemm.input.batch * y.in * x.in * gemm.input.channels;
  const int64_t weight_bytes =
      gemm.weights.panels() * gemm.weights.panel_bytes();
  return tiles < threads ||
         (gemm.weights.panels() >= threads && weight_bytes > 4 * input_bytes);
}

Cut PlanCut(const Int8Gemm& gemm, int threads) {
  const int64_t panels = gemm.weights.panels();
  Cut cut;
  cut.threads = threads;
  cut.run = gemm.run();
  cut.tile_rows = TileRows(cut.run, gemm.kernel().mr);
  cut.run_tiles = (cut.run + cut.tile_rows - 1) / cut.tile_rows;
  cut.tiles = gemm.input.rows() / cut.run * cut.run_tiles;
  const int64_t most =
      std::clamp<int64_t>(kPassBytes / gemm.weights.panel_bytes(), 1, panels);
  cut.groups = (panels + most - 1) / most;
  if (threads > 1 && SplitsColumns(gemm, cut.tiles, threads)) {
    const int64_t wanted =
        cut.tiles < threads ? 4 * int64_t{threads} / cut.tiles : threads;
    cut.groups = (cut.groups + wanted - 1) / wanted * wanted;
  } else {
    cut.sections = threads;
  }
  cut.group_panels =
      std::max<int64_t>(1, (panels + cut.groups - 1) / cut.groups);
  cut.groups = (panels + cut.group_panels - 1) / cut.group_panels;
  return cut;
}

// Whether sums of rows serve several groups, or windows that share pixels.
bool SumsRowsFirst(const Int8Gemm& gemm, const Cut& cut) {
  const Window& window = gemm.input.window;
  return gemm.weights.zero_point() != 0 &&
         gemm.input.channels % gemm.weights.layout().kr == 0 &&
         (cut.groups > 1 || window.y.size > window.y.stride ||
          window.x.size > window.x.stride);
}

// What one thread does: items [begin, end) of the cut.
struct Multiplication {
  const Int8Gemm& gemm;
  const Cut& cut;
  const AccumulatorInit& init;
  const Int8Sink& sink;
  // nullptr where tiles find them.
  const int32_t* row_sums = nullptr;

  // `extremes` may be nullptr.
  void Run(int64_t begin, int64_t end, Int8Extremes* extremes) const;
  FirstWeights::Place FindAhead(int64_t i, const Cut::Item& item) const;
  void FetchPart(const FirstWeights::Place& ahead, const Cut::Item& item,
                 int64_t panel, Int8GemmTile* tile) const;
};

// What is read after an item's group: the next group, by who will read it, or
// the next layer's first weights.
FirstWeights::Place Multiplication::FindAhead(int64_t i,
                                              const Cut::Item& item) const {
  const bool has_next =
      item.group + 1 < cut.groups &&
      (cut.sections > 1 || cut.ThreadOf(i) == cut.ThreadOf(i + item.places));
  if (has_next) {
    const Int8Weights& weights = gemm.weights;
    const int64_t first = (item.group + 1) * cut.group_panels;
    const int64_t panels = std::min(cut.group_panels, weights.panels() - first);
    return {reinterpret_cast<const char*>(weights.panel(first)),
            panels * weights.panel_bytes()};
  }
  if (gemm.next == nullptr) return {};
  // The next image is likely to be the result, and threads to share it out by
  // SplitsColumns.
  const int64_t result = gemm.input.rows() * gemm.weights.columns();
  const bool is_shared = gemm.next->IsLargerThan(4 * result);
  return gemm.next->Of(is_shared ? cut.ThreadOf(i) : 0, cut.threads);
}

// The last tiles of a group and section fetch what is ahead, each a part.
void Multiplication::FetchPart(const FirstWeights::Place& ahead,
                               const Cut::Item& item, int64_t panel,
                               Int8GemmTile* tile) const {
  const int64_t first = item.group * cut.group_panels;
  const int64_t panels =
      std::min(cut.group_panels, gemm.weights.panels() - first);
  const int64_t tiles = std::min(item.places, kFetchingTiles);
  const int64_t parts = tiles * panels;
  const int64_t part =
      (item.place - item.places + tiles) * panels + panel - first;
  const int64_t groups = gemm.weights.padded_depth() / gemm.weights.layout().kr;
  tile->prefetch =
      reinterpret_cast<const int8_t*>(ahead.begin) + ahead.bytes * part / parts;
  tile->prefetch_step = (ahead.bytes + parts * groups - 1) / (parts * groups);
}

void Multiplication::Run(int64_t begin, int64_t end,
                         Int8Extremes* extremes) const {
  const Int8Weights& weights = gemm.weights;
  alignas(64) int32_t scratch[kMaxInt8Mr * kMaxInt8Nr];
  const int nr = weights.layout().nr;
  const int64_t repeated =
      cut.groups > 1 ? (cut.tiles + cut.sections - 1) / cut.sections : 1;
  Int8IndirectionBuffer source(gemm, row_sums, repeated);
  Int8GemmTile tile;
  tile.has_least_weight = weights.has_least_weight();
  Int8Epilogue epilogue;
  const bool has_residual = weights.residual_room() > 0;
  const MicroKernel& kernel = gemm.kernel();
  const KernelScope scope(kernel);
  const bool requantizes = kernel.Can(kRequantizes) && extremes == nullptr;
  const auto run = kernel.run.int8_gemm;
  Cut::Item item;
  for (int64_t i = begin; i < end; ++i) {
    item = i == begin ? cut.ItemAt(i) : cut.After(item, i);
    FirstWeights::Place ahead;
    if (item.place >= item.places - kFetchingTiles) ahead = FindAhead(i, item);
    tile.prefetch = nullptr;
    const int64_t row = cut.RowOf(item.tile);
    const int count = static_cast<int>(cut.CountOf(item.tile));
    source.Fill(row, count, item.place);
    source.Describe(&tile);
    const int64_t first = item.group * cut.group_panels;
    const int64_t last = std::min(first + cut.group_panels, weights.panels());
    for (int64_t panel = first; panel < last; ++panel) {
      const int64_t column = panel * nr;
      tile.weights = weights.panel(panel);
      if (has_residual) {
        source.AddResidual(weights.residual(panel), count, &tile);
      }
      if (ahead.bytes > 0) FetchPart(ahead, item, panel, &tile);
      tile.init = init.data() + column;
      tile.channels = weights.columns() - column;
      if (requantizes && sink.FindEpilogue(row, column, &epilogue)) {
        tile.epilogue = &epilogue;
        run(tile, count);
        continue;
      }
      tile.out = sink.PlaceOf(row, count, column, scratch);
      run(tile, count);
      const Int8Accumulators accumulators = {tile.out, count, nr, column};
      if (extremes != nullptr) {
        gemm.kernels.stages->find_range(accumulators,
                                        extremes->low.data() + column,
                                        extremes->high.data() + column);
      }
      sink.Take(accumulators, row);
    }
  }
}

void MultiplyTiles(const Int8Gemm& gemm, ThreadPool* pool, const Int8Sink& sink,
                   Int8Extremes* extremes) {
  const Cut cut = PlanCut(gemm, pool->threads());
  const AccumulatorInit init(gemm);
  Multiplication multiplication = {gemm, cut, init, sink};
  std::optional<Scratch<int32_t>> row_sums;
  if (SumsRowsFirst(gemm, cut)) {
    row_sums.emplace(gemm.input.rows());
    SumInt8Rows(gemm, pool, row_sums->data());
    multiplication.row_sums = row_sums->data();
  }
  const int64_t work = cut.tile_rows * gemm.weights.padded_depth() *
                       cut.group_panels * gemm.weights.layout().nr;
  ForInt8Ranges(pool, cut.items(), kWorkPerRange / work,
                gemm.weights.padded_columns(), extremes,
                [&](int64_t begin, int64_t end, Int8Extremes* part) {
                  multiplication.Run(begin, end, part);
                });
}

// Whether windows are read from a copy of the image with its padding: where the
// kernel reads strided rows, and where the windows' rows that hang over its
// sides would be copied one by one, a few values at a time.
bool PadsImage(const Int8Gemm& gemm) {
  if (gemm.RunsAtStride(gemm.kernel())) return true;
  if (!gemm.is_by_row) return false;
  const WindowAxis &y = gemm.input.window.y, &x = gemm.input.window.x;
  const int64_t left = (x.pad_before + x.stride - 1) / x.stride;
  const int64_t room = x.in + x.pad_before - x.size;
  const int64_t inside = room < 0 ? 0 : room / x.stride + 1 - left;
  const int64_t hanging = x.out - std::clamp<int64_t>(inside, 0, x.out);
  const int64_t image =
      (y.in + y.pad_before + y.pad_after) * (x.in + x.pad_before + x.pad_after);
  // A long copy moves more values at a time.
  constexpr int64_t kShortCopy = 4;
  return image < kShortCopy * hanging * y.out * y.size * x.size;
}

}  // namespace

FirstWeights FirstInt8Weights(const Int8Weights& weights) {
  const int64_t bytes = weights.panel_bytes();
  return {weights.packed(), bytes, weights.panels(),
          std::max(bytes, std::min(kPassBytes, bytes * weights.panels()))};
}

void Multiply(const Int8Gemm& gemm, ThreadPool* pool, const Int8Sink& sink,
              Int8Extremes* extremes) {
  if (gemm.is_depthwise) {
    return MultiplyDepthwise(gemm, pool, sink, extremes);
  }
  Int8Epilogue epilogue;
  if (extremes == nullptr && SuitsRowKernel(gemm) &&
      sink.FindEpilogue(0, 0, &epilogue)) {
    return MultiplyRows(gemm, pool, sink);
  }
  if (!PadsImage(gemm)) {
    return MultiplyTiles(gemm, pool, sink, extremes);
  }
  const Int8PaddedImage image(gemm.input, pool);
  const Int8Gemm inside = {.input = image.padded(),
                           .weights = gemm.weights,
                           .kernels = gemm.kernels,
                           .bias = gemm.bias,
                           .init = gemm.init,
                           .is_by_row = gemm.is_by_row,
                           .next = gemm.next};
  MultiplyTiles(inside, pool, sink, extremes);
}

}  // namespace optfarm::runtime
