// MaxPool and AvgPool. Cells outside the image take no part: an average divides
// by the number of cells inside.

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/kernels/arguments.h"
#include "engine/runtime/kernels/families.h"
#include "engine/runtime/kernels/transpose.h"
#include "engine/runtime/kernels/window.h"

namespace optfarm::runtime {
namespace {

enum class Pooling { kMax, kAverage };

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

Range Inside(const WindowAxis& axis, int64_t out) {
  const int64_t begin = out * axis.stride - axis.pad_before;
  const int64_t inside = std::clamp<int64_t>(begin, 0, axis.in);
  return {inside, std::max(inside, std::min(begin + axis.size, axis.in))};
}

void MaxOfCells(const float* image, int64_t width, int64_t channels,
                const Range& y, const Range& x, float* out) {
  std::fill_n(out, channels, std::numeric_limits<float>::lowest());
  for (int64_t iy = y.begin; iy < y.end; ++iy) {
    for (int64_t ix = x.begin; ix < x.end; ++ix) {
      const float* in = image + (iy * width + ix) * channels;
      for (int64_t c = 0; c < channels; ++c) {
        out[c] = out[c] < in[c] ? in[c] : out[c];
      }
    }
  }
}

void AverageOfCells(const float* image, int64_t width, int64_t channels,
                    const Range& y, const Range& x, float* out) {
  std::fill_n(out, channels, 0.0f);
  for (int64_t iy = y.begin; iy < y.end; ++iy) {
    for (int64_t ix = x.begin; ix < x.end; ++ix) {
      const float* in = image + (iy * width + ix) * channels;
      for (int64_t c = 0; c < channels; ++c) out[c] += in[c];
    }
  }
  const float count = static_cast<float>(y.size() * x.size());
  for (int64_t c = 0; c < channels; ++c) out[c] /= count;
}

class Pool final : public Kernel {
 public:
  Pool(Pooling pooling, const WindowAttrs& attrs,
       const std::vector<int64_t>& size)
      : pooling_(pooling), attrs_(attrs), size_(size) {}

  absl::Status Compute(KernelContext* context) const override {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    Tensor in = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireDtype(in, "input", tensorflow::DT_FLOAT));
    OPTFARM_RETURN_IF_ERROR(RequireRank(in, "input", 4));
    if (attrs_.is_nchw) {
      OPTFARM_ASSIGN_OR_RETURN(in, NchwToNhwc(in, context->pool()));
    }
    OPTFARM_ASSIGN_OR_RETURN(
        const Window window,
        PlaceWindow(attrs_, in.dim(1), in.dim(2), size_[0], size_[1]));
    const int64_t dims[] = {in.dim(0), window.y.out, window.x.out, in.dim(3)};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out,
                             Tensor::Allocate(tensorflow::DT_FLOAT, shape));
    if (shape.num_elements() > 0) Run(in, window, context->pool(), &out);
    if (attrs_.is_nchw) {
      OPTFARM_ASSIGN_OR_RETURN(out, NhwcToNchw(out, context->pool()));
    }
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  }

 private:
  void Run(const Tensor& in, const Window& window, ThreadPool* pool,
           Tensor* out) const {
    const int64_t channels = in.dim(3);
    const int64_t image = in.dim(1) * in.dim(2) * channels;
    const int64_t row = window.x.out * channels;
    const auto body = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float* from = in.data<float>() + i / window.y.out * image;
        float* to = out->data<float>() + i * row;
        const Range y = Inside(window.y, i % window.y.out);
        for (int64_t ox = 0; ox < window.x.out; ++ox, to += channels) {
          const Range x = Inside(window.x, ox);
          if (pooling_ == Pooling::kMax) {
            MaxOfCells(from, window.x.in, channels, y, x, to);
          } else {
            AverageOfCells(from, window.x.in, channels, y, x, to);
          }
        }
      }
    };
    pool->ParallelFor(in.dim(0) * window.y.out, 1 + 32 * 1024 / row, body);
  }

  Pooling pooling_;
  WindowAttrs attrs_;
  std::vector<int64_t> size_;
};

template <Pooling kPooling>
absl::StatusOr<std::unique_ptr<Kernel>> MakePool(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", {tensorflow::DT_FLOAT}));
  OPTFARM_ASSIGN_OR_RETURN(const WindowAttrs attrs, ReadWindowAttrs(node));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> size,
                           ReadWindowList(node, "ksize", attrs.is_nchw));
  return std::make_unique<Pool>(kPooling, attrs, size);
}

}  // namespace

void AddPoolingKernels(KernelCatalog* catalog) {
  catalog->Add("MaxPool", MakePool<Pooling::kMax>);
  catalog->Add("AvgPool", MakePool<Pooling::kAverage>);
}

}  // namespace optfarm::runtime
