#include "engine/runtime/reference/images/axis_resize.h"

#include <algorithm>
#include <cmath>

namespace optfarm::runtime {
namespace {

// Where output element `i` stands in the input.
double Position(const ResizeRule& rule, const ResizeAxis& axis, int64_t i) {
  const double x = static_cast<double>(i);
  const double in = static_cast<double>(axis.in);
  const double out = static_cast<double>(axis.out);
  switch (rule.coordinates) {
    case ResizeCoordinates::kHalfPixel:
      return (x + 0.5) / axis.scale - 0.5;
    case ResizeCoordinates::kHalfPixelSymmetric: {
      const double adjusted = out / (axis.scale * in);
      const double offset = in / 2 * (1 - adjusted);
      return offset + (x + 0.5) / axis.scale - 0.5;
    }
    case ResizeCoordinates::kPytorchHalfPixel:
      return axis.out > 1 ? (x + 0.5) / axis.scale - 0.5 : 0;
    case ResizeCoordinates::kAlignCorners:
      // The size before it is rounded down, as in ONNX's own answers.
      return axis.out > 1 ? x * (in - 1) / (axis.scale * in - 1) : 0;
    case ResizeCoordinates::kAsymmetric:
      return x / axis.scale;
    case ResizeCoordinates::kTfHalfPixelForNearest:
      return (x + 0.5) / axis.scale;
    case ResizeCoordinates::kTfCropAndResize:
      if (axis.out > 1) {
        return axis.crop_start * (in - 1) +
               x * (axis.crop_end - axis.crop_start) * (in - 1) / (out - 1);
      }
      return 0.5 * (axis.crop_start + axis.crop_end) * (in - 1);
  }
  return 0;
}

double Nearest(ResizeRounding rounding, double x) {
  switch (rounding) {
    case ResizeRounding::kPreferFloor:
      return std::ceil(x - 0.5);
    case ResizeRounding::kPreferCeil:
      return std::floor(x + 0.5);
    case ResizeRounding::kFloor:
      return std::floor(x);
    case ResizeRounding::kCeil:
      return std::ceil(x);
  }
  return x;
}

// Weight of a neighbour at this distance.
double Kernel(const ResizeRule& rule, double distance) {
  const double d = std::abs(distance);
  if (rule.mode == ResizeMode::kLinear) return std::max(0.0, 1 - d);
  const double a = rule.cubic_coefficient;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

void AddNeighbours(const ResizeRule& rule, const ResizeAxis& axis, double x,
                   std::vector<ResizeTap>* taps) {
  // Distances shrink with the image, so that more neighbours count.
  const double shrink = rule.antialias ? std::min(1.0, axis.scale) : 1.0;
  const double reach = (rule.mode == ResizeMode::kLinear ? 1.0 : 2.0) / shrink;
  const auto first = static_cast<int64_t>(std::floor(x - reach)) + 1;
  const auto last = static_cast<int64_t>(std::ceil(x + reach)) - 1;
  const size_t begin = taps->size();
  double sum = 0;
  for (int64_t i = std::max(first, -axis.in - 4);
       i <= std::min(last, 2 * axis.in + 4); ++i) {
    double weight = Kernel(rule, (static_cast<double>(i) - x) * shrink);
    if (rule.exclude_outside && (i < 0 || i >= axis.in)) weight = 0;
    if (weight == 0) continue;
    sum += weight;
    taps->push_back({std::clamp<int64_t>(i, 0, axis.in - 1), weight});
  }
  if (taps->size() == begin || sum == 0) {
    taps->resize(begin);
    taps->push_back(
        {std::clamp<int64_t>(static_cast<int64_t>(x), 0, axis.in - 1), 1});
    return;
  }
  if (!rule.antialias && !rule.exclude_outside) return;
  for (size_t i = begin; i < taps->size(); ++i) (*taps)[i].weight /= sum;
}

}  // namespace

ResizeTaps MakeResizeTaps(const ResizeRule& rule, const ResizeAxis& axis) {
  ResizeTaps result;
  const double most = static_cast<double>(axis.in - 1);
  for (int64_t i = 0; i < axis.out; ++i) {
    result.begin.push_back(static_cast<int64_t>(result.taps.size()));
    double x = Position(rule, axis, i);
    if (!std::isfinite(x)) x = 0;
    if (rule.coordinates == ResizeCoordinates::kTfCropAndResize &&
        (x < 0 || x > most)) {
      if (result.is_outside.empty()) {
        result.is_outside.resize(static_cast<size_t>(axis.out), false);
      }
      result.is_outside[static_cast<size_t>(i)] = true;
    }
    // Far outside everything is the border.
    x = std::clamp(x, -most - 4, 2 * most + 4);
    if (rule.mode == ResizeMode::kNearest) {
      const double nearest = std::clamp(Nearest(rule.rounding, x), 0.0, most);
      result.taps.push_back({static_cast<int64_t>(nearest), 1});
    } else {
      AddNeighbours(rule, axis, x, &result.taps);
    }
  }
  result.begin.push_back(static_cast<int64_t>(result.taps.size()));
  return result;
}

}  // namespace optfarm::runtime
