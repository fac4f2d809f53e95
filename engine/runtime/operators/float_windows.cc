#include "engine/runtime/operators/float_windows.h"

#include <algorithm>
#include <vector>

namespace optfarm::runtime {
namespace {

// UNITS: inputs worth handing to another thread.
constexpr int64_t kGrain = 32 * 1024;

// The cells of a window inside the image, along one axis.
struct Cells {
  int64_t begin = 0;
  int64_t end = 0;
};

Cells InsideCells(const WindowAxis& axis, int64_t out) {
  const int64_t origin = out * axis.stride - axis.pad_before;
  const int64_t d = axis.dilation;
  const int64_t begin = origin >= 0 ? 0 : (-origin + d - 1) / d;
  const int64_t room = axis.in - origin;
  const int64_t end = room <= 0 ? 0 : std::min(axis.size, (room + d - 1) / d);
  return {begin, std::max(begin, end)};
}

// The pixels [first, last) of a row all of whose cells are inside.
void FindWhole(const WindowAxis& axis, int64_t* first, int64_t* last) {
  const int64_t reach = (axis.size - 1) * axis.dilation;
  *first = (axis.pad_before + axis.stride - 1) / axis.stride;
  const int64_t room = axis.in + axis.pad_before - reach;
  *last = room <= 0 ? 0 : (room + axis.stride - 1) / axis.stride;
  *first = std::min(*first, axis.out);
  *last = std::clamp(*last, *first, axis.out);
}

class RowSlide {
 public:
  explicit RowSlide(const WindowSlide& slide)
      : slide_(slide),
        inputs_(slide.window.y.size * slide.window.x.size),
        weights_(inputs_.size()) {
    FindWhole(slide.window.x, &first_whole_, &last_whole_);
  }

  // Rows are counted over batch and height.
  void Run(int64_t row, float* out, int64_t out_stride) {
    const WindowAxis& y = slide_.window.y;
    const WindowAxis& x = slide_.window.x;
    const int64_t oy = row % y.out;
    image_ = slide_.image + row / y.out * y.in * x.in * slide_.channels;
    out_ = out;
    out_stride_ = out_stride;
    y_cells_ = InsideCells(y, oy);
    y_origin_ = oy * y.stride - y.pad_before;
    for (int64_t ox = 0; ox < first_whole_; ++ox) {
      RunPixels(ox, 1, InsideCells(x, ox));
    }
    if (last_whole_ > first_whole_) {
      RunPixels(first_whole_, last_whole_ - first_whole_, {0, x.size});
    }
    for (int64_t ox = last_whole_; ox < x.out; ++ox) {
      RunPixels(ox, 1, InsideCells(x, ox));
    }
  }

 private:
  void RunPixels(int64_t ox, int64_t count, const Cells& x_cells) {
    const WindowAxis& y = slide_.window.y;
    const WindowAxis& x = slide_.window.x;
    const int64_t channels = slide_.channels;
    FloatWindow window;
    const int64_t x_origin = ox * x.stride - x.pad_before;
    for (int64_t ky = y_cells_.begin; ky < y_cells_.end; ++ky) {
      const int64_t iy = y_origin_ + ky * y.dilation;
      for (int64_t kx = x_cells.begin; kx < x_cells.end; ++kx) {
        const int64_t ix = x_origin + kx * x.dilation;
        inputs_[window.cells] = image_ + (iy * x.in + ix) * channels;
        if (slide_.weights != nullptr) {
          weights_[window.cells] =
              slide_.weights + (ky * x.size + kx) * channels;
        }
        ++window.cells;
      }
    }
    if (x.stride == 1 && x.dilation == 1) {
      window.run = x_cells.end - x_cells.begin;
    }
    window.inputs = inputs_.data();
    window.weights = weights_.data();
    window.pixels = count;
    window.pixel_stride = x.stride * channels;
    window.channels = channels;
    window.scale = slide_.scale;
    window.bias = slide_.bias;
    window.out = out_ + ox * out_stride_;
    window.out_stride = out_stride_;
    window.rectifier = slide_.rectifier;
    slide_.run(window);
  }

  const WindowSlide& slide_;
  std::vector<const float*> inputs_;
  std::vector<const float*> weights_;
  int64_t first_whole_ = 0;
  int64_t last_whole_ = 0;
  const float* image_ = nullptr;
  float* out_ = nullptr;
  int64_t out_stride_ = 0;
  Cells y_cells_;
  int64_t y_origin_ = 0;
};

}  // namespace

void SlideRows(const WindowSlide& slide, int64_t begin, int64_t end,
               float* out) {
  RowSlide row(slide);
  for (int64_t i = begin; i < end; ++i) {
    row.Run(i, out, slide.channels);
    out += slide.window.x.out * slide.channels;
  }
}

void Slide(const WindowSlide& slide, ThreadPool* pool) {
  const int64_t rows = slide.batch * slide.window.y.out;
  const int64_t work = slide.window.x.out * slide.channels *
                       slide.window.y.size * slide.window.x.size;
  if (rows == 0 || slide.window.x.out == 0 || slide.channels == 0) return;
  pool->ParallelFor(
      rows, 1 + kGrain / (work + 1), [&](int64_t begin, int64_t end) {
        RowSlide row(slide);
        for (int64_t i = begin; i < end; ++i) {
          row.Run(i, slide.out + i * slide.window.x.out * slide.out_stride,
                  slide.out_stride);
        }
      });
}

}  // namespace optfarm::runtime
