#include "engine/runtime/operators/int8_row_sums.h"

#include <algorithm>

#include "engine/runtime/core/scratch.h"

namespace optfarm::runtime {
namespace {

// Values that are worth another thread.
constexpr int64_t kValuesPerRange = 64 * 1024;

// The output pixels of a row whose window has column fx inside of the image:
// [begin, end).
struct Inside {
  int64_t begin = 0;
  int64_t end = 0;
};

Inside InsideOf(const WindowAxis& x, int64_t fx) {
  const int64_t first = fx * x.dilation - x.pad_before;
  const auto up = [&](int64_t distance) {
    return distance <= 0 ? 0 : (distance + x.stride - 1) / x.stride;
  };
  const int64_t begin = std::min(up(-first), x.out);
  return {begin, std::clamp(up(x.in - first), begin, x.out)};
}

// Sums of pixels' sums under the windows of one output row.
class RowSums {
 public:
  RowSums(const Int8Activations& image, const int32_t* pixels)
      : image_(image),
        pixels_(pixels),
        padding_(std::clamp(image.zero_point, 0, 255) *
                 static_cast<int32_t>(image.channels)) {}

  // Output row `row`, counted over batch and height.
  void Run(int64_t row, int32_t* sums) const {
    const WindowAxis &y = image_.window.y, &x = image_.window.x;
    std::fill_n(sums, x.out, 0);
    for (int64_t fy = 0; fy < y.size; ++fy) {
      const int64_t in_y =
          row % y.out * y.stride - y.pad_before + fy * y.dilation;
      const bool exists = in_y >= 0 && in_y < y.in;
      const int32_t* of_row = pixels_ + (row / y.out * y.in + in_y) * x.in;
      for (int64_t fx = 0; fx < x.size; ++fx) {
        const Inside inside = exists ? InsideOf(x, fx) : Inside();
        const int64_t first = fx * x.dilation - x.pad_before;
        for (int64_t i = 0; i < inside.begin; ++i) sums[i] += padding_;
        for (int64_t i = inside.begin; i < inside.end; ++i) {
          sums[i] += of_row[first + i * x.stride];
        }
        for (int64_t i = inside.end; i < x.out; ++i) sums[i] += padding_;
      }
    }
  }

 private:
  const Int8Activations& image_;
  const int32_t* pixels_;
  int32_t padding_;
};

}  // namespace

void SumInt8Rows(const Int8Gemm& gemm, ThreadPool* pool, int32_t* sums) {
  const Int8Activations& image = gemm.input;
  const WindowAxis &y = image.window.y, &x = image.window.x;
  const auto sum_pixels = [&](int64_t count, int32_t* to) {
    pool->ParallelFor(count, 1 + kValuesPerRange / image.channels,
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) {
                          to[i] = gemm.kernels.stages->sum_values(
                              image.values + i * image.channels,
                              image.channels);
                        }
                      });
  };
  if (image.is_matrix()) return sum_pixels(image.rows(), sums);
  const Scratch<int32_t> pixels(image.batch * y.in * x.in);
  sum_pixels(pixels.size(), pixels.data());
  const RowSums rows(image, pixels.data());
  const int64_t work = x.out * y.size * x.size;
  pool->ParallelFor(image.batch * y.out, 1 + kValuesPerRange / 4 / work,
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        rows.Run(i, sums + i * x.out);
                      }
                    });
}

}  // namespace optfarm::runtime
