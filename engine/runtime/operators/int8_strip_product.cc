// Convolutions over few channels, an output line at a time.

#include <algorithm>
#include <vector>

#include "engine/runtime/operators/int8_lines.h"
#include "engine/runtime/operators/int8_product.h"
#include "engine/runtime/ukernels/int8/int8_strip.h"

namespace optfarm::runtime {
namespace {

// Multiplications that are worth another thread.
constexpr int64_t kWorkPerRange = 1 << 19;

// What one thread does.
class Strips {
 public:
  Strips(const Int8Product& product, const Int8Starts& starts,
         const Int8Sink& sink)
      : product_(product), starts_(starts), sink_(sink), lines_(product) {
    const int64_t groups = product.weights.padded_depth() / kInt8Group;
    groups_.resize(static_cast<size_t>(groups + product.weights.rest_room()));
    tile_.pixels = groups_.data();
    tile_.taps = groups;
    tile_.depth = kInt8Group;
    tile_.has_row_start = false;
  }

  // Output line `line`, counted over batch and height.
  void Run(int64_t line) {
    lines_.Lay(line);
    for (int64_t group = 0; group < tile_.taps; ++group) {
      groups_[group] = lines_.GroupOf(group);
    }
    FetchAfter(line);
    const int64_t pixels = product_.image.window.x.out;
    Int8Finish finish;
    for (int64_t block = 0; block < product_.weights.blocks(); ++block) {
      const int64_t column = block * kInt8Columns;
      PointAtRest(product_.weights.rest(block));
      tile_.weights = product_.weights.block(block);
      tile_.start = starts_.data() + column;
      tile_.finish = &finish;
      sink_.FindFinish(line * pixels, column, &finish);
      product_.functions.strip(tile_, lines_.step(), pixels);
      tile_.next = nullptr;
    }
  }

 private:
  // The first block fetches what the next line lays.
  void FetchAfter(int64_t line) {
    const Int8Lines::Bytes after = lines_.After(line);
    const int64_t tiles =
        (product_.image.window.x.out + kInt8StripRows - 1) / kInt8StripRows;
    const int64_t groups = tiles * tile_.taps;
    tile_.next = static_cast<const int8_t*>(after.begin);
    tile_.next_step = (after.count + groups - 1) / groups;
  }

  void PointAtRest(absl::Span<const int32_t> rest) {
    tile_.rest_taps = static_cast<int64_t>(rest.size());
    for (size_t i = 0; i < rest.size(); ++i) {
      groups_[tile_.taps + static_cast<int64_t>(i)] = groups_[rest[i]];
    }
  }

  const Int8Product& product_;
  const Int8Starts& starts_;
  const Int8Sink& sink_;
  Int8Lines lines_;
  std::vector<const uint8_t*> groups_;
  Int8Tile tile_;
};

}  // namespace

bool SuitsStrips(const Int8Product& product) {
  return product.is_lined && product.functions.strip != nullptr &&
         product.weights.zero() == 0 &&
         product.image.window.x.out >= kInt8StripRows;
}

void MultiplyStrips(const Int8Product& product, ThreadPool* pool,
                    const Int8Sink& sink) {
  const Int8Starts starts(product);
  const Window& window = product.image.window;
  const int64_t work = window.x.out * product.weights.padded_depth() *
                       product.weights.blocks() * kInt8Columns;
  ForInt8Ranges(pool, product.image.batch * window.y.out, kWorkPerRange / work,
                0, nullptr, [&](int64_t begin, int64_t end, Int8Extremes*) {
                  Strips strips(product, starts, sink);
                  for (int64_t i = begin; i < end; ++i) strips.Run(i);
                });
}

}  // namespace optfarm::runtime
