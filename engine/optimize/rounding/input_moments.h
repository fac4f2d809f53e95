// First and second moments of the windows that layers see: what is known of
// their inputs when weights are rounded (adaptive_rounding.h).

#ifndef OPTFARM_ENGINE_OPTIMIZE_ROUNDING_INPUT_MOMENTS_H_
#define OPTFARM_ENGINE_OPTIMIZE_ROUNDING_INPUT_MOMENTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "engine/optimize/rounding/nearest_plane.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/reference/nn/window.h"

namespace optfarm::optimize {

// How a layer's input becomes windows, each a row of numbers.
struct WindowShape {
  enum class Kind { kMatrix, kConvolution, kDepthwise };
  Kind kind = Kind::kMatrix;
  // Of a window that slides. UNITS: quantized values.
  runtime::WindowAttrs attrs;
  int64_t size_y = 1;
  int64_t size_x = 1;
  // Input channels; a matrix's columns.
  int64_t channels = 0;

  // Numbers in a row: by y, x and channel; by channel, y and x for kDepthwise.
  size_t columns() const {
    return static_cast<size_t>(size_y * size_x * channels);
  }
};

// Sums over windows, in blocks of columns: what lies outside them on the
// matrix of second moments is not kept. All are whole numbers, so that they
// come out the same in any order.
struct InputMoments {
  size_t block = 0;
  int64_t rows = 0;
  std::vector<double> sums;
  std::vector<QuadraticForm> products;

  // The covariances of a block, times the number of rows.
  QuadraticForm Centered(size_t index) const;
  void Add(const InputMoments& other);
};

InputMoments MakeMoments(size_t columns, size_t block);

// UNITS: bytes that MakeMoments takes.
int64_t MomentBytes(size_t columns, size_t block);

// Most rows that sums of products of quantized values are exact for in single
// precision.
inline constexpr int64_t kMostRows = 256;

// Adds up to `rows` windows, equally spaced, of the quantized values, from
// which `zero` is taken off. `phase` moves the choice, so that samples differ
// in it. REQUIRES: rows <= kMostRows. ERRORS: InvalidArgument for quantized
// values of another form than the shape's.
absl::Status AddWindows(const runtime::Tensor& values, int zero,
                        const WindowShape& shape, int64_t rows, int64_t phase,
                        InputMoments* moments);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_ROUNDING_INPUT_MOMENTS_H_
