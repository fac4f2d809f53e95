#include "engine/runtime/reference/quantized/quantized_products.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/quantized/quantized_arithmetic.h"
#include "engine/runtime/reference/quantized/quantized_gemm.h"
#include "engine/runtime/reference/quantized/quantized_inputs.h"

namespace optfarm::runtime {
namespace {

// Bytes of gathered patches that stay in a core's cache while they are read.
constexpr int64_t kPatchBytes = 128 * 1024;
// Multiplications that are worth another thread.
constexpr int64_t kWorkPerRange = 1 << 18;

// Formula 9 with the zeros as they are; where so many products of any quantized
// values might leave 32 bits, with the weights as they are.
absl::Status CheckSums(int64_t depth, int64_t channels, bool channels_first,
                       int32_t input_zero, const QuantizedWeights& weights) {
  if (channels == 0 || SumsFit(depth, input_zero, weights.zero) ||
      SumsFit(LargestWeight(weights, channels, channels_first), input_zero)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "sums of ", depth, " products of quantized values with the zero points ",
      input_zero, " and ", weights.zero, " may leave 32 bits"));
}

// A filter sliding over an image of quantized values.
struct Slide {
  Window window;
  const uint8_t* image = nullptr;
  int64_t channels = 0;
  int32_t zero = 0;
  const QuantizedWeights* weights = nullptr;
  int64_t out_channels = 0;

  int64_t patch_size() const {
    return window.y.size * window.x.size * channels;
  }
  // Where filter row `fy` and column `fx` lie at output pixel `pixel` (counted
  // over batch, height and width); nullptr outside of the image.
  const uint8_t* At(int64_t pixel, int64_t fy, int64_t fx) const {
    const WindowAxis &y = window.y, &x = window.x;
    const int64_t batch = pixel / (y.out * x.out);
    const int64_t in_y =
        pixel / x.out % y.out * y.stride - y.pad_before + fy * y.dilation;
    const int64_t in_x =
        pixel % x.out * x.stride - x.pad_before + fx * x.dilation;
    if (in_y < 0 || in_y >= y.in || in_x < 0 || in_x >= x.in) return nullptr;
    return image + ((batch * y.in + in_y) * x.in + in_x) * channels;
  }
  void Convolve(int64_t begin, int64_t end, int32_t* out) const;
  void ConvolveDepthwise(int64_t begin, int64_t end, int32_t* out) const;
};

// Output pixels [begin, end): patches are gathered, outside of the image stands
// the zero point, and multiplied as a matrix.
void Slide::Convolve(int64_t begin, int64_t end, int32_t* out) const {
  const int64_t depth = patch_size();
  const auto outside = static_cast<uint8_t>(std::clamp(zero, 0, 255));
  const int64_t rows = std::clamp<int64_t>(kPatchBytes / depth, 4, 1024);
  std::vector<uint8_t> patches(
      static_cast<size_t>(std::min(rows, end - begin) * depth));
  for (int64_t row = begin; row < end; row += rows) {
    const int64_t count = std::min(rows, end - row);
    uint8_t* patch = patches.data();
    for (int64_t pixel = row; pixel < row + count; ++pixel) {
      for (int64_t fy = 0; fy < window.y.size; ++fy) {
        for (int64_t fx = 0; fx < window.x.size; ++fx, patch += channels) {
          const uint8_t* from = At(pixel, fy, fx);
          if (from != nullptr) {
            std::memcpy(patch, from, static_cast<size_t>(channels));
          } else {
            std::memset(patch, outside, static_cast<size_t>(channels));
          }
        }
      }
    }
    QuantizedGemm({patches.data(), false, zero},
                  {weights->values.data(), false, weights->zero}, count, depth,
                  out_channels, out + row * out_channels);
  }
}

void Slide::ConvolveDepthwise(int64_t begin, int64_t end, int32_t* out) const {
  const int64_t multiplier = out_channels / channels;
  for (int64_t pixel = begin; pixel < end; ++pixel) {
    int32_t* sums = out + pixel * out_channels;
    std::fill_n(sums, out_channels, 0);
    const uint8_t* w = weights->values.data();
    for (int64_t fy = 0; fy < window.y.size; ++fy) {
      for (int64_t fx = 0; fx < window.x.size; ++fx, w += out_channels) {
        const uint8_t* from = At(pixel, fy, fx);
        // Outside stands zero, which adds nothing.
        if (from == nullptr) continue;
        for (int64_t c = 0; c < channels; ++c) {
          const int32_t value = int32_t{from[c]} - zero;
          for (int64_t k = c * multiplier; k < (c + 1) * multiplier; ++k) {
            sums[k] += value * (int32_t{w[k]} - weights->zero);
          }
        }
      }
    }
  }
}

// Allocates the result and runs `row_range` over all output pixels.
template <typename Run>
absl::StatusOr<Tensor> OverPixels(KernelContext* c, const Slide& slide,
                                  int64_t work_per_pixel, Run run) {
  OPTFARM_ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::FromDims({c->input(0).dim(0), slide.window.y.out,
                       slide.window.x.out, slide.out_channels}));
  OPTFARM_ASSIGN_OR_RETURN(Tensor out,
                           Tensor::Allocate(tensorflow::DT_QINT32, shape));
  int32_t* sums = out.data<int32_t>();
  if (shape.num_elements() == 0) return out;
  if (slide.patch_size() == 0) {
    std::fill_n(sums, shape.num_elements(), 0);
    return out;
  }
  const int64_t grain = kWorkPerRange / std::max<int64_t>(work_per_pixel, 1);
  c->pool()->ParallelFor(
      shape.num_elements() / slide.out_channels, std::max<int64_t>(grain, 4),
      [&](int64_t begin, int64_t end) { run(begin, end, sums); });
  return out;
}

absl::StatusOr<Slide> PlaceFilter(const KernelContext& c,
                                  const WindowAttrs& attrs, const Shape& filter,
                                  int32_t zero,
                                  const QuantizedWeights& weights) {
  const Tensor& image = c.input(0);
  OPTFARM_RETURN_IF_ERROR(RequireRank(image, "input", 4));
  if (filter.dim(2) != image.dim(3)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the filter ", filter.ToString(), " takes ", filter.dim(2),
                     " channels, the input ", image.shape().ToString(), " has ",
                     image.dim(3)));
  }
  Slide slide;
  OPTFARM_ASSIGN_OR_RETURN(slide.window,
                           PlaceWindow(attrs, image.dim(1), image.dim(2),
                                       filter.dim(0), filter.dim(1)));
  slide.image = image.data<uint8_t>();
  slide.channels = image.dim(3);
  slide.zero = zero;
  slide.weights = &weights;
  if (slide.patch_size() > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError("the filter is too large");
  }
  return slide;
}

}  // namespace

int64_t LargestWeight(const QuantizedWeights& weights, int64_t channels,
                      bool channels_first) {
  std::vector<int64_t> sums(static_cast<size_t>(channels), 0);
  const size_t row = weights.values.size() / sums.size();
  for (size_t i = 0; i < weights.values.size(); ++i) {
    sums[channels_first ? i / row : i % sums.size()] +=
        std::abs(int32_t{weights.values[i]} - weights.zero);
  }
  return *std::max_element(sums.begin(), sums.end());
}

absl::StatusOr<QuantizedWeights> ReadWeights(const KernelContext& context,
                                             int weights_index, int min_index,
                                             int64_t channels) {
  const Tensor& tensor = context.input(weights_index);
  const bool is_signed = tensor.dtype() == tensorflow::DT_QINT8;
  if (!is_signed) {
    OPTFARM_RETURN_IF_ERROR(
        RequireInputDtype(context, weights_index, tensorflow::DT_QUINT8));
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Range> ranges,
                           InputRanges(context, min_index, channels));
  QuantizedWeights weights;
  weights.values.resize(static_cast<size_t>(tensor.num_elements()));
  if (is_signed) {
    const int8_t* quantized = tensor.data<int8_t>();
    for (size_t i = 0; i < weights.values.size(); ++i) {
      weights.values[i] = static_cast<uint8_t>(quantized[i] + 128);
    }
    weights.zero = 128;
  } else {
    const uint8_t* quantized = tensor.data<uint8_t>();
    std::copy_n(quantized, weights.values.size(), weights.values.begin());
    OPTFARM_ASSIGN_OR_RETURN(weights.zero, ZeroPointOf(ranges[0]));
  }
  for (const Range& range : ranges) {
    if (is_signed) {
      // Formula 25: 127 steps to each side.
      weights.scales.push_back(
          std::max(std::abs(range.min), std::abs(range.max)) / 127.0f);
      continue;
    }
    OPTFARM_ASSIGN_OR_RETURN(const int32_t zero, ZeroPointOf(range));
    if (zero != weights.zero) {
      return absl::InvalidArgumentError(
          "the channels of the weights have different zero points; "
          "use qint8, whose zero is always 0");
    }
    weights.scales.push_back((range.max - range.min) / 255.0f);
  }
  return weights;
}

absl::StatusOr<Tensor> ConvolveQuantized(KernelContext* context,
                                         const WindowAttrs& attrs,
                                         const Shape& filter,
                                         int32_t image_zero,
                                         const QuantizedWeights& weights) {
  OPTFARM_ASSIGN_OR_RETURN(
      Slide slide, PlaceFilter(*context, attrs, filter, image_zero, weights));
  slide.out_channels = filter.dim(3);
  OPTFARM_RETURN_IF_ERROR(CheckSums(slide.patch_size(), slide.out_channels,
                                    false, image_zero, weights));
  return OverPixels(context, slide, slide.patch_size() * slide.out_channels,
                    [&](int64_t begin, int64_t end, int32_t* out) {
                      slide.Convolve(begin, end, out);
                    });
}

absl::StatusOr<Tensor> ConvolveQuantizedDepthwise(
    KernelContext* context, const WindowAttrs& attrs, const Shape& filter,
    int32_t image_zero, const QuantizedWeights& weights) {
  OPTFARM_ASSIGN_OR_RETURN(
      Slide slide, PlaceFilter(*context, attrs, filter, image_zero, weights));
  // Both factors are dimensions of one filter, so their product is safe unless
  // that filter is empty.
  slide.out_channels =
      filter.num_elements() == 0 ? 0 : filter.dim(2) * filter.dim(3);
  const int64_t taps = slide.window.y.size * slide.window.x.size;
  OPTFARM_RETURN_IF_ERROR(
      CheckSums(taps, slide.out_channels, false, image_zero, weights));
  return OverPixels(context, slide, taps * slide.out_channels,
                    [&](int64_t begin, int64_t end, int32_t* out) {
                      slide.ConvolveDepthwise(begin, end, out);
                    });
}

absl::StatusOr<Tensor> MultiplyQuantized(KernelContext* context,
                                         const Shape& matrix, bool transpose_b,
                                         int32_t rows_zero,
                                         const QuantizedWeights& weights) {
  const Tensor& a = context->input(0);
  OPTFARM_RETURN_IF_ERROR(RequireRank(a, "a", 2));
  const int64_t depth = matrix.dim(transpose_b ? 1 : 0);
  const int64_t columns = matrix.dim(transpose_b ? 0 : 1);
  if (a.dim(1) != depth) {
    return absl::InvalidArgumentError(absl::StrCat(
        "matrices of shape ", a.shape().ToString(), " and ", matrix.ToString(),
        transpose_b ? ", transposed," : "", " cannot be multiplied"));
  }
  OPTFARM_RETURN_IF_ERROR(
      CheckSums(depth, columns, transpose_b, rows_zero, weights));
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                           Shape::FromDims({a.dim(0), columns}));
  OPTFARM_ASSIGN_OR_RETURN(Tensor out,
                           Tensor::Allocate(tensorflow::DT_QINT32, shape));
  int32_t* sums = out.data<int32_t>();
  if (shape.num_elements() == 0) return out;
  if (depth == 0) {
    std::fill_n(sums, shape.num_elements(), 0);
    return out;
  }
  const QuantizedMatrix right = {weights.values.data(), transpose_b,
                                 weights.zero};
  const int64_t grain = std::max<int64_t>(kWorkPerRange / (depth * columns), 1);
  context->pool()->ParallelFor(
      a.dim(0), grain, [&](int64_t begin, int64_t end) {
        QuantizedGemm({a.data<uint8_t>() + begin * depth, false, rows_zero},
                      right, end - begin, depth, columns,
                      sums + begin * columns);
      });
  return out;
}

}  // namespace optfarm::runtime
