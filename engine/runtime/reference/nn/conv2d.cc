// Conv2D and its transpose Conv2DBackpropInput, as matrix products. Rows of
// patches (im2col) are made in blocks that stay in the cache; a 1x1 convolution
// needs no patches.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/arrays/transpose.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/linear_algebra/matrix_product.h"
#include "engine/runtime/reference/nn/convolution_input.h"
#include "engine/runtime/reference/nn/window.h"

namespace optfarm::runtime {
namespace {

// UNITS: bytes of one block of patches: about half of a small L2 cache.
constexpr int64_t kBlockBytes = 128 * 1024;

// NHWC sizes of one convolution.
struct Geometry {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t filters = 0;
  Window window;

  int64_t patch() const { return window.y.size * window.x.size * channels; }
  int64_t pixels() const { return batch * window.y.out * window.x.out; }
  bool is_pointwise() const {
    return window.y.size == 1 && window.x.size == 1 && window.y.stride == 1 &&
           window.x.stride == 1 && window.y.out == window.y.in &&
           window.x.out == window.x.in;
  }
};

// Copies the patch under output pixel (oy, ox) of one image to `to`.
template <typename T>
void CopyPatch(const T* image, const Geometry& g, int64_t oy, int64_t ox,
               T* to) {
  const WindowAxis& y = g.window.y;
  const WindowAxis& x = g.window.x;
  const int64_t x0 = ox * x.stride - x.pad_before;
  const int64_t row = x.size * g.channels;
  for (int64_t ky = 0; ky < y.size; ++ky, to += row) {
    const int64_t iy = oy * y.stride - y.pad_before + ky * y.dilation;
    if (iy < 0 || iy >= y.in) {
      std::fill_n(to, row, T(0));
      continue;
    }
    const T* from = image + iy * x.in * g.channels;
    if (x.dilation == 1 && x0 >= 0 && x0 + x.size <= x.in) {
      std::copy_n(from + x0 * g.channels, row, to);
      continue;
    }
    for (int64_t kx = 0; kx < x.size; ++kx) {
      const int64_t ix = x0 + kx * x.dilation;
      if (ix < 0 || ix >= x.in) {
        std::fill_n(to + kx * g.channels, g.channels, T(0));
      } else {
        std::copy_n(from + ix * g.channels, g.channels, to + kx * g.channels);
      }
    }
  }
}

// Output pixels [begin, end) counted over batch, height and width.
template <typename T>
void ConvolvePixels(const T* in, const T* filter, const Geometry& g,
                    int64_t begin, int64_t end, T* out) {
  const int64_t patch = g.patch();
  const int64_t bytes = patch * static_cast<int64_t>(sizeof(T));
  const int64_t block =
      std::min(end - begin, std::max<int64_t>(16, kBlockBytes / bytes));
  const int64_t image_pixels = g.window.y.out * g.window.x.out;
  const int64_t image_size = g.window.y.in * g.window.x.in * g.channels;
  const Scratch<T> patches(block * patch);
  for (int64_t first = begin; first < end; first += block) {
    LeaveIfRunEnded();
    const int64_t count = std::min(block, end - first);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t pixel = (first + i) % image_pixels;
      CopyPatch(in + (first + i) / image_pixels * image_size, g,
                pixel / g.window.x.out, pixel % g.window.x.out,
                patches.data() + i * patch);
    }
    MultiplyOnOneThread<T>({patches.data(), count, patch, false},
                           {filter, patch, g.filters, false},
                           out + first * g.filters);
  }
}

template <typename T>
void Convolve(const T* in, const T* filter, const Geometry& g, ThreadPool* pool,
              T* out) {
  if (g.channels == 0) {
    std::fill_n(out, g.pixels() * g.filters, T(0));
    return;
  }
  if (g.is_pointwise()) {
    Multiply<T>({in, g.pixels(), g.channels, false},
                {filter, g.channels, g.filters, false}, pool, out);
    return;
  }
  const int64_t work = std::max<int64_t>(1, g.patch() * g.filters);
  pool->ParallelFor(g.pixels(), std::max<int64_t>(16, 256 * 1024 / work),
                    [&](int64_t begin, int64_t end) {
                      ConvolvePixels(in, filter, g, begin, end, out);
                    });
}

// Columns [first, first + count) of rows of `width` elements; and back.
template <typename T>
void CopyColumns(const T* from, int64_t rows, int64_t width, int64_t first,
                 int64_t count, T* to) {
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(from + r * width + first, count, to + r * count);
  }
}
template <typename T>
void StoreColumns(const T* from, int64_t rows, int64_t width, int64_t first,
                  int64_t count, T* to) {
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(from + r * count, count, to + r * width + first);
  }
}

// Each group of channels has filters of its own. `g` is that of one group.
template <typename T>
void ConvolveGroups(const T* in, const T* filter, const Geometry& g,
                    int64_t groups, ThreadPool* pool, T* out) {
  const int64_t in_pixels = g.batch * g.window.y.in * g.window.x.in;
  const Scratch<T> image(in_pixels * g.channels);
  const Scratch<T> weights(g.patch() * g.filters);
  const Scratch<T> result(g.pixels() * g.filters);
  for (int64_t i = 0; i < groups; ++i) {
    CopyColumns(in, in_pixels, groups * g.channels, i * g.channels, g.channels,
                image.data());
    CopyColumns(filter, g.patch(), groups * g.filters, i * g.filters, g.filters,
                weights.data());
    Convolve(image.data(), weights.data(), g, pool, result.data());
    StoreColumns(result.data(), g.pixels(), groups * g.filters, i * g.filters,
                 g.filters, out);
  }
}

template <typename T>
class Conv2D final : public Kernel {
 public:
  explicit Conv2D(const WindowAttrs& attrs) : attrs_(attrs) {}

  absl::Status Compute(KernelContext* context) const override {
    constexpr DataType kType = DataTypeOf<T>::kValue;
    OPTFARM_ASSIGN_OR_RETURN(
        const ConvolutionInput input,
        ReadConvolutionInput(*context, attrs_, kType, true));
    const Tensor &in = input.image, &filter = input.filter;
    const int64_t dims[] = {in.dim(0), input.window.y.out, input.window.x.out,
                            filter.dim(3)};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(kType, shape));
    const int64_t groups =
        in.dim(3) == filter.dim(2) ? 1 : in.dim(3) / filter.dim(2);
    if (shape.num_elements() == 0 || groups == 0) {
      std::fill_n(out.data<T>(), shape.num_elements(), T(0));
    } else {
      const Geometry g{in.dim(0), filter.dim(2), filter.dim(3) / groups,
                       input.window};
      if (groups == 1) {
        Convolve(in.data<T>(), filter.data<T>(), g, context->pool(),
                 out.data<T>());
      } else {
        ConvolveGroups(in.data<T>(), filter.data<T>(), g, groups,
                       context->pool(), out.data<T>());
      }
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

// The kernel class for the node's T.
template <template <typename> class KernelOf>
absl::StatusOr<std::unique_ptr<Kernel>> MakeConvolution(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const WindowAttrs attrs, ReadWindowAttrs(node));
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype,
                           graph::GetTypeOr(node, "T", tensorflow::DT_FLOAT));
  if (dtype == tensorflow::DT_DOUBLE) {
    // Eigen's product is much code for a type that few graphs have.
    if constexpr (IsTypeSelected(tensorflow::DT_DOUBLE)) {
      return std::make_unique<KernelOf<double>>(attrs);
    } else {
      return UnsupportedDtype("T", dtype);
    }
  }
  return std::make_unique<KernelOf<float>>(attrs);
}

// Adds one patch's values to the image they were taken from.
template <typename T>
void AddPatch(const T* patch, const Geometry& g, int64_t oy, int64_t ox,
              T* image) {
  const WindowAxis& y = g.window.y;
  const WindowAxis& x = g.window.x;
  for (int64_t ky = 0; ky < y.size; ++ky) {
    const int64_t iy = oy * y.stride - y.pad_before + ky * y.dilation;
    if (iy < 0 || iy >= y.in) continue;
    for (int64_t kx = 0; kx < x.size; ++kx) {
      const int64_t ix = ox * x.stride - x.pad_before + kx * x.dilation;
      if (ix < 0 || ix >= x.in) continue;
      const T* from = patch + (ky * x.size + kx) * g.channels;
      T* to = image + (iy * x.in + ix) * g.channels;
      for (int64_t c = 0; c < g.channels; ++c) to[c] += from[c];
    }
  }
}

// Adds all gradients of one image: blocks of patches by a matrix product, then
// scattered, because patches overlap, on the calling thread.
template <typename T>
void ScatterImage(const T* gradient, const T* filter, const Geometry& g,
                  ThreadPool* pool, T* image) {
  const int64_t pixels = g.window.y.out * g.window.x.out;
  const int64_t bytes = g.patch() * static_cast<int64_t>(sizeof(T));
  const int64_t block =
      std::min(pixels, std::max<int64_t>(16, 4 * kBlockBytes / bytes));
  const Scratch<T> patches(block * g.patch());
  for (int64_t first = 0; first < pixels; first += block) {
    LeaveIfRunEnded();
    const int64_t count = std::min(block, pixels - first);
    Multiply<T>({gradient + first * g.filters, count, g.filters, false},
                {filter, g.filters, g.patch(), true}, pool, patches.data());
    for (int64_t i = 0; i < count; ++i) {
      AddPatch(patches.data() + i * g.patch(), g, (first + i) / g.window.x.out,
               (first + i) % g.window.x.out, image);
    }
  }
}

template <typename T>
class Conv2DBackpropInput final : public Kernel {
 public:
  explicit Conv2DBackpropInput(const WindowAttrs& attrs) : attrs_(attrs) {}

  absl::Status Compute(KernelContext* context) const override {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& filter = context->input(1);
    Tensor gradient = context->input(2);
    constexpr DataType kType = DataTypeOf<T>::kValue;
    OPTFARM_RETURN_IF_ERROR(RequireDtype(filter, "filter", kType));
    OPTFARM_RETURN_IF_ERROR(RequireDtype(gradient, "out_backprop", kType));
    OPTFARM_RETURN_IF_ERROR(RequireRank(filter, "filter", 4));
    OPTFARM_RETURN_IF_ERROR(RequireRank(gradient, "out_backprop", 4));
    if (attrs_.is_nchw) {
      OPTFARM_ASSIGN_OR_RETURN(gradient, NchwToNhwc(gradient, context->pool()));
    }
    OPTFARM_ASSIGN_OR_RETURN(
        const Shape shape, ReadInputShape(context->input(0), gradient, filter));
    Geometry g{shape.dim(0), shape.dim(3), filter.dim(3), {}};
    OPTFARM_ASSIGN_OR_RETURN(
        g.window, PlaceWindow(attrs_, shape.dim(1), shape.dim(2), filter.dim(0),
                              filter.dim(1)));
    const int64_t dims[] = {g.batch, g.window.y.out, g.window.x.out, g.filters};
    OPTFARM_ASSIGN_OR_RETURN(const Shape expected, Shape::FromDims(dims));
    OPTFARM_RETURN_IF_ERROR(RequireShape(gradient, "out_backprop", expected));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Zeros(kType, shape));
    if (shape.num_elements() > 0 && gradient.num_elements() > 0) {
      for (int64_t n = 0; n < g.batch; ++n) {
        ScatterImage(gradient.data<T>() + n * gradient.num_elements() / g.batch,
                     filter.data<T>(), g, context->pool(),
                     out.data<T>() + n * shape.num_elements() / g.batch);
      }
    }
    if (attrs_.is_nchw) {
      OPTFARM_ASSIGN_OR_RETURN(out, NhwcToNchw(out, context->pool()));
    }
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  }

 private:
  // input_sizes in NHWC order; two values are height and width alone.
  absl::StatusOr<Shape> ReadInputShape(const Tensor& sizes,
                                       const Tensor& gradient,
                                       const Tensor& filter) const {
    OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                             ReadIntegers(sizes, "input_sizes"));
    if (dims.size() == 2) {
      dims = {gradient.dim(0), dims[0], dims[1], filter.dim(2)};
    } else if (dims.size() == 4 && attrs_.is_nchw) {
      dims = {dims[0], dims[2], dims[3], dims[1]};
    }
    if (dims.size() != 4 || dims[3] != filter.dim(2) ||
        gradient.dim(3) != filter.dim(3) || dims[0] != gradient.dim(0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("input_sizes, out_backprop of shape ",
                       gradient.shape().ToString(), " and filter of shape ",
                       filter.shape().ToString(), " do not fit together"));
    }
    return Shape::FromDims(dims);
  }

  WindowAttrs attrs_;
};

}  // namespace

void AddConvolutionKernels(KernelCatalog* catalog) {
  catalog->Add("Conv2D", MakeConvolution<Conv2D>);
  catalog->Add("Conv2DBackpropInput", MakeConvolution<Conv2DBackpropInput>);
}

}  // namespace optfarm::runtime
