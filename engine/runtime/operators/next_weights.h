// What the layer behind this one reads first. Large layers wait for their first
// weights, which lie far away; the last tiles of the layer before have time to
// fetch them.

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_NEXT_WEIGHTS_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_NEXT_WEIGHTS_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "engine/runtime/core/packed_weights.h"

namespace optfarm::runtime {

// The first of some packed weights that threads share out by parts.
struct FirstWeights {
  PackedWeights packed;
  // UNITS: bytes from part to part.
  int64_t part_bytes = 0;
  int64_t parts = 0;
  // UNITS: bytes that a thread reads before it can fetch for itself.
  int64_t bytes = 0;

  struct Place {
    const char* begin = nullptr;
    int64_t bytes = 0;
  };
  bool is_worth_fetching() const { return parts > 0; }
  bool IsLargerThan(int64_t that) const { return parts * part_bytes > that; }
  // What thread `thread` of `threads` reads first; nothing while nothing is
  // packed.
  Place Of(int64_t thread, int64_t threads) const {
    const Tensor* ready = packed.IfReady();
    if (ready == nullptr || parts == 0) return {};
    const int64_t first = parts * thread / threads * part_bytes;
    return {static_cast<const char*>(ready->raw()) + first,
            std::min(bytes, ready->TotalBytes() - first)};
  }
};

// A role of kernels that read packed weights.
class WeightReader {
 public:
  virtual ~WeightReader() = default;
  // Nothing worth fetching for weights that are few.
  virtual FirstWeights First() const = 0;
  // REQUIRES: nothing runs yet.
  virtual void SetNext(FirstWeights next) { next_ = std::move(next); }

 protected:
  const FirstWeights& next() const { return next_; }

 private:
  FirstWeights next_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_NEXT_WEIGHTS_H_
