// Keeping layers in float: how a recipe's chain is changed so that it spares
// them, and which layers to spare next when the answers are too far off.

#ifndef OPTFARM_ENGINE_OPTIMIZE_JUDGING_KEEP_FLOAT_H_
#define OPTFARM_ENGINE_OPTIMIZE_JUDGING_KEEP_FLOAT_H_

#include <set>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/transforms/machinery/transform.h"
#include "engine/transforms/machinery/transform_string.h"
#include "optfarm/v1/recipes.pb.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::optimize {

// How ranges are taken instead of as the recipe says; not set: as it does.
struct RangeChoice {
  v1::Calibration::RangeMethod method =
      v1::Calibration::RANGE_METHOD_UNSPECIFIED;
  // UNITS: percent.
  double min_percentile = 0;
  double max_percentile = 0;

  bool is_set() const {
    return method != v1::Calibration::RANGE_METHOD_UNSPECIFIED;
  }
  friend bool operator==(const RangeChoice&, const RangeChoice&) = default;
};

// What stays in float. Weights that a spared op type reads stay float too;
// a spared node computes in float, its weights may be stored in 8 bits.
struct Spared {
  std::set<std::string> ops;
  std::set<std::string> nodes;
  // Transforms that are left out of the chain.
  std::set<std::string> left_out;
  // Another chain, as a transform string; empty: the recipe's own.
  std::string chain;
  // Biases are corrected on samples afterwards.
  bool corrects_biases = false;
  // Weights are rounded by what samples make of them.
  bool adapts_rounding = false;
  RangeChoice ranges;

  bool empty() const { return *this == Spared(); }
  friend bool operator==(const Spared&, const Spared&) = default;
};

// "Relu, Add in float, biases corrected".
std::string DescribeSpared(const Spared& spared);

// What the recipe spares from the start.
Spared SparedByRecipe(const v1::KeepFloat& keep_float);

// What an attempt spares, the recipe's own included.
Spared SparedByAttempt(const v1::KeepFloat& keep_float,
                       const v1::ChainChange& attempt);

// The recipe's calibration with the ranges that an attempt takes.
v1::Calibration WithRanges(v1::Calibration calibration, const Spared& spared);

// The steps without those left out, and with ignore_op and exclude_node
// parameters added to those that quantize.
std::vector<transforms::TransformStep> WithSpared(
    std::vector<transforms::TransformStep> steps, const Spared& spared);

// Nodes that lose most, by the names that quantize_nodes knows them by: those
// that it made 8-bit in `result` and
// that add most noise, relative to the signal, to what they read. Where a
// node's own output was not compared, the next that was stands for it.
// `layers` are CompareLayers' results. Worst first, at most `most`. `name_map`
// says what nodes of `result` were called when they were made.
std::vector<std::string> WorstLayers(
    const graph::Graph& original, const graph::Graph& result,
    absl::Span<const v1::TensorComparison> layers, size_t most,
    absl::Span<const transforms::RenamedNode> name_map = {});

// The layers of `result` that quantize_layers made and that no other layer of
// its stands before, by the names that it knows them by: what the model's
// inputs lose by being quantized is lost in them. In the order of the graph.
std::vector<std::string> InputLayers(
    const graph::Graph& result,
    absl::Span<const transforms::RenamedNode> name_map = {});

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_JUDGING_KEEP_FLOAT_H_
