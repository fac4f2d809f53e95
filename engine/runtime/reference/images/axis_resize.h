// Resizing along one axis: which elements of the input make an element of the
// output, with which weights.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_IMAGES_AXIS_RESIZE_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_IMAGES_AXIS_RESIZE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace optfarm::runtime {

enum class ResizeMode { kNearest, kLinear, kCubic };
enum class ResizeCoordinates {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfHalfPixelForNearest,
  kTfCropAndResize
};
enum class ResizeRounding { kPreferFloor, kPreferCeil, kFloor, kCeil };

struct ResizeRule {
  ResizeMode mode = ResizeMode::kNearest;
  ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel;
  ResizeRounding rounding = ResizeRounding::kPreferFloor;
  double cubic_coefficient = -0.75;
  // Neighbours beyond the border have no weight; else they are the border.
  bool exclude_outside = false;
  // Wider kernels where the image shrinks.
  bool antialias = false;
};

// REQUIRES: in >= 1, scale > 0. The part of the image that is taken is only for
// kTfCropAndResize.
struct ResizeAxis {
  int64_t in = 1;
  int64_t out = 1;
  double scale = 1;
  double crop_start = 0;
  double crop_end = 1;
};

struct ResizeTap {
  int64_t index = 0;
  double weight = 1;
};

struct ResizeTaps {
  // Taps of output element i: [begin[i], begin[i + 1]).
  std::vector<ResizeTap> taps;
  std::vector<int64_t> begin;
  // Output elements that lie outside of the image; empty when none does.
  std::vector<bool> is_outside;
};

ResizeTaps MakeResizeTaps(const ResizeRule& rule, const ResizeAxis& axis);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_IMAGES_AXIS_RESIZE_H_
