// NllLoss: the negative log likelihood of given classes.

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

enum class Reduction { kNone, kSum, kMean };

struct LossAttributes {
  Reduction reduction = Reduction::kMean;
  bool ignores = false;
  int64_t ignored = 0;
};

// Log probabilities [n, classes, ...], a class for each [n, ...].
struct LossSizes {
  int64_t batch = 0;
  int64_t classes = 0;
  int64_t inner = 1;
};

absl::StatusOr<LossSizes> MatchSizes(const Tensor& input, const Tensor& target,
                                     const Tensor& weight) {
  const Shape& shape = input.shape();
  bool fits = input.rank() >= 2 && target.rank() == input.rank() - 1;
  for (int i = 0; fits && i < target.rank(); ++i) {
    fits = target.dim(i) == input.dim(i == 0 ? 0 : i + 1);
  }
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat("'target' of shape ", target.shape().ToString(),
                     " does not hold a class for each of 'input' of shape ",
                     shape.ToString()));
  }
  LossSizes sizes{shape.dim(0), shape.dim(1),
                  DimProduct(shape, 2, shape.rank())};
  if (weight.num_elements() != 0 &&
      (weight.rank() != 1 || weight.dim(0) != sizes.classes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'weight' must be empty or hold ", sizes.classes,
                     " values, but has shape ", weight.shape().ToString()));
  }
  return sizes;
}

// The losses, and the sum of the weights of the classes.
template <typename T>
absl::StatusOr<double> Losses(const LossAttributes& attributes,
                              const LossSizes& sizes, const Tensor& input,
                              const std::vector<int64_t>& target,
                              const Tensor& weight, T* losses) {
  double total = 0.0;
  for (int64_t i = 0; i < sizes.batch * sizes.inner; ++i) {
    losses[i] = T(0);
    const int64_t label = target[i];
    if (attributes.ignores && label == attributes.ignored) continue;
    if (label < 0 || label >= sizes.classes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "class ", label, " is not within [0, ", sizes.classes, ")"));
    }
    const T by = weight.num_elements() == 0 ? T(1) : weight.data<T>()[label];
    const int64_t n = i / sizes.inner;
    const int64_t at =
        (n * sizes.classes + label) * sizes.inner + i % sizes.inner;
    losses[i] = -input.data<T>()[at] * by;
    total += static_cast<double>(by);
  }
  return total;
}

absl::Status ComputeLoss(const LossAttributes& attributes,
                         KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
  const Tensor& input = context->input(0);
  const Tensor& target = context->input(1);
  const Tensor& weight = context->input(2);
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(input, weight));
  OPTFARM_ASSIGN_OR_RETURN(const LossSizes sizes,
                           MatchSizes(input, target, weight));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> labels,
                           target.AsInt64s());
  OPTFARM_ASSIGN_OR_RETURN(Tensor losses,
                           Tensor::Allocate(input.dtype(), target.shape()));
  return VisitFloat(input.dtype(), "input", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    OPTFARM_ASSIGN_OR_RETURN(
        const double weights,
        Losses<T>(attributes, sizes, input, labels, weight, losses.data<T>()));
    if (attributes.reduction == Reduction::kNone) {
      context->SetOutput(0, std::move(losses));
      return absl::OkStatus();
    }
    double sum = 0.0;
    for (const T loss : losses.flat<T>()) sum += static_cast<double>(loss);
    if (attributes.reduction == Reduction::kMean) sum /= weights;
    context->SetOutput(0, Tensor::Scalar<T>(static_cast<T>(sum)));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeNllLoss(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "Tlabels", OPTFARM_INDEX_TYPES));
  LossAttributes attributes;
  OPTFARM_ASSIGN_OR_RETURN(const std::string name,
                           graph::GetStringOr(node, "reduction", "mean"));
  if (name == "none") {
    attributes.reduction = Reduction::kNone;
  } else if (name == "sum") {
    attributes.reduction = Reduction::kSum;
  } else if (name != "mean") {
    return absl::UnimplementedError(
        absl::StrCat("reduction '", name, "' is none of none, sum and mean"));
  }
  OPTFARM_ASSIGN_OR_RETURN(attributes.ignores,
                           graph::GetBoolOr(node, "ignores_index", false));
  OPTFARM_ASSIGN_OR_RETURN(attributes.ignored,
                           graph::GetIntOr(node, "ignore_index", 0));
  return MakeKernel([attributes](KernelContext* context) {
    return ComputeLoss(attributes, context);
  });
}

}  // namespace

void AddNllLossKernels(KernelCatalog* catalog) {
  catalog->Add("NllLoss", MakeNllLoss);
}

}  // namespace optfarm::runtime
