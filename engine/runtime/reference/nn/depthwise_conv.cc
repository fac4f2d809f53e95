// DepthwiseConv2dNative: each input channel has its own filters. Direct loops:
// a block of channels stays in registers while the window is walked. Products
// are added with one rounding, as TensorFlow's packets add them.

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/arrays/transpose.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/nn/convolution_input.h"
#include "engine/runtime/reference/nn/window.h"

namespace optfarm::runtime {
namespace {

constexpr int64_t kLanes = 16;

struct Geometry {
  int64_t batch = 0;
  int64_t channels = 0;
  // Filters per channel.
  int64_t multiplier = 0;
  Window window;
};

// The taps of a window that fall inside the image, along one axis.
struct Taps {
  int64_t begin = 0;
  int64_t end = 0;
  // Position in the image of tap 0; may lie outside.
  int64_t origin = 0;
};

Taps InsideTaps(const WindowAxis& axis, int64_t out) {
  const int64_t origin = out * axis.stride - axis.pad_before;
  const int64_t d = axis.dilation;
  const int64_t begin = origin >= 0 ? 0 : (-origin + d - 1) / d;
  const int64_t room = axis.in - origin;
  const int64_t end = room <= 0 ? 0 : std::min(axis.size, (room + d - 1) / d);
  return {begin, std::max(begin, end), origin};
}

// One output pixel when every channel has one filter.
void PixelOfSingle(const float* image, const float* filter, const Geometry& g,
                   const Taps& y, const Taps& x, float* out) {
  const int64_t channels = g.channels;
  for (int64_t c = 0; c < channels; c += kLanes) {
    const int64_t lanes = std::min(kLanes, channels - c);
    float sums[kLanes] = {};
    for (int64_t ky = y.begin; ky < y.end; ++ky) {
      const int64_t iy = y.origin + ky * g.window.y.dilation;
      for (int64_t kx = x.begin; kx < x.end; ++kx) {
        const int64_t ix = x.origin + kx * g.window.x.dilation;
        const float* in = image + (iy * g.window.x.in + ix) * channels + c;
        const float* f = filter + (ky * g.window.x.size + kx) * channels + c;
        if (lanes == kLanes) {
          for (int64_t k = 0; k < kLanes; ++k) {
            sums[k] = std::fma(in[k], f[k], sums[k]);
          }
        } else {
          for (int64_t k = 0; k < lanes; ++k) {
            sums[k] = std::fma(in[k], f[k], sums[k]);
          }
        }
      }
    }
    std::copy_n(sums, lanes, out + c);
  }
}

// One output pixel with any multiplier.
void PixelOfMany(const float* image, const float* filter, const Geometry& g,
                 const Taps& y, const Taps& x, float* out) {
  const int64_t m = g.multiplier;
  std::fill_n(out, g.channels * m, 0.0f);
  for (int64_t ky = y.begin; ky < y.end; ++ky) {
    const int64_t iy = y.origin + ky * g.window.y.dilation;
    for (int64_t kx = x.begin; kx < x.end; ++kx) {
      const int64_t ix = x.origin + kx * g.window.x.dilation;
      const float* in = image + (iy * g.window.x.in + ix) * g.channels;
      const float* f = filter + (ky * g.window.x.size + kx) * g.channels * m;
      for (int64_t c = 0; c < g.channels; ++c) {
        const float value = in[c];
        for (int64_t k = 0; k < m; ++k) {
          out[c * m + k] = std::fma(value, f[c * m + k], out[c * m + k]);
        }
      }
    }
  }
}

void ConvolveRow(const float* image, const float* filter, const Geometry& g,
                 int64_t oy, float* out) {
  const Taps y = InsideTaps(g.window.y, oy);
  for (int64_t ox = 0; ox < g.window.x.out; ++ox) {
    const Taps x = InsideTaps(g.window.x, ox);
    float* pixel = out + ox * g.channels * g.multiplier;
    if (g.multiplier == 1) {
      PixelOfSingle(image, filter, g, y, x, pixel);
    } else {
      PixelOfMany(image, filter, g, y, x, pixel);
    }
  }
}

void Convolve(const float* in, const float* filter, const Geometry& g,
              ThreadPool* pool, float* out) {
  const int64_t image = g.window.y.in * g.window.x.in * g.channels;
  const int64_t row = g.window.x.out * g.channels * g.multiplier;
  const int64_t work = row * g.window.y.size * g.window.x.size;
  pool->ParallelFor(g.batch * g.window.y.out, 1 + 128 * 1024 / (work + 1),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        ConvolveRow(in + i / g.window.y.out * image, filter, g,
                                    i % g.window.y.out, out + i * row);
                      }
                    });
}

class DepthwiseConv final : public Kernel {
 public:
  explicit DepthwiseConv(const WindowAttrs& attrs) : attrs_(attrs) {}

  absl::Status Compute(KernelContext* context) const override {
    OPTFARM_ASSIGN_OR_RETURN(const ConvolutionInput input,
                             ReadConvolutionInput(*context, attrs_));
    const Tensor &in = input.image, &filter = input.filter;
    const Geometry g{in.dim(0), in.dim(3), filter.dim(3), input.window};
    // Both factors are dimensions of one filter, so their product is safe
    // unless that filter is empty.
    const int64_t depth =
        filter.num_elements() == 0 ? 0 : g.channels * g.multiplier;
    const int64_t dims[] = {g.batch, g.window.y.out, g.window.x.out, depth};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out,
                             Tensor::Allocate(tensorflow::DT_FLOAT, shape));
    if (shape.num_elements() > 0) {
      Convolve(in.data<float>(), filter.data<float>(), g, context->pool(),
               out.data<float>());
    }
    if (attrs_.is_nchw) {
      OPTFARM_ASSIGN_OR_RETURN(out, NhwcToNchw(out, context->pool()));
    }
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  }

 private:
  WindowAttrs attrs_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeDepthwiseConv(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", {tensorflow::DT_FLOAT}));
  OPTFARM_ASSIGN_OR_RETURN(const WindowAttrs attrs, ReadWindowAttrs(node));
  return std::make_unique<DepthwiseConv>(attrs);
}

}  // namespace

void AddDepthwiseConvolutionKernels(KernelCatalog* catalog) {
  catalog->Add("DepthwiseConv2dNative", MakeDepthwiseConv);
}

}  // namespace optfarm::runtime
