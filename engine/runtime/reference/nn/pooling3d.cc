// MaxPool3D and AvgPool3D. Cells outside the volume take no part.

#include <algorithm>
#include <limits>
#include <vector>

#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/nn/window3d.h"

namespace optfarm::runtime {
namespace {

// One output place; `image` is the input of its batch.
template <typename T, bool kIsMax>
void PoolPlace(const T* image, const Window3d& window,
               const std::array<int64_t, 3>& place, int64_t channels, T* to) {
  std::fill_n(to, channels, kIsMax ? std::numeric_limits<T>::lowest() : T(0));
  int64_t cells = 0;
  ForEachCell(window, place, [&](int64_t, int64_t at) {
    const T* from = image + at * channels;
    ++cells;
    for (int64_t c = 0; c < channels; ++c) {
      if constexpr (kIsMax) {
        to[c] = to[c] < from[c] ? from[c] : to[c];
      } else {
        to[c] += from[c];
      }
    }
  });
  if (kIsMax) return;
  for (int64_t c = 0; c < channels; ++c) to[c] /= static_cast<T>(cells);
}

template <typename T, bool kIsMax>
void Pool(const Tensor& in, const Window3d& window, ThreadPool* pool,
          Tensor* out) {
  const int64_t channels = in.dim(4);
  const int64_t image = DimProduct(in.shape(), 1, 5);
  const int64_t height = window.axes[1].out;
  const int64_t width = window.axes[2].out;
  const int64_t places = window.axes[0].out * height * width;
  const int64_t grain = 1 + 64 * 1024 / (window.cells() * channels);
  pool->ParallelFor(in.dim(0) * places, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t p = i % places;
      PoolPlace<T, kIsMax>(in.data<T>() + i / places * image, window,
                           {p / width / height, p / width % height, p % width},
                           channels, out->data<T>() + i * channels);
    }
  });
}

template <bool kIsMax>
absl::StatusOr<std::unique_ptr<Kernel>> MakePool3D(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const Window3dAttrs attrs, ReadWindow3dAttrs(node));
  return MakeKernel([attrs](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    Tensor in = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireRank(in, "input", 5));
    if (attrs.is_ncdhw) {
      OPTFARM_ASSIGN_OR_RETURN(in, NcdhwToNdhwc(in, context->pool()));
    }
    OPTFARM_ASSIGN_OR_RETURN(
        const Window3d window,
        PlaceWindow3d(attrs, in.shape().dims().subspan(1, 3), attrs.size));
    const int64_t dims[] = {in.dim(0), window.axes[0].out, window.axes[1].out,
                            window.axes[2].out, in.dim(4)};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(in.dtype(), shape));
    if (shape.num_elements() > 0) {
      OPTFARM_RETURN_IF_ERROR(
          VisitFloat(in.dtype(), "input", [&](auto tag) -> absl::Status {
            using T = typename decltype(tag)::type;
            Pool<T, kIsMax>(in, window, context->pool(), &out);
            return absl::OkStatus();
          }));
    }
    if (attrs.is_ncdhw) {
      OPTFARM_ASSIGN_OR_RETURN(out, NdhwcToNcdhw(out, context->pool()));
    }
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

}  // namespace

void AddPooling3dKernels(KernelCatalog* catalog) {
  catalog->Add("MaxPool3D", MakePool3D<true>);
  catalog->Add("AvgPool3D", MakePool3D<false>);
}

}  // namespace optfarm::runtime
