// Moving elements about: Roll, Reverse, ReverseSequence, DeepCopy, Empty,
// ExtractImagePatches, and LinSpace.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/nn/window.h"

namespace optfarm::runtime {
namespace {

// A copy along `axis` whose index k comes from source(k).
template <typename Source>
absl::StatusOr<Tensor> Permuted(const Tensor& in, int axis, Source source) {
  OPTFARM_ASSIGN_OR_RETURN(Tensor out,
                           Tensor::Allocate(in.dtype(), in.shape()));
  const int64_t outer = DimProduct(in.shape(), 0, axis);
  const int64_t inner = DimProduct(in.shape(), axis + 1, in.rank());
  const int64_t size = in.dim(axis);
  OPTFARM_RETURN_IF_ERROR(
      VisitBySize(in.dtype(), "input", [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        for (int64_t o = 0; o < outer; ++o) {
          for (int64_t k = 0; k < size; ++k) {
            std::copy_n(in.data<T>() + (o * size + source(k)) * inner, inner,
                        out.data<T>() + (o * size + k) * inner);
          }
        }
        return absl::OkStatus();
      }));
  return out;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeRoll(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    Tensor tensor = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> shifts,
                             ReadIntegers(context->input(1), "shift"));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                             ReadIntegers(context->input(2), "axis"));
    if (shifts.size() != axes.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          shifts.size(), " shifts do not fit ", axes.size(), " axes"));
    }
    for (size_t i = 0; i < axes.size(); ++i) {
      OPTFARM_ASSIGN_OR_RETURN(const int axis,
                               NormalizeAxis(axes[i], tensor.rank()));
      const int64_t size = tensor.dim(axis);
      if (size == 0) continue;
      const int64_t shift = (shifts[i] % size + size) % size;
      OPTFARM_ASSIGN_OR_RETURN(tensor, Permuted(tensor, axis, [&](int64_t k) {
                                 return (k - shift + size) % size;
                               }));
    }
    context->SetOutput(0, std::move(tensor));
    return absl::OkStatus();
  });
}

// The first version: one flag for each dimension.
absl::StatusOr<std::unique_ptr<Kernel>> MakeReverse(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    Tensor tensor = context->input(0);
    const Tensor& flags = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireDtype(flags, "dims", tensorflow::DT_BOOL));
    OPTFARM_RETURN_IF_ERROR(RequireShape(flags, "dims", Shape{tensor.rank()}));
    for (int axis = 0; axis < tensor.rank(); ++axis) {
      if (!flags.data<bool>()[axis]) continue;
      const int64_t last = tensor.dim(axis) - 1;
      OPTFARM_ASSIGN_OR_RETURN(
          tensor, Permuted(tensor, axis, [&](int64_t k) { return last - k; }));
    }
    context->SetOutput(0, std::move(tensor));
    return absl::OkStatus();
  });
}

// The first seq_lengths[b] elements along seq_dim of each batch b turn around.
absl::StatusOr<std::unique_ptr<Kernel>> MakeReverseSequence(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t seq_attr,
                           graph::GetInt(node, "seq_dim"));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t batch_attr,
                           graph::GetIntOr(node, "batch_dim", 0));
  return MakeKernel([=](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& in = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const int seq, NormalizeAxis(seq_attr, in.rank()));
    OPTFARM_ASSIGN_OR_RETURN(const int batch,
                             NormalizeAxis(batch_attr, in.rank()));
    if (seq == batch) {
      return absl::InvalidArgumentError(
          "seq_dim and batch_dim must be different dimensions");
    }
    OPTFARM_RETURN_IF_ERROR(
        RequireShape(context->input(1), "seq_lengths", Shape{in.dim(batch)}));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths,
                             context->input(1).AsInt64s());
    for (int64_t length : lengths) {
      if (length < 0 || length > in.dim(seq)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "length ", length, " is not within [0, ", in.dim(seq), "]"));
      }
    }
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, in.dtype(), in.shape()));
    if (in.num_elements() == 0) return absl::OkStatus();
    const int64_t batch_step = DimProduct(in.shape(), batch + 1, in.rank());
    const int64_t seq_step = DimProduct(in.shape(), seq + 1, in.rank());
    return VisitBySize(in.dtype(), "input", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < in.num_elements(); ++i) {
        const int64_t length = lengths[i / batch_step % in.dim(batch)];
        const int64_t at = i / seq_step % in.dim(seq);
        const int64_t from =
            at < length ? i + (length - 1 - 2 * at) * seq_step : i;
        out->data<T>()[i] = in.data<T>()[from];
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDeepCopy(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& x = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, x.dtype(), x.shape()));
    return VisitBySize(x.dtype(), "x", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      std::copy_n(x.data<T>(), x.num_elements(), out->data<T>());
      return absl::OkStatus();
    });
  });
}

// TensorFlow leaves the elements undefined without `init`; here they are 0.
absl::StatusOr<std::unique_ptr<Kernel>> MakeEmpty(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype, graph::GetType(node, "dtype"));
  OPTFARM_RETURN_IF_ERROR(Tensor::Allocate(dtype, Shape{0}).status());
  return MakeKernel([dtype](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                             ReadIntegers(context->input(0), "shape"));
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Zeros(dtype, shape));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLinSpace(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& start = context->input(0);
    const Tensor& stop = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(start, stop));
    OPTFARM_RETURN_IF_ERROR(RequireOneElement(start, "start"));
    OPTFARM_RETURN_IF_ERROR(RequireOneElement(stop, "stop"));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t num,
                             ReadInteger(context->input(2), "num"));
    if (num < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("'num' must be at least 1, but is ", num));
    }
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, start.dtype(), Shape{num}));
    return VisitFloat(start.dtype(), "start", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      const T from = *start.data<T>();
      const T step =
          num > 1 ? (*stop.data<T>() - from) / static_cast<T>(num - 1) : T(0);
      for (int64_t i = 0; i < num; ++i) {
        out->data<T>()[i] = from + step * static_cast<T>(i);
      }
      if (num > 1) out->data<T>()[num - 1] = *stop.data<T>();
      return absl::OkStatus();
    });
  });
}

// Without the window's size.
absl::StatusOr<WindowAttrs> ReadPatchAttrs(const tensorflow::NodeDef& node) {
  WindowAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> strides,
                           ReadWindowList(node, "strides", false));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> rates,
                           ReadWindowList(node, "rates", false));
  OPTFARM_ASSIGN_OR_RETURN(const bool is_same, graph::IsSame(node));
  attrs.padding = is_same ? Padding::kSame : Padding::kValid;
  attrs.stride_y = strides[0];
  attrs.stride_x = strides[1];
  attrs.dilation_y = rates[0];
  attrs.dilation_x = rates[1];
  return attrs;
}

// REQUIRES: `to` is zero; it has `patches` of the window's size.
template <typename T>
void CopyPatches(const T* in, const Window& window, int64_t channels,
                 int64_t patches, T* to) {
  const WindowAxis& y = window.y;
  const WindowAxis& x = window.x;
  for (int64_t p = 0; p < patches; ++p) {
    const int64_t y0 = p / x.out % y.out * y.stride - y.pad_before;
    const int64_t x0 = p % x.out * x.stride - x.pad_before;
    const T* image = in + p / x.out / y.out * y.in * x.in * channels;
    for (int64_t k = 0; k < y.size * x.size; ++k, to += channels) {
      const int64_t iy = y0 + k / x.size * y.dilation;
      const int64_t ix = x0 + k % x.size * x.dilation;
      if (iy < 0 || iy >= y.in || ix < 0 || ix >= x.in) continue;
      std::copy_n(image + (iy * x.in + ix) * channels, channels, to);
    }
  }
}

// The window's cells, one after another, as the channels of each output pixel.
absl::StatusOr<std::unique_ptr<Kernel>> MakeExtractImagePatches(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> size,
                           ReadWindowList(node, "ksizes", false));
  OPTFARM_ASSIGN_OR_RETURN(const WindowAttrs attrs, ReadPatchAttrs(node));
  return MakeKernel([attrs, size](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& in = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireRank(in, "images", 4));
    OPTFARM_ASSIGN_OR_RETURN(
        const Window window,
        PlaceWindow(attrs, in.dim(1), in.dim(2), size[0], size[1]));
    const int64_t channels = in.dim(3);
    int64_t depth = 0;
    if (__builtin_mul_overflow(size[0] * size[1], channels, &depth)) {
      return absl::InvalidArgumentError("the patches are too large");
    }
    const int64_t dims[] = {in.dim(0), window.y.out, window.x.out, depth};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Zeros(in.dtype(), shape));
    if (shape.num_elements() > 0 && in.num_elements() > 0) {
      OPTFARM_RETURN_IF_ERROR(
          VisitBySize(in.dtype(), "images", [&](auto tag) -> absl::Status {
            using T = typename decltype(tag)::type;
            CopyPatches(in.data<T>(), window, channels,
                        shape.num_elements() / depth, out.data<T>());
            return absl::OkStatus();
          }));
    }
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

}  // namespace

void AddMovingKernels(KernelCatalog* catalog) {
  catalog->Add("Roll", MakeRoll);
  catalog->Add("Reverse", MakeReverse);
  catalog->Add("ReverseSequence", MakeReverseSequence);
  catalog->Add("DeepCopy", MakeDeepCopy, /*is_pure=*/false);
  catalog->Add("Empty", MakeEmpty);
  catalog->Add("LinSpace", MakeLinSpace);
  catalog->Add("ExtractImagePatches", MakeExtractImagePatches);
}

}  // namespace optfarm::runtime
