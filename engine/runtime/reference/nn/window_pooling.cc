// WindowPool: pooling over any number of spatial dimensions, with dilations,
// rounding up, and the places of the maxima, as ONNX defines them.

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/layer_families.h"

namespace optfarm::runtime {
namespace {

constexpr int64_t kMost = int64_t{1} << 30;

struct PoolAttrs {
  std::vector<int64_t> kernel, strides, dilations, pads;
  bool is_average = false;
  bool ceil_mode = false;
  bool counts_pads = false;
  // Indices count columns of an image first.
  bool columns_first = false;

  size_t rank() const { return kernel.size(); }
};

// Sizes of one image.
struct PoolSizes {
  std::vector<int64_t> in, out;
  int64_t in_elements = 1, out_elements = 1;
};

absl::StatusOr<PoolSizes> Place(const PoolAttrs& a, const Shape& shape) {
  PoolSizes sizes;
  for (size_t i = 0; i < a.rank(); ++i) {
    const int64_t in = shape.dim(static_cast<int>(i) + 2);
    const int64_t reach = (a.kernel[i] - 1) * a.dilations[i];
    int64_t room = std::min(in, kMost * kMost) + a.pads[i] +
                   a.pads[i + a.rank()] - reach - 1;
    // Rounded up, there is one window that reaches beyond the pads.
    if (a.ceil_mode && room > -a.strides[i]) room = std::max<int64_t>(room, 0);
    if (room < 0 || in > kMost * kMost / 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("a window of ", reach + 1, " on an image of ", in));
    }
    int64_t places = room / a.strides[i];
    if (a.ceil_mode && room % a.strides[i] != 0 &&
        (places + 1) * a.strides[i] < in + a.pads[i]) {
      ++places;
    }
    sizes.in.push_back(in);
    sizes.out.push_back(places + 1);
    sizes.in_elements *= in;
  }
  return sizes;
}

// The cells of one window that lie in the image: f(index of the element).
// Returns how many cells count with the pads, those beyond them left out.
template <typename Function>
int64_t ForEachCell(const PoolAttrs& a, const PoolSizes& s,
                    const std::vector<int64_t>& place, Function f) {
  std::vector<int64_t> cell(a.rank(), 0);
  int64_t counted = 0;
  while (true) {
    int64_t index = 0;
    bool is_inside = true, counts = true;
    for (size_t i = 0; i < a.rank(); ++i) {
      const int64_t at =
          place[i] * a.strides[i] - a.pads[i] + cell[i] * a.dilations[i];
      is_inside = is_inside && at >= 0 && at < s.in[i];
      counts = counts && at < s.in[i] + a.pads[i + a.rank()];
      index = index * s.in[i] + at;
    }
    counted += counts;
    if (is_inside) f(index);
    size_t axis = a.rank();
    while (axis > 0 && ++cell[axis - 1] == a.kernel[axis - 1]) {
      cell[--axis] = 0;
    }
    if (axis == 0) return counted;
  }
}

// The element's number when columns are counted first.
int64_t ColumnsFirst(const PoolSizes& s, int64_t index) {
  std::vector<int64_t> at(s.in.size());
  for (size_t i = s.in.size(); i-- > 0;) {
    at[i] = index % s.in[i];
    index /= s.in[i];
  }
  int64_t number = 0;
  for (size_t i = s.in.size(); i-- > 0;) number = number * s.in[i] + at[i];
  return number;
}

template <typename T>
void PoolImage(const PoolAttrs& a, const PoolSizes& s, const T* in,
               int64_t first_index, T* out, int64_t* indices) {
  std::vector<int64_t> place(a.rank(), 0);
  for (int64_t o = 0; o < s.out_elements; ++o) {
    if (a.is_average) {
      double sum = 0;
      int64_t inside = 0;
      const int64_t counted = ForEachCell(a, s, place, [&](int64_t index) {
        sum += static_cast<double>(in[index]);
        ++inside;
      });
      const int64_t count = a.counts_pads ? counted : inside;
      out[o] =
          count == 0 ? T(0) : static_cast<T>(sum / static_cast<double>(count));
      indices[o] = 0;
    } else {
      int64_t best = -1;
      ForEachCell(a, s, place, [&](int64_t index) {
        if (best < 0 || in[index] > in[best]) best = index;
      });
      out[o] = best < 0 ? std::numeric_limits<T>::lowest() : in[best];
      const int64_t number =
          a.columns_first && best >= 0 ? ColumnsFirst(s, best) : best;
      indices[o] = number < 0 ? 0 : first_index + number;
    }
    for (size_t axis = a.rank();
         axis > 0 && ++place[axis - 1] == s.out[axis - 1];) {
      place[--axis] = 0;
    }
  }
}

absl::Status ComputePool(const PoolAttrs& attrs, KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
  const Tensor& x = context->input(0);
  OPTFARM_RETURN_IF_ERROR(
      RequireRank(x, "x", static_cast<int>(attrs.rank()) + 2));
  const bool has_pads =
      attrs.pads.size() == 2 * attrs.rank() &&
      std::all_of(attrs.pads.begin(), attrs.pads.end(),
                  [](int64_t pad) { return pad >= 0 && pad <= kMost; });
  if (!has_pads) {
    return absl::InvalidArgumentError(
        "pads must be two values from 0 for each dimension");
  }
  OPTFARM_ASSIGN_OR_RETURN(PoolSizes sizes, Place(attrs, x.shape()));
  std::vector<int64_t> dims = {x.dim(0), x.dim(1)};
  dims.insert(dims.end(), sizes.out.begin(), sizes.out.end());
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(x.dtype(), shape));
  OPTFARM_ASSIGN_OR_RETURN(Tensor indices,
                           Tensor::Allocate(tensorflow::DT_INT64, shape));
  for (const int64_t size : sizes.out) sizes.out_elements *= size;
  const int64_t images = x.dim(0) * x.dim(1);
  OPTFARM_RETURN_IF_ERROR(
      VisitNumber(x.dtype(), "x", [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        if (shape.num_elements() == 0) return absl::OkStatus();
        const T* in = x.data<T>();
        T* to = out.data<T>();
        int64_t* places = indices.data<int64_t>();
        context->pool()->ParallelFor(
            images, 1, [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                LeaveIfRunEnded();
                PoolImage(attrs, sizes, in + i * sizes.in_elements,
                          i * sizes.in_elements, to + i * sizes.out_elements,
                          places + i * sizes.out_elements);
              }
            });
        return absl::OkStatus();
      }));
  context->SetOutput(0, std::move(out));
  context->SetOutput(1, std::move(indices));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> ReadList(const tensorflow::NodeDef& node,
                                              absl::string_view name,
                                              size_t count, int64_t least) {
  OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> values,
                           graph::GetInts(node, name));
  const bool fits = values.size() == count &&
                    std::all_of(values.begin(), values.end(), [&](int64_t v) {
                      return v >= least && v <= kMost;
                    });
  if (fits) return values;
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must be ", count, " values from ", least));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeWindowPool(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  PoolAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(attrs.kernel, graph::GetInts(node, "kernel"));
  const size_t rank = attrs.kernel.size();
  if (rank < 1 || rank > 8) {
    return absl::UnimplementedError(
        absl::StrCat("pooling over ", rank, " dimensions"));
  }
  OPTFARM_ASSIGN_OR_RETURN(attrs.kernel, ReadList(node, "kernel", rank, 1));
  OPTFARM_ASSIGN_OR_RETURN(attrs.strides, ReadList(node, "strides", rank, 1));
  OPTFARM_ASSIGN_OR_RETURN(attrs.dilations,
                           ReadList(node, "dilations", rank, 1));
  OPTFARM_ASSIGN_OR_RETURN(attrs.pads, graph::GetInts(node, "pads"));
  OPTFARM_ASSIGN_OR_RETURN(const std::string kind,
                           graph::GetStringOr(node, "kind", "MAX"));
  attrs.is_average = kind == "AVERAGE";
  OPTFARM_ASSIGN_OR_RETURN(attrs.ceil_mode,
                           graph::GetBoolOr(node, "ceil_mode", false));
  OPTFARM_ASSIGN_OR_RETURN(attrs.counts_pads,
                           graph::GetBoolOr(node, "count_include_pad", false));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t order,
                           graph::GetIntOr(node, "storage_order", 0));
  attrs.columns_first = order != 0;
  return MakeKernel([attrs = std::move(attrs)](KernelContext* context) {
    return ComputePool(attrs, context);
  });
}

}  // namespace

void AddWindowPoolingKernels(KernelCatalog* catalog) {
  catalog->Add("WindowPool", MakeWindowPool);
}

}  // namespace optfarm::runtime
