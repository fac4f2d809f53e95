// The rows of an input as row kernels read them (int8_row_kernel.h): each with
// its padding on both sides, so that no window reaches over an edge.

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_PADDED_ROWS_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_PADDED_ROWS_H_

#include <cstdint>
#include <vector>

#include "engine/runtime/core/scratch.h"
#include "engine/runtime/operators/int8_gemm.h"

namespace optfarm::runtime {

// As many rows as the windows of one output row cover. OWNERSHIP: the GEMM
// outlives it. THREADS: each has one.
class Int8PaddedRows {
 public:
  // What it throws is ScratchBytes'. REQUIRES: gemm.is_by_row.
  explicit Int8PaddedRows(const Int8Gemm& gemm);

  // Pads the rows under the windows of output row `row`, counted over batch and
  // height. The first window's groups are those at GroupOf; those of the next
  // window, step() bytes further.
  void MoveTo(int64_t row);
  // REQUIRES: 0 <= group < padded depth / kr.
  const uint8_t* GroupOf(int64_t group) const;
  int64_t step() const { return step_; }
  // What of the input is read next, for the output row after `row`.
  struct Bytes {
    const void* begin = nullptr;
    int64_t count = 0;
  };
  Bytes After(int64_t row) const;

 private:
  const uint8_t* RowAt(int64_t image, int64_t y);
  void PadRow(int64_t row, uint8_t* to) const;

  const Int8Activations& input_;
  const int kr_;
  uint8_t padding_value_;
  int64_t step_;
  // Of a row of a window, and of a row of the input as far as windows reach.
  int64_t tap_groups_;
  int64_t row_bytes_;
  // What each place holds, counted over batch and height.
  std::vector<int64_t> held_;
  Scratch<uint8_t> rows_;
  std::vector<const uint8_t*> taps_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_PADDED_ROWS_H_
