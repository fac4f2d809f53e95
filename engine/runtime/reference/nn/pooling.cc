// MaxPool, AvgPool and MaxPoolWithArgmax. Cells outside the image take no part:
// an average divides by the number of cells inside.

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/arrays/transpose.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/nn/window.h"

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

template <typename T>
void MaxOfCells(const T* image, int64_t width, int64_t channels, const Range& y,
                const Range& x, T* out) {
  std::fill_n(out, channels, std::numeric_limits<T>::lowest());
  for (int64_t iy = y.begin; iy < y.end; ++iy) {
    for (int64_t ix = x.begin; ix < x.end; ++ix) {
      const T* in = image + (iy * width + ix) * channels;
      for (int64_t c = 0; c < channels; ++c) {
        out[c] = out[c] < in[c] ? in[c] : out[c];
      }
    }
  }
}

template <typename T>
void AverageOfCells(const T* image, int64_t width, int64_t channels,
                    const Range& y, const Range& x, T* out) {
  std::fill_n(out, channels, T(0));
  for (int64_t iy = y.begin; iy < y.end; ++iy) {
    for (int64_t ix = x.begin; ix < x.end; ++ix) {
      const T* in = image + (iy * width + ix) * channels;
      for (int64_t c = 0; c < channels; ++c) out[c] += in[c];
    }
  }
  const T count = static_cast<T>(y.size() * x.size());
  for (int64_t c = 0; c < channels; ++c) out[c] /= count;
}

template <Pooling kPooling>
class Pool final : public Kernel {
 public:
  Pool(const WindowAttrs& attrs, const std::vector<int64_t>& size)
      : attrs_(attrs), size_(size) {}

  absl::Status Compute(KernelContext* context) const override {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    return ComputeFirst(context);
  }

  // As Compute, of input 0 whatever others there are.
  absl::Status ComputeFirst(KernelContext* context) const {
    Tensor in = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireRank(in, "input", 4));
    if (attrs_.is_nchw) {
      OPTFARM_ASSIGN_OR_RETURN(in, NchwToNhwc(in, context->pool()));
    }
    OPTFARM_ASSIGN_OR_RETURN(
        const Window window,
        PlaceWindow(attrs_, in.dim(1), in.dim(2), size_[0], size_[1]));
    const int64_t dims[] = {in.dim(0), window.y.out, window.x.out, in.dim(3)};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(in.dtype(), shape));
    const auto run = [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      if (shape.num_elements() > 0) {
        Run<T>(in, window, context->pool(), &out);
      }
      return absl::OkStatus();
    };
    if constexpr (kPooling == Pooling::kMax) {
      OPTFARM_RETURN_IF_ERROR(VisitNumber(in.dtype(), "input", run));
    } else {
      OPTFARM_RETURN_IF_ERROR(VisitFloat(in.dtype(), "input", run));
    }
    if (attrs_.is_nchw) {
      OPTFARM_ASSIGN_OR_RETURN(out, NhwcToNchw(out, context->pool()));
    }
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  }

 private:
  template <typename T>
  void Run(const Tensor& in, const Window& window, ThreadPool* pool,
           Tensor* out) const {
    const int64_t channels = in.dim(3);
    const int64_t image = in.dim(1) * in.dim(2) * channels;
    const int64_t row = window.x.out * channels;
    const auto body = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* from = in.data<T>() + i / window.y.out * image;
        T* to = out->data<T>() + i * row;
        const Range y = Inside(window.y, i % window.y.out);
        for (int64_t ox = 0; ox < window.x.out; ++ox, to += channels) {
          const Range x = Inside(window.x, ox);
          if constexpr (kPooling == Pooling::kMax) {
            MaxOfCells(from, window.x.in, channels, y, x, to);
          } else {
            AverageOfCells(from, window.x.in, channels, y, x, to);
          }
        }
      }
    };
    pool->ParallelFor(in.dim(0) * window.y.out, 1 + 32 * 1024 / row, body);
  }

  WindowAttrs attrs_;
  std::vector<int64_t> size_;
};

tensorflow::NodeDef WithWindow(tensorflow::NodeDef node,
                               const std::vector<int64_t>& sizes,
                               const std::vector<int64_t>& strides) {
  const auto set = [&](const char* name, const std::vector<int64_t>& values) {
    auto* list = (*node.mutable_attr())[name].mutable_list();
    for (int64_t value : values) list->add_i(value);
  };
  set("ksize", sizes);
  set("strides", strides);
  return node;
}

template <Pooling kPooling>
absl::StatusOr<std::unique_ptr<Kernel>> MakePool(
    const tensorflow::NodeDef& node) {
  if (kPooling == Pooling::kMax) {
    OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  } else {
    OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  }
  OPTFARM_ASSIGN_OR_RETURN(const WindowAttrs attrs, ReadWindowAttrs(node));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> size,
                           ReadWindowList(node, "ksize", attrs.is_nchw));
  return std::make_unique<Pool<kPooling>>(attrs, size);
}

// What is no attribute is no reason to refuse the node.
absl::Status WrongInput(const absl::Status& status) {
  return absl::InvalidArgumentError(status.message());
}

// Size and strides of the window are inputs.
absl::StatusOr<std::unique_ptr<Kernel>> MakeMaxPoolV2(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  // Strides are checked with those that come.
  OPTFARM_RETURN_IF_ERROR(
      ReadWindowAttrs(WithWindow(node, {1, 1, 1, 1}, {1, 1, 1, 1})).status());
  return MakeKernel([node](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                             ReadIntegers(context->input(1), "ksize"));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> strides,
                             ReadIntegers(context->input(2), "strides"));
    const tensorflow::NodeDef own = WithWindow(node, sizes, strides);
    const absl::StatusOr<WindowAttrs> attrs = ReadWindowAttrs(own);
    if (!attrs.ok()) return WrongInput(attrs.status());
    const absl::StatusOr<std::vector<int64_t>> size =
        ReadWindowList(own, "ksize", attrs->is_nchw);
    if (!size.ok()) return WrongInput(size.status());
    return Pool<Pooling::kMax>(*attrs, *size).ComputeFirst(context);
  });
}

struct ArgmaxAttrs {
  WindowAttrs window;
  std::vector<int64_t> size;
  bool counts_batch = false;
};

// One output pixel: the largest values and where each was found, counted over
// height, width and channels (and batch when `first` does).
template <typename T>
void MaxWithPlace(const T* image, int64_t width, int64_t channels,
                  const Range& y, const Range& x, int64_t first, T* out,
                  int64_t* places) {
  for (int64_t c = 0; c < channels; ++c) {
    out[c] = std::numeric_limits<T>::lowest();
    places[c] = first + (y.begin * width + x.begin) * channels + c;
    for (int64_t iy = y.begin; iy < y.end; ++iy) {
      for (int64_t ix = x.begin; ix < x.end; ++ix) {
        const int64_t at = (iy * width + ix) * channels + c;
        if (!(out[c] < image[at])) continue;
        out[c] = image[at];
        places[c] = first + at;
      }
    }
  }
}

absl::Status ComputeArgmax(const ArgmaxAttrs& attrs, DataType index,
                           KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
  OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 2));
  const Tensor& in = context->input(0);
  OPTFARM_RETURN_IF_ERROR(RequireRank(in, "input", 4));
  OPTFARM_ASSIGN_OR_RETURN(const Window window,
                           PlaceWindow(attrs.window, in.dim(1), in.dim(2),
                                       attrs.size[0], attrs.size[1]));
  const int64_t channels = in.dim(3);
  const int64_t dims[] = {in.dim(0), window.y.out, window.x.out, channels};
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, in.dtype(), shape));
  OPTFARM_ASSIGN_OR_RETURN(Tensor places,
                           Tensor::Allocate(tensorflow::DT_INT64, shape));
  const int64_t image = DimProduct(in.shape(), 1, 4);
  OPTFARM_RETURN_IF_ERROR(
      VisitNumber(in.dtype(), "input", [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        const int64_t pixels =
            channels == 0 ? 0 : shape.num_elements() / channels;
        for (int64_t i = 0; i < pixels; ++i) {
          const int64_t n = i / window.x.out / window.y.out;
          MaxWithPlace<T>(in.data<T>() + n * image, window.x.in, channels,
                          Inside(window.y, i / window.x.out % window.y.out),
                          Inside(window.x, i % window.x.out),
                          attrs.counts_batch ? n * image : 0,
                          out->data<T>() + i * channels,
                          places.data<int64_t>() + i * channels);
        }
        return absl::OkStatus();
      }));
  if (index == tensorflow::DT_INT64) {
    context->SetOutput(1, std::move(places));
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(Tensor * narrow,
                           context->AllocateOutput(1, index, shape));
  std::copy_n(places.data<int64_t>(), shape.num_elements(),
              narrow->data<int32_t>());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakePoolWithArgmax(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "Targmax", OPTFARM_INDEX_TYPES));
  ArgmaxAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(attrs.window, ReadWindowAttrs(node));
  OPTFARM_ASSIGN_OR_RETURN(attrs.size, ReadWindowList(node, "ksize", false));
  OPTFARM_ASSIGN_OR_RETURN(
      attrs.counts_batch,
      graph::GetBoolOr(node, "include_batch_in_index", false));
  OPTFARM_ASSIGN_OR_RETURN(
      const DataType index,
      graph::GetTypeOr(node, "Targmax", tensorflow::DT_INT64));
  return MakeKernel([attrs, index](KernelContext* context) {
    return ComputeArgmax(attrs, index, context);
  });
}

}  // namespace

void AddPoolingKernels(KernelCatalog* catalog) {
  catalog->Add("MaxPool", MakePool<Pooling::kMax>);
  catalog->Add("AvgPool", MakePool<Pooling::kAverage>);
  catalog->Add("MaxPoolV2", MakeMaxPoolV2);
  catalog->Add("MaxPoolWithArgmax", MakePoolWithArgmax);
}

}  // namespace optfarm::runtime
