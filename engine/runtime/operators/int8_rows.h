// The rows of an 8-bit product as the tile functions read them (int8_tile.h):
// pointers into the image where a window's pixels lie, copies where they are
// not all there.

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_ROWS_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/runtime/operators/int8_product.h"

namespace optfarm::runtime {

// OWNERSHIP: the product outlives it. THREADS: each has one.
class Int8Rows {
 public:
  // `row_sums`: what SumInt8Rows finds; nullptr: sums are found here.
  explicit Int8Rows(const Int8Product& product,
                    const int32_t* row_sums = nullptr);

  // Makes rows [first, first + rows) those of the tile; rows <= kInt8Rows.
  void Fill(int64_t first, int rows);
  // Pixels, taps, depth and what rows begin with.
  void Describe(Int8Tile* tile) const;
  // Adds taps for these groups of a row, which Fill made; they stay until the
  // next call. Returns how many there are.
  int64_t PointAtRest(absl::Span<const int32_t> groups, int rows);

 private:
  // How a window is read.
  enum class Form {
    // Rows of a matrix lie one behind the other; a tap is a whole row.
    kMatrix,
    // A tap is a pixel, read where it lies.
    kPixels,
    // A tap is a line of the window, read where it lies with up to three codes
    // behind it, whose weights are zero.
    kLines,
    // One tap: a copy of the whole window.
    kCopies,
  };
  static Form FormOf(const Int8Product& product);

  // The top left corner of the window of an output pixel.
  struct Corner {
    const uint8_t* image = nullptr;
    int64_t y = 0;
    int64_t x = 0;
  };
  bool PointAtRun(int64_t first, int rows);
  void FindCorners(int64_t first, int rows);
  bool IsInside(const Corner& corner) const;
  bool PointInside(const Corner& corner, int r, int rows);
  void PointAtPixels(const Corner& corner, int r, int rows);
  void PointAtLines(const Corner& corner, int r, int rows);
  void CopyLine(const uint8_t* line, int64_t x, uint8_t* to) const;
  void CopyWindow(const Corner& corner, uint8_t* to) const;
  void FindRowStarts(int64_t first, int rows);
  uint32_t SumOfRow(int r, int rows) const;

  const Int8Image& image_;
  const int32_t* row_sums_;
  int32_t (*sum_codes_)(const uint8_t* codes, int64_t count);
  int32_t weights_zero_;
  Form form_;
  int64_t taps_ = 1;
  // Codes of a tap, and with those that fill up the last group.
  int64_t tap_codes_ = 0;
  int64_t tap_depth_ = 0;
  const uint8_t* end_;
  uint8_t padding_code_;
  Corner corners_[kInt8Rows];
  // From a window's corner to each tap. UNITS: bytes.
  std::vector<int64_t> offsets_;
  std::vector<const uint8_t*> pixels_;
  // A tap of padding.
  std::vector<uint8_t> padding_;
  // taps x rows copies.
  std::vector<uint8_t> copies_;
  int32_t row_start_[kInt8Rows] = {};
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_ROWS_H_
