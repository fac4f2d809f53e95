#include "engine/runtime/operators/int8_padded_image.h"

#include <algorithm>
#include <cstring>

namespace optfarm::runtime {
namespace {

// Bytes that are worth another thread.
constexpr int64_t kBytesPerRange = 64 * 1024;

WindowAxis Inside(WindowAxis axis) {
  axis.in += axis.pad_before + axis.pad_after;
  axis.pad_before = axis.pad_after = 0;
  return axis;
}

}  // namespace

Int8PaddedImage::Int8PaddedImage(const Int8Activations& image, ThreadPool* pool)
    : padded_(image) {
  WindowAxis &y = padded_.window.y, &x = padded_.window.x;
  y = Inside(y);
  x = Inside(x);
  if (y.in == image.window.y.in && x.in == image.window.x.in) return;
  const int64_t row_bytes = x.in * image.channels;
  values_.emplace(image.batch * y.in * row_bytes);
  padded_.values = values_->data();
  pool->ParallelFor(image.batch * y.in,
                    1 + kBytesPerRange / std::max<int64_t>(row_bytes, 1),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) PadRow(image, i);
                    });
}

// Row `row` of the padded image, counted over batch and height.
void Int8PaddedImage::PadRow(const Int8Activations& image, int64_t row) const {
  const WindowAxis &y = image.window.y, &x = image.window.x;
  const auto padding =
      static_cast<uint8_t>(std::clamp(image.zero_point, 0, 255));
  const int64_t height = padded_.window.y.in;
  const int64_t row_bytes = padded_.window.x.in * image.channels;
  uint8_t* to = values_->data() + row * row_bytes;
  const int64_t in_y = row % height - y.pad_before;
  if (in_y < 0 || in_y >= y.in) {
    std::memset(to, padding, static_cast<size_t>(row_bytes));
    return;
  }
  const int64_t before = x.pad_before * image.channels;
  const int64_t count = x.in * image.channels;
  std::memset(to, padding, static_cast<size_t>(before));
  std::memcpy(to + before, image.values + (row / height * y.in + in_y) * count,
              static_cast<size_t>(count));
  std::memset(to + before + count, padding,
              static_cast<size_t>(row_bytes - before - count));
}

}  // namespace optfarm::runtime
