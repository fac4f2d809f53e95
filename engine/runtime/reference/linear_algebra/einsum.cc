// Einsum: sums of products over named axes. The equation is read when the
// kernel is made; the sum runs over the full space of its labels.

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// Products between two looks at whether the run is to end.
constexpr int64_t kLookAfter = 64 * 1024;
// More would take hours; small inputs can ask for it.
constexpr int64_t kMaxProducts = int64_t{1} << 38;

// Axes by number: those of the output come first.
struct Equation {
  std::vector<std::vector<int>> inputs;
  int output_axes = 0;
  int axes = 0;
};

absl::StatusOr<Equation> ParseEquation(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const std::vector<std::string> sides = absl::StrSplit(text, "->");
  if (sides.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("equation '", text.substr(0, 80), "' must have one '->'"));
  }
  if (text.find('.') != std::string::npos) {
    return absl::UnimplementedError(
        absl::StrCat("Einsum has no kernel for '...', as in '",
                     text.substr(0, 80), "'; name the axes"));
  }
  std::array<int, 256> number;
  number.fill(-1);
  Equation equation;
  const auto axis_of = [&](char label) {
    int& axis = number[static_cast<uint8_t>(label)];
    if (axis < 0) axis = equation.axes++;
    return axis;
  };
  for (char label : sides[1]) {
    if (!absl::ascii_isalpha(label) ||
        number[static_cast<uint8_t>(label)] >= 0 ||
        sides[0].find(label) == std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("the output '", sides[1].substr(0, 80),
                       "' must name axes of the inputs, each once"));
    }
    axis_of(label);
  }
  equation.output_axes = equation.axes;
  for (absl::string_view term : absl::StrSplit(sides[0], ',')) {
    std::vector<int> axes;
    for (char label : term) {
      if (!absl::ascii_isalpha(label)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "equation '", text.substr(0, 80), "' may have letters only"));
      }
      axes.push_back(axis_of(label));
    }
    equation.inputs.push_back(std::move(axes));
  }
  return equation;
}

// The size of every axis, the same wherever it appears.
absl::StatusOr<std::vector<int64_t>> AxisSizes(const Equation& equation,
                                               const KernelContext& context) {
  std::vector<int64_t> sizes(equation.axes, -1);
  for (int i = 0; i < context.num_inputs(); ++i) {
    const Tensor& input = context.input(i);
    const std::vector<int>& axes = equation.inputs[i];
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(context.input(0), input));
    OPTFARM_RETURN_IF_ERROR(RequireRank(input, absl::StrCat("inputs[", i, "]"),
                                        static_cast<int>(axes.size())));
    for (size_t k = 0; k < axes.size(); ++k) {
      int64_t& size = sizes[axes[k]];
      const int64_t dim = input.dim(static_cast<int>(k));
      if (size >= 0 && size != dim) {
        return absl::InvalidArgumentError(
            absl::StrCat("an axis has size ", size, " in one input and ", dim,
                         " in another"));
      }
      size = dim;
    }
  }
  return sizes;
}

// How far each axis moves in an input; an axis may come twice (a diagonal).
std::vector<int64_t> StepsOf(const std::vector<int>& axes, const Shape& shape,
                             int count) {
  std::vector<int64_t> steps(count, 0);
  int64_t step = 1;
  for (int k = static_cast<int>(axes.size()) - 1; k >= 0; --k) {
    steps[axes[k]] += step;
    step *= shape.dim(k);
  }
  return steps;
}

template <typename T>
void Sum(const Equation& equation, const std::vector<int64_t>& sizes,
         const KernelContext& context, int64_t out_count, int64_t inner_count,
         T* out) {
  const int inputs = context.num_inputs();
  std::vector<std::vector<int64_t>> steps;
  std::vector<const T*> data;
  for (int i = 0; i < inputs; ++i) {
    steps.push_back(
        StepsOf(equation.inputs[i], context.input(i).shape(), equation.axes));
    data.push_back(context.input(i).data<T>());
  }
  std::vector<int64_t> at(inputs);
  int64_t products = 0;
  for (int64_t o = 0; o < out_count; ++o) {
    T sum = T(0);
    for (int64_t n = 0; n < inner_count; ++n) {
      if (++products % kLookAfter == 0) LeaveIfRunEnded();
      std::fill(at.begin(), at.end(), int64_t{0});
      int64_t rest = n;
      for (int axis = equation.axes - 1; axis >= 0; --axis) {
        if (axis == equation.output_axes - 1) rest = o;
        const int64_t index = rest % sizes[axis];
        rest /= sizes[axis];
        for (int i = 0; i < inputs; ++i) at[i] += index * steps[i][axis];
      }
      T product = T(1);
      for (int i = 0; i < inputs; ++i) {
        if constexpr (std::is_integral_v<T>) {
          product = static_cast<T>(static_cast<uint64_t>(product) *
                                   static_cast<uint64_t>(data[i][at[i]]));
        } else {
          product *= data[i][at[i]];
        }
      }
      if constexpr (std::is_integral_v<T>) {
        sum = static_cast<T>(static_cast<uint64_t>(sum) +
                             static_cast<uint64_t>(product));
      } else {
        sum += product;
      }
    }
    out[o] = sum;
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeEinsum(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "T", OPTFARM_NUMBER_AND_COMPLEX_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const std::string text,
                           graph::GetString(node, "equation"));
  OPTFARM_ASSIGN_OR_RETURN(const Equation equation, ParseEquation(text));
  return MakeKernel([equation](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(
        RequireInputs(*context, static_cast<int>(equation.inputs.size())));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                             AxisSizes(equation, *context));
    const auto first_inner = sizes.begin() + equation.output_axes;
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             Shape::FromDims(absl::MakeConstSpan(
                                 sizes.data(), equation.output_axes)));
    OPTFARM_ASSIGN_OR_RETURN(
        const Shape inner,
        Shape::FromDims(std::vector<int64_t>(first_inner, sizes.end())));
    int64_t products = 0;
    if (__builtin_mul_overflow(shape.num_elements(), inner.num_elements(),
                               &products) ||
        products > kMaxProducts) {
      return absl::InvalidArgumentError(
          absl::StrCat("the sum has more than ", kMaxProducts, " products"));
    }
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        context->AllocateOutput(0, context->input(0).dtype(), shape));
    return VisitNumberOrComplex(
        out->dtype(), "inputs", [&](auto tag) -> absl::Status {
          using T = typename decltype(tag)::type;
          Sum<T>(equation, sizes, *context, shape.num_elements(),
                 inner.num_elements(), out->data<T>());
          return absl::OkStatus();
        });
  });
}

}  // namespace

void AddEinsumKernels(KernelCatalog* catalog) {
  catalog->Add("Einsum", MakeEinsum);
}

}  // namespace optfarm::runtime
