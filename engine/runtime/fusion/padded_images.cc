#include "engine/runtime/fusion/padded_images.h"

#include <algorithm>

namespace optfarm::runtime {
namespace {

// The axis in a copy that has all that windows reach and no more.
WindowAxis PaddedAxis(const WindowAxis& axis) {
  WindowAxis padded = axis;
  padded.in =
      (axis.out - 1) * axis.stride + (axis.size - 1) * axis.dilation + 1;
  padded.pad_before = padded.pad_after = 0;
  return padded;
}

// Positions of the window that reach over either end.
int64_t CountHanging(const WindowAxis& axis) {
  const int64_t reach = (axis.size - 1) * axis.dilation + 1;
  const int64_t before =
      std::min(axis.out, (axis.pad_before + axis.stride - 1) / axis.stride);
  const int64_t room = axis.in - reach + axis.pad_before;
  const int64_t inside = room < 0 ? 0 : room / axis.stride + 1;
  return before + std::max<int64_t>(0, axis.out - std::max(inside, before));
}

}  // namespace

PaddedImages::PaddedImages(const float* images, int64_t batch, int64_t channels,
                           const Window& window, bool by_rows)
    : data_(images), window_(window) {
  if (!by_rows) return;
  const WindowAxis& y = window.y;
  const WindowAxis& x = window.x;
  const int64_t hanging = y.out * CountHanging(x) * y.size * x.size;
  if (hanging > PaddedAxis(y).in * PaddedAxis(x).in) Copy(batch, channels);
}

void PaddedImages::Copy(int64_t batch, int64_t channels) {
  const WindowAxis from_y = window_.y;
  const WindowAxis from_x = window_.x;
  window_ = {PaddedAxis(from_y), PaddedAxis(from_x)};
  const int64_t width = window_.x.in * channels;
  copy_.emplace(batch * window_.y.in * width);
  // The part of a row that the image has.
  const int64_t before = std::min(from_x.pad_before, window_.x.in) * channels;
  const int64_t inside =
      std::min(from_x.in * channels, std::max<int64_t>(0, width - before));
  float* to = copy_->data();
  for (int64_t image = 0; image < batch; ++image) {
    const float* const rows = data_ + image * from_y.in * from_x.in * channels;
    for (int64_t i = 0; i < window_.y.in; ++i, to += width) {
      const int64_t y = i - from_y.pad_before;
      if (y < 0 || y >= from_y.in) {
        std::fill_n(to, width, 0.0f);
        continue;
      }
      std::fill_n(to, before, 0.0f);
      std::copy_n(rows + y * from_x.in * channels, inside, to + before);
      std::fill_n(to + before + inside, width - before - inside, 0.0f);
    }
  }
  data_ = copy_->data();
}

}  // namespace optfarm::runtime
