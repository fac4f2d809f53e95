// Random values of other distributions: RandomUniformInt, RandomGamma,
// RandomPoisson, Multinomial, RandomShuffle. With both seeds 0 the seed is
// taken from the machine; otherwise runs repeat.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>
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

// A kernel that draws: each run has a generator of its own, on a stream that no
// other run has.
template <typename Function>
absl::StatusOr<std::unique_ptr<Kernel>> MakeDraw(
    const tensorflow::NodeDef& node, Function draw) {
  OPTFARM_ASSIGN_OR_RETURN(const Seeds seeds, ReadSeeds(node));
  auto runs = std::make_shared<std::atomic<uint64_t>>(0);
  return MakeKernel([=](KernelContext* context) -> absl::Status {
    Philox generator(seeds.key ^ (runs->fetch_add(1) << 32), seeds.stream);
    return draw(context, &generator);
  });
}

absl::StatusOr<Shape> ReadShape(const Tensor& tensor) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                           ReadIntegers(tensor, "shape"));
  return Shape::FromDims(dims);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeUniformInt(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "Tout", OPTFARM_INDEX_TYPES));
  return MakeDraw(
      node, [](KernelContext* context, Philox* generator) -> absl::Status {
        OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
        OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                                 ReadShape(context->input(0)));
        OPTFARM_ASSIGN_OR_RETURN(const int64_t low,
                                 ReadInteger(context->input(1), "minval"));
        OPTFARM_ASSIGN_OR_RETURN(const int64_t high,
                                 ReadInteger(context->input(2), "maxval"));
        if (low >= high) {
          return absl::InvalidArgumentError(
              absl::StrCat("minval ", low, " must be below maxval ", high));
        }
        OPTFARM_ASSIGN_OR_RETURN(
            Tensor * out,
            context->AllocateOutput(0, context->input(1).dtype(), shape));
        const uint64_t range =
            static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
        return VisitInteger(
            out->dtype(), "minval", [&](auto tag) -> absl::Status {
              using T = typename decltype(tag)::type;
              for (int64_t i = 0; i < shape.num_elements(); ++i) {
                out->data<T>()[i] =
                    static_cast<T>(static_cast<uint64_t>(low) +
                                   generator->NextWord64() % range);
              }
              return absl::OkStatus();
            });
      });
}

// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
double DrawGamma(double alpha, Philox* generator) {
  if (!(alpha > 0.0)) return std::nan("");
  const double boost =
      alpha < 1.0 ? std::pow(1.0 - generator->NextUnit(), 1.0 / alpha) : 1.0;
  const double d = (alpha < 1.0 ? alpha + 1.0 : alpha) - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  // Four of five attempts succeed; the bound is for infinities.
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const double x = generator->NextNormal();
    const double v = std::pow(1.0 + c * x, 3.0);
    if (v <= 0.0) continue;
    const double u = 1.0 - generator->NextUnit();
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) {
      return d * v * boost;
    }
  }
  return alpha;
}

// By multiplication while the rate is small (Knuth), else by the normal
// distribution that it tends to.
double DrawPoisson(double rate, Philox* generator) {
  if (!(rate >= 0.0) || std::isinf(rate)) return std::nan("");
  if (rate < 30.0) {
    const double limit = std::exp(-rate);
    double product = 1.0 - generator->NextUnit();
    double count = 0.0;
    while (product > limit) {
      product *= 1.0 - generator->NextUnit();
      count += 1.0;
    }
    return count;
  }
  return std::max(
      0.0, std::floor(rate + std::sqrt(rate) * generator->NextNormal() + 0.5));
}

template <typename To>
To FromDouble(double value) {
  if constexpr (std::is_integral_v<To>) {
    return std::isnan(value) ? To(0)
                             : static_cast<To>(std::clamp(value, -2e9, 2e9));
  } else {
    return static_cast<To>(value);
  }
}

// `shape` draws for each element of the parameters.
template <double (*kDraw)(double, Philox*)>
absl::Status DrawPerParameter(KernelContext* context, Philox* generator,
                              DataType dtype) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
  OPTFARM_ASSIGN_OR_RETURN(const Shape draws, ReadShape(context->input(0)));
  const Tensor& parameters = context->input(1);
  std::vector<int64_t> dims(draws.dims().begin(), draws.dims().end());
  dims.insert(dims.end(), parameters.shape().dims().begin(),
              parameters.shape().dims().end());
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, dtype, shape));
  const int64_t count = parameters.num_elements();
  return VisitNumber(parameters.dtype(), "rate", [&](auto in) -> absl::Status {
    using From = typename decltype(in)::type;
    return VisitNumber(dtype, "dtype", [&](auto to) -> absl::Status {
      using To = typename decltype(to)::type;
      for (int64_t i = 0; i < shape.num_elements(); ++i) {
        const double parameter =
            static_cast<double>(parameters.data<From>()[i % count]);
        out->data<To>()[i] = FromDouble<To>(kDraw(parameter, generator));
      }
      return absl::OkStatus();
    });
  });
}

template <double (*kDraw)(double, Philox*)>
absl::StatusOr<std::unique_ptr<Kernel>> MakePerParameter(
    const tensorflow::NodeDef& node) {
  // RandomGamma's type is T, RandomPoisson's dtype; V2's may differ from R.
  const char* attr = node.op() == "RandomGamma" ? "T" : "dtype";
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, attr,
                      {tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE,
                       tensorflow::DT_INT32, tensorflow::DT_INT64}));
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "R",
                      {tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE,
                       tensorflow::DT_INT32, tensorflow::DT_INT64}));
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype,
                           graph::GetTypeOr(node, attr, tensorflow::DT_FLOAT));
  return MakeDraw(node, [dtype](KernelContext* context, Philox* generator) {
    return DrawPerParameter<kDraw>(context, generator, dtype);
  });
}

// `out` has index elements and as many columns as are drawn for each row.
template <typename T>
void DrawClasses(const Tensor& logits, Philox* generator, Tensor* out) {
  const int64_t classes = logits.dim(1);
  const int64_t samples = out->dim(1);
  std::vector<double> sums(classes);
  for (int64_t r = 0; r < logits.dim(0); ++r) {
    const T* row = logits.data<T>() + r * classes;
    const double largest =
        static_cast<double>(*std::max_element(row, row + classes));
    double sum = 0.0;
    for (int64_t c = 0; c < classes; ++c) {
      const double p = std::exp(static_cast<double>(row[c]) - largest);
      sum += std::isfinite(p) ? p : 0.0;
      sums[c] = sum;
    }
    for (int64_t i = 0; i < samples; ++i) {
      const int64_t drawn = std::upper_bound(sums.begin(), sums.end(),
                                             generator->NextUnit() * sum) -
                            sums.begin();
      const int64_t label = std::min(drawn, classes - 1);
      if (out->dtype() == tensorflow::DT_INT64) {
        out->data<int64_t>()[r * samples + i] = label;
      } else {
        out->data<int32_t>()[r * samples + i] = static_cast<int32_t>(label);
      }
    }
  }
}

// Classes drawn from unnormalized log-probabilities.
absl::StatusOr<std::unique_ptr<Kernel>> MakeMultinomial(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "output_dtype", OPTFARM_INDEX_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(
      const DataType dtype,
      graph::GetTypeOr(node, "output_dtype", tensorflow::DT_INT64));
  return MakeDraw(
      node, [dtype](KernelContext* context, Philox* generator) -> absl::Status {
        OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
        const Tensor& logits = context->input(0);
        OPTFARM_RETURN_IF_ERROR(RequireRank(logits, "logits", 2));
        OPTFARM_ASSIGN_OR_RETURN(const int64_t samples,
                                 ReadInteger(context->input(1), "num_samples"));
        const int64_t classes = logits.dim(1);
        if (samples < 0 || classes < 1) {
          return absl::InvalidArgumentError(absl::StrCat(
              samples, " samples of ", classes, " classes cannot be drawn"));
        }
        const int64_t dims[] = {logits.dim(0), samples};
        OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
        OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                                 context->AllocateOutput(0, dtype, shape));
        return VisitNumber(logits.dtype(), "logits",
                           [&](auto t) -> absl::Status {
                             using T = typename decltype(t)::type;
                             DrawClasses<T>(logits, generator, out);
                             return absl::OkStatus();
                           });
      });
}

// The slices along dimension 0 in a random order.
absl::StatusOr<std::unique_ptr<Kernel>> MakeShuffle(
    const tensorflow::NodeDef& node) {
  return MakeDraw(
      node, [](KernelContext* context, Philox* generator) -> absl::Status {
        OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
        const Tensor& value = context->input(0);
        if (value.rank() == 0 || value.num_elements() == 0) {
          context->SetOutput(0, value);
          return absl::OkStatus();
        }
        std::vector<int64_t> order(value.dim(0));
        std::iota(order.begin(), order.end(), int64_t{0});
        for (size_t i = order.size(); i > 1; --i) {
          std::swap(order[i - 1], order[generator->NextWord64() % i]);
        }
        OPTFARM_ASSIGN_OR_RETURN(
            Tensor * out,
            context->AllocateOutput(0, value.dtype(), value.shape()));
        const int64_t run = DimProduct(value.shape(), 1, value.rank());
        return VisitBySize(
            value.dtype(), "value", [&](auto tag) -> absl::Status {
              using T = typename decltype(tag)::type;
              T* to = out->data<T>();
              for (int64_t from : order) {
                to = std::copy_n(value.data<T>() + from * run, run, to);
              }
              return absl::OkStatus();
            });
      });
}

}  // namespace

void AddRandomDrawKernels(KernelCatalog* catalog) {
  constexpr bool kIsPure = false;
  catalog->Add("RandomUniformInt", MakeUniformInt, kIsPure);
  catalog->Add("RandomGamma", MakePerParameter<DrawGamma>, kIsPure);
  catalog->Add("RandomPoisson", MakePerParameter<DrawPoisson>, kIsPure);
  catalog->Add("RandomPoissonV2", MakePerParameter<DrawPoisson>, kIsPure);
  catalog->Add("Multinomial", MakeMultinomial, kIsPure);
  catalog->Add("RandomShuffle", MakeShuffle, kIsPure);
}

}  // namespace optfarm::runtime
