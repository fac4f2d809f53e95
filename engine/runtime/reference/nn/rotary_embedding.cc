// RotaryEmbedding: pairs of elements turned by an angle that grows with the
// position (Su et al., "RoFormer").

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

struct RotaryAttributes {
  // The pairs are neighbours; else they stand half of the turned part apart.
  bool interleaved = false;
  // Of an input [batch, rows, heads * size].
  int64_t heads = 0;
  // How many elements of a head are turned; 0: all.
  int64_t turned = 0;
};

struct RotarySizes {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t rows = 0;
  int64_t size = 0;
  int64_t turned = 0;
  // [batch, rows, heads, size] in place of [batch, heads, rows, size].
  bool has_rows_first = false;
};

absl::StatusOr<RotarySizes> SizesOf(const RotaryAttributes& attributes,
                                    const Tensor& x) {
  RotarySizes sizes;
  if (x.rank() == 4) {
    sizes = {x.dim(0), x.dim(1), x.dim(2), x.dim(3), 0, false};
  } else if (x.rank() == 3 && attributes.heads > 0 &&
             x.dim(2) % attributes.heads == 0) {
    sizes = {x.dim(0), attributes.heads,
             x.dim(1), x.dim(2) / attributes.heads,
             0,        true};
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("'x' of shape ", x.shape().ToString(), " does not hold ",
                     attributes.heads, " heads"));
  }
  sizes.turned = attributes.turned == 0 ? sizes.size : attributes.turned;
  if (sizes.turned % 2 != 0 || sizes.turned > sizes.size) {
    return absl::InvalidArgumentError(
        absl::StrCat(sizes.turned, " elements of a head of ", sizes.size,
                     " do not form pairs"));
  }
  return sizes;
}

// The row of the caches for each row of each example.
absl::StatusOr<std::vector<int64_t>> CacheRows(const RotarySizes& sizes,
                                               const Tensor& cache,
                                               const Tensor& positions) {
  const int64_t half = sizes.turned / 2;
  std::vector<int64_t> rows(sizes.batch * sizes.rows);
  if (positions.rank() == 1 && positions.num_elements() == 0) {
    if (cache.rank() != 3 || cache.dim(0) != sizes.batch ||
        cache.dim(1) != sizes.rows || cache.dim(2) != half) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'cos' of shape ", cache.shape().ToString(), " does not hold ", half,
          " angles for each row of each example"));
    }
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);
    return rows;
  }
  OPTFARM_RETURN_IF_ERROR(RequireRank(cache, "cos", 2));
  if (cache.dim(1) != half) {
    return absl::InvalidArgumentError(
        absl::StrCat("'cos' of shape ", cache.shape().ToString(),
                     " does not hold ", half, " angles for each position"));
  }
  OPTFARM_RETURN_IF_ERROR(
      RequireShape(positions, "positions", {sizes.batch, sizes.rows}));
  OPTFARM_ASSIGN_OR_RETURN(rows, positions.AsInt64s());
  for (int64_t row : rows) {
    if (row < 0 || row >= cache.dim(0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "position ", row, " is not within [0, ", cache.dim(0), ")"));
    }
  }
  return rows;
}

template <typename T>
void TurnHead(const T* x, const T* cos, const T* sin, const RotarySizes& sizes,
              bool interleaved, T* y) {
  const int64_t half = sizes.turned / 2;
  for (int64_t k = 0; k < half; ++k) {
    const int64_t a = interleaved ? 2 * k : k;
    const int64_t b = interleaved ? 2 * k + 1 : k + half;
    const T first = x[a];
    const T second = x[b];
    y[a] = cos[k] * first - sin[k] * second;
    y[b] = sin[k] * first + cos[k] * second;
  }
  std::copy(x + sizes.turned, x + sizes.size, y + sizes.turned);
}

absl::Status Compute(const RotaryAttributes& attributes,
                     KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 4));
  const Tensor& x = context->input(0);
  const Tensor& cos = context->input(1);
  const Tensor& sin = context->input(2);
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(x, cos));
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(x, sin));
  OPTFARM_RETURN_IF_ERROR(RequireShape(sin, "sin", cos.shape()));
  OPTFARM_ASSIGN_OR_RETURN(const RotarySizes sizes, SizesOf(attributes, x));
  if (x.num_elements() == 0) {
    return context->AllocateOutput(0, x.dtype(), x.shape()).status();
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> rows,
                           CacheRows(sizes, cos, context->input(3)));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, x.dtype(), x.shape()));
  const int64_t heads = sizes.batch * sizes.heads * sizes.rows;
  return VisitFloat(x.dtype(), "x", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < heads; ++i) {
      const int64_t b = i / (sizes.heads * sizes.rows);
      const int64_t r =
          sizes.has_rows_first ? i / sizes.heads % sizes.rows : i % sizes.rows;
      const int64_t at = rows[b * sizes.rows + r] * (sizes.turned / 2);
      TurnHead(x.data<T>() + i * sizes.size, cos.data<T>() + at,
               sin.data<T>() + at, sizes, attributes.interleaved,
               out->data<T>() + i * sizes.size);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeRotaryEmbedding(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  RotaryAttributes a;
  OPTFARM_ASSIGN_OR_RETURN(a.interleaved,
                           graph::GetBoolOr(node, "interleaved", false));
  OPTFARM_ASSIGN_OR_RETURN(a.heads, graph::GetIntOr(node, "heads", 0));
  OPTFARM_ASSIGN_OR_RETURN(a.turned, graph::GetIntOr(node, "turned", 0));
  if (a.turned < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("turned = ", a.turned, " is not a size"));
  }
  return MakeKernel(
      [a](KernelContext* context) { return Compute(a, context); });
}

}  // namespace

void AddRotaryEmbeddingKernels(KernelCatalog* catalog) {
  catalog->Add("RotaryEmbedding", MakeRotaryEmbedding);
}

}  // namespace optfarm::runtime
