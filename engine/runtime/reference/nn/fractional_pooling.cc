// FractionalMaxPool and FractionalAvgPool: cells whose borders are drawn at
// random, so that a picture shrinks by a ratio that is no whole number (Graham,
// "Fractional Max-Pooling", 2014). The borders follow TensorFlow's
// distribution, not its draws.

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/random/philox.h"

namespace optfarm::runtime {
namespace {

constexpr DataType kTypes[] = {tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE,
                               tensorflow::DT_INT32, tensorflow::DT_INT64};

struct FractionalAttrs {
  // Of height and width.
  double ratio_y = 1.0;
  double ratio_x = 1.0;
  bool is_pseudo_random = false;
  bool is_overlapping = false;
};

// Borders of `cells` cells over `size` elements: cell i is [b[i], b[i + 1]).
using Borders = std::vector<int64_t>;

// Steps of two lengths in any order.
Borders DrawBorders(int64_t size, int64_t cells, Philox* random) {
  std::vector<int64_t> steps(static_cast<size_t>(cells), size / cells);
  std::fill_n(steps.begin(), size % cells, size / cells + 1);
  for (size_t i = steps.size(); i > 1; --i) {
    std::swap(steps[i - 1], steps[random->NextWord64() % i]);
  }
  Borders borders = {0};
  for (int64_t step : steps) borders.push_back(borders.back() + step);
  return borders;
}

// ceil(alpha * (i + u)) for one random u: steps of two lengths, evenly mixed.
Borders DrawEvenBorders(int64_t size, int64_t cells, Philox* random) {
  const double alpha = static_cast<double>(size) / static_cast<double>(cells);
  const double whole = std::floor(alpha);
  const double most = std::min((whole + 2) / alpha - 1,
                               (static_cast<double>(size) + 1 - whole) / alpha -
                                   (static_cast<double>(cells) - 1));
  const double u = random->NextUnit() * most;
  Borders borders = {0};
  for (int64_t i = 1; i < cells; ++i) {
    const double at = std::ceil(alpha * (static_cast<double>(i) + u)) - 1;
    // Whatever is rounded, no cell is empty.
    borders.push_back(std::clamp(static_cast<int64_t>(at), borders.back() + 1,
                                 size - (cells - i)));
  }
  borders.push_back(size);
  return borders;
}

absl::StatusOr<Borders> BordersOf(int64_t size, double ratio,
                                  bool is_pseudo_random, Philox* random) {
  const auto cells =
      static_cast<int64_t>(std::floor(static_cast<double>(size) / ratio));
  if (cells < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "pooling_ratio ", ratio, " leaves nothing of ", size, " elements"));
  }
  return is_pseudo_random ? DrawEvenBorders(size, cells, random)
                          : DrawBorders(size, cells, random);
}

struct Cell {
  int64_t y0, y1, x0, x1;
};

template <typename T>
void MaxOf(const T* image, int64_t width, int64_t channels, const Cell& cell,
           T* out) {
  std::copy_n(image + (cell.y0 * width + cell.x0) * channels, channels, out);
  for (int64_t y = cell.y0; y < cell.y1; ++y) {
    for (int64_t x = cell.x0; x < cell.x1; ++x) {
      const T* from = image + (y * width + x) * channels;
      for (int64_t c = 0; c < channels; ++c) out[c] = std::max(out[c], from[c]);
    }
  }
}

template <typename T>
void MeanOf(const T* image, int64_t width, int64_t channels, const Cell& cell,
            T* out) {
  std::fill_n(out, channels, T(0));
  for (int64_t y = cell.y0; y < cell.y1; ++y) {
    for (int64_t x = cell.x0; x < cell.x1; ++x) {
      const T* from = image + (y * width + x) * channels;
      for (int64_t c = 0; c < channels; ++c) out[c] += from[c];
    }
  }
  const T count = static_cast<T>((cell.y1 - cell.y0) * (cell.x1 - cell.x0));
  for (int64_t c = 0; c < channels; ++c) out[c] /= count;
}

// Cell i along an axis; overlapping cells have their border in common.
std::pair<int64_t, int64_t> RangeOf(const Borders& borders, size_t i,
                                    bool is_overlapping) {
  const int64_t end = borders[i + 1] + (is_overlapping ? 1 : 0);
  return {borders[i], std::min(end, borders.back())};
}

template <typename T, bool kIsMax>
void PoolAll(const Tensor& in, const FractionalAttrs& attrs,
             const Borders& rows, const Borders& columns, ThreadPool* pool,
             Tensor* out) {
  const int64_t channels = in.dim(3);
  const int64_t height = out->dim(1);
  pool->ParallelFor(out->dim(0) * height, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* image =
          in.data<T>() + i / height * in.dim(1) * in.dim(2) * channels;
      const auto [y0, y1] =
          RangeOf(rows, static_cast<size_t>(i % height), attrs.is_overlapping);
      for (int64_t x = 0; x < out->dim(2); ++x) {
        const auto [x0, x1] =
            RangeOf(columns, static_cast<size_t>(x), attrs.is_overlapping);
        T* to = out->data<T>() + (i * out->dim(2) + x) * channels;
        const Cell cell{y0, y1, x0, x1};
        if (kIsMax) {
          MaxOf(image, in.dim(2), channels, cell, to);
        } else {
          MeanOf(image, in.dim(2), channels, cell, to);
        }
      }
    }
  });
}

absl::StatusOr<FractionalAttrs> ReadAttrs(const tensorflow::NodeDef& node) {
  FractionalAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> ratios,
                           graph::GetFloats(node, "pooling_ratio"));
  if (ratios.size() != 4 || ratios[0] != 1.0f || ratios[3] != 1.0f ||
      !(ratios[1] >= 1.0f) || !(ratios[2] >= 1.0f)) {
    return absl::InvalidArgumentError(
        "pooling_ratio must be four numbers of at least 1, the first and the "
        "last being 1");
  }
  attrs.ratio_y = ratios[1];
  attrs.ratio_x = ratios[2];
  OPTFARM_ASSIGN_OR_RETURN(attrs.is_pseudo_random,
                           graph::GetBoolOr(node, "pseudo_random", false));
  OPTFARM_ASSIGN_OR_RETURN(attrs.is_overlapping,
                           graph::GetBoolOr(node, "overlapping", false));
  return attrs;
}

template <bool kIsMax>
absl::StatusOr<std::unique_ptr<Kernel>> MakeFractionalPool(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "T", {kTypes[0], kTypes[1], kTypes[2], kTypes[3]}));
  OPTFARM_ASSIGN_OR_RETURN(const FractionalAttrs attrs, ReadAttrs(node));
  OPTFARM_ASSIGN_OR_RETURN(const Seeds seeds, ReadSeeds(node));
  return MakeKernel([attrs, seeds](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 3));
    const Tensor& in = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireRank(in, "value", 4));
    Philox random(seeds.key, seeds.stream);
    OPTFARM_ASSIGN_OR_RETURN(
        const Borders rows,
        BordersOf(in.dim(1), attrs.ratio_y, attrs.is_pseudo_random, &random));
    OPTFARM_ASSIGN_OR_RETURN(
        const Borders columns,
        BordersOf(in.dim(2), attrs.ratio_x, attrs.is_pseudo_random, &random));
    const int64_t dims[] = {in.dim(0), static_cast<int64_t>(rows.size()) - 1,
                            static_cast<int64_t>(columns.size()) - 1,
                            in.dim(3)};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, in.dtype(), shape));
    context->SetOutput(1, Tensor::FromValues<int64_t>(
                              Shape{static_cast<int64_t>(rows.size())}, rows));
    context->SetOutput(
        2, Tensor::FromValues<int64_t>(
               Shape{static_cast<int64_t>(columns.size())}, columns));
    if (shape.num_elements() == 0) return absl::OkStatus();
    return VisitNumber(in.dtype(), "value", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      PoolAll<T, kIsMax>(in, attrs, rows, columns, context->pool(), out);
      return absl::OkStatus();
    });
  });
}

}  // namespace

void AddFractionalPoolingKernels(KernelCatalog* catalog) {
  catalog->Add("FractionalMaxPool", MakeFractionalPool<true>,
               /*is_pure=*/false);
  catalog->Add("FractionalAvgPool", MakeFractionalPool<false>,
               /*is_pure=*/false);
}

}  // namespace optfarm::runtime
