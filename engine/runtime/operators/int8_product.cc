#include "engine/runtime/operators/int8_product.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/synchronization/mutex.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/operators/int8_row_sums.h"
#include "engine/runtime/operators/int8_rows.h"

namespace optfarm::runtime {
namespace {

// Weights that are worked on at a time, while the next are fetched: so few that
// waiting for the first is short, so many that rows are not pointed at too
// often. UNITS: bytes.
constexpr int64_t kGroupBytes = 96 * 1024;
// Multiplications that are worth another thread.
constexpr int64_t kWorkPerRange = 1 << 19;
// Tiles that fetch what is read after them: enough to fetch four times as much
// as they read.
constexpr int64_t kFetchingTiles = 16;

// How the work is cut. Tiles of rows, as equal as can be, stand in sections;
// each section passes groups of blocks of columns, one after the other. Items
// are counted over sections, groups and the section's tiles.
struct Cut {
  struct Item {
    int64_t tile = 0;
    int64_t group = 0;
    // Of the tiles in its section.
    int64_t place = 0;
    int64_t places = 1;
  };

  int64_t tile_rows = 1;
  int64_t tiles = 1;
  int64_t sections = 1;
  int64_t group_blocks = 1;
  int64_t groups = 1;
  // Equal parts of the items that are likely to have a thread each.
  int64_t threads = 1;

  int64_t items() const { return tiles * groups; }
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
bool SplitsColumns(const Int8Product& product, int64_t tiles, int threads) {
  const WindowAxis &y = product.image.window.y, &x = product.image.window.x;
  const int64_t image_bytes =
      product.image.batch * y.in * x.in * product.image.channels;
  const int64_t weight_bytes =
      product.weights.blocks() * product.weights.block_bytes();
  return tiles < threads || (product.weights.blocks() >= threads &&
                             weight_bytes > 4 * image_bytes);
}

Cut PlanCut(const Int8Product& product, int threads) {
  const int64_t rows = product.image.rows();
  const int64_t blocks = product.weights.blocks();
  Cut cut;
  cut.threads = threads;
  cut.tile_rows = Int8TileRows(rows);
  cut.tiles = (rows + cut.tile_rows - 1) / cut.tile_rows;
  const int64_t most = std::clamp<int64_t>(
      kGroupBytes / product.weights.block_bytes(), 1, blocks);
  cut.groups = (blocks + most - 1) / most;
  if (threads > 1 && SplitsColumns(product, cut.tiles, threads)) {
    const int64_t wanted =
        cut.tiles < threads ? 4 * int64_t{threads} / cut.tiles : threads;
    cut.groups = (cut.groups + wanted - 1) / wanted * wanted;
  } else {
    cut.sections = threads;
  }
  cut.group_blocks =
      std::max<int64_t>(1, (blocks + cut.groups - 1) / cut.groups);
  cut.groups = (blocks + cut.group_blocks - 1) / cut.group_blocks;
  return cut;
}

// Whether sums of rows serve several groups, or windows that share pixels.
bool SumsRowsFirst(const Int8Product& product, const Cut& cut) {
  const Window& window = product.image.window;
  return product.weights.zero() != 0 &&
         product.image.channels % kInt8Group == 0 &&
         (cut.groups > 1 || window.y.size > window.y.stride ||
          window.x.size > window.x.stride);
}

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
  const Int8Starts& starts;
  const Int8Sink& sink;
  // nullptr where tiles find them.
  const int32_t* row_sums = nullptr;

  // `extremes` may be nullptr.
  void Run(int64_t begin, int64_t end, Int8Extremes* extremes) const;
  FirstWeights::Place FindAhead(int64_t i, const Cut::Item& item) const;
  void FetchPart(const FirstWeights::Place& ahead, const Cut::Item& item,
                 int64_t block, Int8Tile* tile) const;
};

// What is read after an item's group: the next group, by who will read it, or
// the next layer's first weights.
FirstWeights::Place Multiplication::FindAhead(int64_t i,
                                              const Cut::Item& item) const {
  const bool has_next =
      item.group + 1 < cut.groups &&
      (cut.sections > 1 || cut.ThreadOf(i) == cut.ThreadOf(i + item.places));
  if (has_next) {
    const Int8Weights& weights = product.weights;
    const int64_t first = (item.group + 1) * cut.group_blocks;
    const int64_t blocks = std::min(cut.group_blocks, weights.blocks() - first);
    return {reinterpret_cast<const char*>(weights.block(first)),
            blocks * weights.block_bytes()};
  }
  if (product.next == nullptr) return {};
  // The next image is likely to be the result, and threads to share it out by
  // SplitsColumns.
  const int64_t result = product.image.rows() * product.weights.columns();
  const bool is_shared = product.next->IsLargerThan(4 * result);
  return product.next->Of(is_shared ? cut.ThreadOf(i) : 0, cut.threads);
}

// The last tiles of a group and section fetch what is ahead, each a part.
void Multiplication::FetchPart(const FirstWeights::Place& ahead,
                               const Cut::Item& item, int64_t block,
                               Int8Tile* tile) const {
  const int64_t first = item.group * cut.group_blocks;
  const int64_t blocks =
      std::min(cut.group_blocks, product.weights.blocks() - first);
  const int64_t tiles = std::min(item.places, kFetchingTiles);
  const int64_t parts = tiles * blocks;
  const int64_t part =
      (item.place - item.places + tiles) * blocks + block - first;
  const int64_t groups = product.weights.padded_depth() / kInt8Group;
  tile->next =
      reinterpret_cast<const int8_t*>(ahead.begin) + ahead.bytes * part / parts;
  tile->next_step = (ahead.bytes + parts * groups - 1) / (parts * groups);
}

void Multiplication::Run(int64_t begin, int64_t end,
                         Int8Extremes* extremes) const {
  const Int8Weights& weights = product.weights;
  const int64_t rows = product.image.rows();
  alignas(64) int32_t scratch[kInt8Rows * kInt8Columns];
  Int8Rows source(product, row_sums);
  Int8Tile tile;
  Int8Finish finish;
  const bool has_rest = weights.rest_room() > 0;
  const bool finishes = product.functions.tile_finishes && extremes == nullptr;
  Cut::Item item;
  for (int64_t i = begin; i < end; ++i) {
    item = i == begin ? cut.ItemAt(i) : cut.After(item, i);
    FirstWeights::Place ahead;
    if (item.place >= item.places - kFetchingTiles) ahead = FindAhead(i, item);
    tile.next = nullptr;
    const int64_t row = item.tile * cut.tile_rows;
    const int count = static_cast<int>(std::min(cut.tile_rows, rows - row));
    source.Fill(row, count);
    source.Describe(&tile);
    const int64_t first = item.group * cut.group_blocks;
    const int64_t last = std::min(first + cut.group_blocks, weights.blocks());
    for (int64_t block = first; block < last; ++block) {
      const int64_t column = block * kInt8Columns;
      tile.weights = weights.block(block);
      if (has_rest) {
        tile.rest_taps = source.PointAtRest(weights.rest(block), count);
      }
      if (ahead.bytes > 0) FetchPart(ahead, item, block, &tile);
      tile.start = starts.data() + column;
      if (finishes && sink.FindFinish(row, column, &finish)) {
        tile.finish = &finish;
        product.functions.tile(tile, count);
        continue;
      }
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

FirstWeights FirstInt8Weights(const Int8Weights& weights) {
  const int64_t bytes = weights.block_bytes();
  return {weights.packed(), bytes, weights.blocks(),
          std::max(bytes, std::min(kGroupBytes, bytes * weights.blocks()))};
}

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

std::vector<int32_t> FindInt8Starts(const Int8Product& product) {
  const Int8Weights& weights = product.weights;
  const auto zero = static_cast<uint32_t>(product.image.zero);
  const auto weights_zero = static_cast<uint32_t>(weights.zero());
  const uint32_t both =
      static_cast<uint32_t>(product.depth()) * zero * weights_zero;
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

Int8Starts::Int8Starts(const Int8Product& product) : data_(product.starts) {
  if (data_ != nullptr) return;
  found_ = FindInt8Starts(product);
  data_ = found_.data();
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
  Int8Finish finish;
  if (extremes == nullptr && SuitsStrips(product) &&
      sink.FindFinish(0, 0, &finish)) {
    return MultiplyStrips(product, pool, sink);
  }
  const Cut cut = PlanCut(product, pool->threads());
  const Int8Starts starts(product);
  Multiplication multiplication = {product, cut, starts, sink};
  std::optional<Scratch<int32_t>> row_sums;
  if (SumsRowsFirst(product, cut)) {
    row_sums.emplace(product.image.rows());
    SumInt8Rows(product, pool, row_sums->data());
    multiplication.row_sums = row_sums->data();
  }
  const int64_t work = cut.tile_rows * product.weights.padded_depth() *
                       cut.group_blocks * kInt8Columns;
  ForInt8Ranges(pool, cut.items(), kWorkPerRange / work,
                product.weights.blocks() * kInt8Columns, extremes,
                [&](int64_t begin, int64_t end, Int8Extremes* part) {
                  multiplication.Run(begin, end, part);
                });
}

}  // namespace optfarm::runtime
