// The rows of an int8 GEMM as its micro-kernel reads them (ActivationLayout).
// An indirection buffer has pointers to where the pixels of a window lie, and
// to copies where they are not all there. Kernels with packed rows copy what
// the buffer points at, and those with strided rows unless they can read it
// where it lies.

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_INDIRECTION_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_INDIRECTION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/operators/int8_gemm.h"
#include "engine/runtime/ukernels/int8/int8_gemm.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {

// OWNERSHIP: the GEMM outlives it. THREADS: each has one.
class Int8IndirectionBuffer {
 public:
  // `row_sums`: those of SumInt8Rows; nullptr: sums are found here.
  // `repeated`: tiles that are filled several times, in the same order each
  // time.
  Int8IndirectionBuffer(const Int8Gemm& gemm, const int32_t* row_sums,
                        int64_t repeated);

  // Points at rows [first, first + rows); rows <= mr. `place` of the repeated
  // tiles.
  void Fill(int64_t first, int rows, int64_t place);
  // What Fill made, as a tile has it: activations, taps, depth and row init.
  void Describe(Int8GemmTile* tile);
  // Adds the residual of a panel: the activations of these groups. They stay
  // until the next call. REQUIRES: Describe(tile) since the last Fill.
  void AddResidual(absl::Span<const int32_t> groups, int rows,
                   Int8GemmTile* tile);

 private:
  // How a window is read.
  enum class Form {
    // Rows of a matrix lie one behind the other; a tap is a whole row.
    kMatrix,
    // A tap is a pixel, read where it lies.
    kPixels,
    // A tap is a row of the window, read where it lies with up to kr - 1 values
    // behind it, whose weights are zero.
    kRows,
    // One tap: a copy of the whole window.
    kCopies,
  };
  static Form FormOf(const Int8Gemm& gemm);

  // The top left corner of the window of an output pixel.
  struct Corner {
    const uint8_t* image = nullptr;
    int64_t y = 0;
    int64_t x = 0;
  };
  bool FillRun(int64_t first, int rows);
  void FindCorners(int64_t first, int rows);
  bool IsInside(const Corner& corner) const;
  bool FillInside(const Corner& corner, int r, int rows);
  void FillPixels(const Corner& corner, int r, int rows);
  void FillRows(const Corner& corner, int r, int rows);
  void CopyRow(const uint8_t* row, int64_t x, uint8_t* to) const;
  void CopyWindow(const Corner& corner, uint8_t* to) const;
  bool LieAtStride(int64_t first, int rows) const;
  void PlanPacked(const Int8Gemm& gemm, int64_t repeated);
  void PackRows(int rows);
  void FindRowInit(int64_t first, int rows);
  uint32_t SumOfRow(int r, int rows) const;

  const Int8Activations& input_;
  const int32_t* row_sums_;
  int32_t (*sum_values_)(const uint8_t* values, int64_t count);
  int32_t weights_zero_point_;
  const PanelLayout panel_;
  Form form_;
  int64_t taps_ = 1;
  // Values of a tap, and with those that fill up the last group.
  int64_t tap_values_ = 0;
  int64_t tap_depth_ = 0;
  const uint8_t* end_;
  uint8_t padding_value_;
  Corner corners_[kMaxInt8Mr];
  // From a window's corner to each tap. UNITS: bytes.
  std::vector<int64_t> offsets_;
  std::vector<const uint8_t*> pointers_;
  // A tap of padding.
  std::vector<uint8_t> padding_;
  // taps x rows copies.
  std::vector<uint8_t> copies_;
  // ActivationLayout::kPacked and kStrided: what copies the rows, and their
  // room, in places of mr rows. As many tiles as there is room for keep theirs;
  // the others share the last place.
  decltype(MicroKernel::pack) pack_ = nullptr;
  std::optional<Scratch<uint8_t>> packed_;
  int64_t packed_stride_ = 0;
  int64_t place_bytes_ = 0;
  // The first row of the tile that a place has; -1 where it has none, or is not
  // to be kept.
  std::vector<int64_t> kept_;
  bool keeps_ = false;
  // Of the tile that was filled.
  uint8_t* packed_tile_ = nullptr;
  // ActivationLayout::kStrided: of rows that may be read where they lie, from
  // row to row; 0 for none. And whether those of the tile that was filled are.
  int64_t stride_ = 0;
  bool is_at_stride_ = false;
  int32_t row_init_[kMaxInt8Mr] = {};
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_INDIRECTION_H_
