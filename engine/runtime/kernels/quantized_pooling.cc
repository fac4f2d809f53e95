// QuantizedMaxPool and QuantizedAvgPool: the range passes through; an average
// of codes is the code of the average, truncated as TensorFlow does.

#include <algorithm>
#include <memory>
#include <vector>

#include "base/status_macros.h"
#include "engine/runtime/kernels/arguments.h"
#include "engine/runtime/kernels/quantized_families.h"
#include "engine/runtime/kernels/quantized_inputs.h"
#include "engine/runtime/kernels/window.h"

namespace optfarm::runtime {
namespace {

using tensorflow::NodeDef;

// Rows or columns of the image that a window position covers.
struct Span {
  int64_t begin = 0;
  int64_t end = 0;
};

Span Covered(const WindowAxis& axis, int64_t position) {
  const int64_t start = position * axis.stride - axis.pad_before;
  return {std::max<int64_t>(start, 0), std::min(start + axis.size, axis.in)};
}

// Pools one output pixel of all channels: plain loops over channels, which
// compilers make vectors of. `sums` is scratch.
void MaxPixel(const uint8_t* image, const Window& window, int64_t channels,
              Span y, Span x, uint8_t* out) {
  std::fill_n(out, channels, uint8_t{0});
  for (int64_t row = y.begin; row < y.end; ++row) {
    for (int64_t column = x.begin; column < x.end; ++column) {
      const uint8_t* pixel = image + (row * window.x.in + column) * channels;
      for (int64_t ch = 0; ch < channels; ++ch) {
        out[ch] = std::max(out[ch], pixel[ch]);
      }
    }
  }
}

void AveragePixel(const uint8_t* image, const Window& window, int64_t channels,
                  Span y, Span x, int32_t* sums, uint8_t* out) {
  std::fill_n(sums, channels, 0);
  for (int64_t row = y.begin; row < y.end; ++row) {
    for (int64_t column = x.begin; column < x.end; ++column) {
      const uint8_t* pixel = image + (row * window.x.in + column) * channels;
      for (int64_t ch = 0; ch < channels; ++ch) sums[ch] += pixel[ch];
    }
  }
  const int64_t count =
      std::max<int64_t>((y.end - y.begin) * (x.end - x.begin), 1);
  // Up to here a quotient below a whole number is at least 1 / 4096 below it,
  // more than single precision rounds a number up to 255 by.
  constexpr int64_t kMostInFloat = 4096;
  if (count <= kMostInFloat) {
    const auto divisor = static_cast<float>(count);
    for (int64_t ch = 0; ch < channels; ++ch) {
      out[ch] = static_cast<uint8_t>(
          static_cast<int32_t>(static_cast<float>(sums[ch]) / divisor));
    }
    return;
  }
  for (int64_t ch = 0; ch < channels; ++ch) {
    out[ch] = static_cast<uint8_t>(sums[ch] / count);
  }
}

template <bool kIsMax>
absl::Status Pool(KernelContext* c, const WindowAttrs& attrs, int64_t size_y,
                  int64_t size_x) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*c, 3));
  const Tensor& input = c->input(0);
  OPTFARM_RETURN_IF_ERROR(RequireCodes(*c, 0, tensorflow::DT_QUINT8));
  OPTFARM_RETURN_IF_ERROR(RequireRank(input, "input", 4));
  OPTFARM_ASSIGN_OR_RETURN(const Range range, InputRange(*c, 1));
  OPTFARM_ASSIGN_OR_RETURN(
      const Window window,
      PlaceWindow(attrs, input.dim(1), input.dim(2), size_y, size_x));
  const int64_t channels = input.dim(3);
  OPTFARM_ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::FromDims({input.dim(0), window.y.out, window.x.out, channels}));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           c->AllocateOutput(0, tensorflow::DT_QUINT8, shape));
  const int64_t image_size = input.dim(1) * input.dim(2) * channels;
  const int64_t rows = input.dim(0) * window.y.out;
  c->pool()->ParallelFor(rows, 4, [&](int64_t begin, int64_t end) {
    std::vector<int32_t> sums(static_cast<size_t>(channels));
    for (int64_t row = begin; row < end; ++row) {
      const uint8_t* image =
          input.data<uint8_t>() + row / window.y.out * image_size;
      const Span y = Covered(window.y, row % window.y.out);
      uint8_t* target = out->data<uint8_t>() + row * window.x.out * channels;
      for (int64_t column = 0; column < window.x.out; ++column) {
        const Span x = Covered(window.x, column);
        uint8_t* pixel = target + column * channels;
        if (kIsMax) {
          MaxPixel(image, window, channels, y, x, pixel);
        } else {
          AveragePixel(image, window, channels, y, x, sums.data(), pixel);
        }
      }
    }
  });
  SetOutputRange(c, 1, range);
  return absl::OkStatus();
}

template <bool kIsMax>
absl::StatusOr<std::unique_ptr<Kernel>> MakePool(const NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", {tensorflow::DT_QUINT8}));
  OPTFARM_ASSIGN_OR_RETURN(const WindowAttrs attrs, ReadWindowAttrs(node));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> size,
                           ReadWindowList(node, "ksize", false));
  return MakeKernel([=](KernelContext* c) {
    return Pool<kIsMax>(c, attrs, size[0], size[1]);
  });
}

}  // namespace

void AddQuantizedPoolingKernels(KernelCatalog* catalog) {
  catalog->Add("QuantizedMaxPool", MakePool<true>);
  catalog->Add("QuantizedAvgPool", MakePool<false>);
}

}  // namespace optfarm::runtime
