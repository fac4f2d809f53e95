// The lines of an image as strips read them (int8_strip.h): each with its
// padding on both sides, so that no window lies over an edge.

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_LINES_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_LINES_H_

#include <cstdint>
#include <vector>

#include "engine/runtime/core/scratch.h"
#include "engine/runtime/operators/int8_product.h"

namespace optfarm::runtime {

// As many lines as the windows of one output line cover. OWNERSHIP: the product
// outlives it. THREADS: each has one.
class Int8Lines {
 public:
  // What it throws is ScratchBytes'. REQUIRES: product.is_lined.
  explicit Int8Lines(const Int8Product& product);

  // Lays the lines under the windows of output line `line`, counted over batch
  // and height. A window's group of codes is the one at GroupOf; that of the
  // next window, step() bytes further.
  void Lay(int64_t line);
  // REQUIRES: 0 <= group < padded depth / kInt8Group.
  const uint8_t* GroupOf(int64_t group) const;
  int64_t step() const { return step_; }
  // What is read next of the image when the output line after `line` is laid.
  struct Bytes {
    const void* begin = nullptr;
    int64_t count = 0;
  };
  Bytes After(int64_t line) const;

 private:
  const uint8_t* LineAt(int64_t image, int64_t y);
  void LayLine(int64_t line, uint8_t* to) const;

  const Int8Image& image_;
  const Int8StageFunctions& functions_;
  uint8_t padding_code_;
  int64_t step_;
  // Of a line of a window, and of a line of the image as far as windows reach.
  int64_t tap_groups_;
  int64_t line_bytes_;
  // What each place holds, counted over batch and height.
  std::vector<int64_t> held_;
  Scratch<uint8_t> lines_;
  std::vector<const uint8_t*> taps_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_LINES_H_
