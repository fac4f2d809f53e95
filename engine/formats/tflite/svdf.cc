// SVDF: a layer of two small products, over features and over time. Its state
// holds the last results of the first one, a row of `memory` for each filter.

#include "engine/formats/tflite/svdf.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/activations.h"
#include "engine/formats/tflite/lowering.h"
#include "engine/formats/tflite/weights.h"
#include "engine/graph/attr.h"
#include "tflite/schema_generated.h"

namespace optfarm::tflite {
namespace {

constexpr int kFeatureWeights = 1;
constexpr int kTimeWeights = 2;
constexpr int kBias = 3;
constexpr int kState = 4;

struct SvdfSizes {
  int64_t filters = 0, memory = 0, rank = 1;
};

absl::StatusOr<SvdfSizes> SizesOf(const OpLowering& c, int64_t rank) {
  const std::vector<int64_t> features = ShapeOf(c.in(kFeatureWeights));
  const std::vector<int64_t> time = ShapeOf(c.in(kTimeWeights));
  if (features.size() != 2 || time.size() != 2 || time[0] != features[0] ||
      time[0] <= 0 || time[1] <= 0 || rank <= 0 || time[0] % rank != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "weights [", absl::StrJoin(features, ","), "] and [",
        absl::StrJoin(time, ","), "] do not fit each other and rank ", rank));
  }
  return SvdfSizes{time[0], time[1], rank};
}

Value Shaped(OpLowering& c, const Value& value, std::vector<int64_t> shape,
             absl::string_view suffix) {
  return c.Add("Reshape", suffix,
               {value, c.IntVector(absl::StrCat(suffix, "/shape"), shape)});
}

Value Summed(OpLowering& c, const Value& value, int64_t axis,
             absl::string_view suffix) {
  return c.Add("Sum", suffix,
               {value, c.Int(absl::StrCat(suffix, "/axis"), axis)});
}

// The state without its oldest column and with the newest behind.
Value Shifted(OpLowering& c, const Value& newest, const SvdfSizes& sizes) {
  const Value before =
      Shaped(c, c.Real(kState), {-1, sizes.filters, sizes.memory}, "memory");
  const Value kept = c.Add("StridedSlice", "kept",
                           {before, c.IntVector("kept/begin", {0, 0, 1}),
                            c.IntVector("kept/end", {0, 0, 0}),
                            c.IntVector("kept/strides", {1, 1, 1})},
                           [](tensorflow::NodeDef* node) {
                             graph::SetInt(node, "begin_mask", 3);
                             graph::SetInt(node, "end_mask", 7);
                           });
  return c.Add("ConcatV2", "shifted",
               {kept, Shaped(c, newest, {-1, sizes.filters, 1}, "column"),
                c.Int("shifted/axis", 2)});
}

}  // namespace

absl::Status LowerSvdf(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_SVDFOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  for (const int i : {0, kFeatureWeights, kTimeWeights, kState}) {
    if (!c.Has(i)) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " is missing"));
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(const SvdfSizes sizes, SizesOf(c, options->rank()));
  OPTFARM_ASSIGN_OR_RETURN(const Weights features,
                           Weights::Read(c, kFeatureWeights, 2));
  OPTFARM_ASSIGN_OR_RETURN(const Weights time,
                           Weights::Read(c, kTimeWeights, 2));
  const Value newest = c.Add("MatMul", "features",
                             {c.Real(0), features.Permuted({1, 0}, "weights")});
  const Value shifted = Shifted(c, newest, sizes);
  const int state = c.InputId(kState);
  const std::string name = c.subgraph().NameOf(state);
  Value next = Shaped(c, shifted, {-1, sizes.filters * sizes.memory}, "flat");
  Value seen = shifted;
  if (IsQuantized(c.in(kState))) {
    OPTFARM_ASSIGN_OR_RETURN(
        next, c.subgraph().Quantized(state, next, absl::StrCat(name, "/next")));
    OPTFARM_ASSIGN_OR_RETURN(
        seen, c.subgraph().Dequantized(state, next,
                                       absl::StrCat(name, "/next/real")));
    seen = Shaped(c, seen, {-1, sizes.filters, sizes.memory}, "seen");
  }
  const Value products = c.Add("Mul", "products", {seen, c.Real(kTimeWeights)});
  Value result = Summed(c, products, 2, "over_time");
  if (sizes.rank > 1) {
    result = Shaped(c, result, {-1, sizes.filters / sizes.rank, sizes.rank},
                    "ranks");
    result = Summed(c, result, 2, "over_ranks");
  }
  OPTFARM_ASSIGN_OR_RETURN(result, Biased(c, result, kBias, kState, time));
  c.SetReal(0, Activated(c, result, options->fused_activation_function()));
  return c.subgraph().AssignState(state, next);
}

}  // namespace optfarm::tflite
