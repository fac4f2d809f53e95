// What is measured of an optimized graph: its outputs against the original's,
// sample by sample, and how often it is right.

#ifndef OPTFARM_ENGINE_OPTIMIZE_JUDGING_MEASUREMENT_H_
#define OPTFARM_ENGINE_OPTIMIZE_JUDGING_MEASUREMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/optimize/judging/optimizer_input.h"
#include "engine/runtime/core/tensor.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::optimize {

// Samples that could be used, and what the original answers for them: its
// outputs, and behind them a detector's raw tensors.
struct Reference {
  std::vector<int64_t> samples;
  std::vector<std::vector<runtime::Tensor>> outputs;
};

// Runs the original on the samples.
// ERRORS: those of running it, and of too many samples that cannot be read.
absl::StatusOr<Reference> MakeReference(const OptimizerInput& in,
                                        absl::Span<const int64_t> samples);

struct OutputComparison {
  // One an output; of a detector one for each of its raw tensors, when the
  // graph has them all.
  std::vector<v1::TensorComparison> outputs;
  // Of a detector.
  std::optional<v1::DetectionComparison> detections;
  // One a sample, in the reference's order; without labels.
  std::vector<v1::SampleComparison> samples;
};

// A sample for which an output has another shape than the original's counts as
// lost. Of an output that the original gives in several shapes, a list of what
// it found, the agreement is the share of samples with as many things, and the
// rest is about those.
// ERRORS: those of running the graph; InvalidArgument for an output whose shape
// is another for every sample.
absl::StatusOr<OutputComparison> CompareWithReference(
    const graph::Graph& graph, const OptimizerInput& in,
    const Reference& reference);

// The output whose rows are scores of classes, one row a sample; -1 for none,
// as for a detector.
int ScoresOutput(const OptimizerInput& in,
                 absl::Span<const runtime::Tensor> outputs);

// Which labelled samples a graph gets right; one entry a sample that could be
// used.
struct Answers {
  std::vector<bool> is_top1;
  std::vector<bool> is_top5;
};

// `labels` holds the class of every sample of the dataset; output number
// `scores` is a row of class scores.
// ERRORS: those of running the graph.
absl::StatusOr<Answers> AnswerLabelled(const graph::Graph& graph,
                                       const OptimizerInput& in, int scores,
                                       absl::Span<const int64_t> samples,
                                       absl::Span<const int64_t> labels);

v1::Accuracy ToAccuracy(const Answers& answers);

// Which samples are right, before and after. REQUIRES: the same samples.
v1::PairedAccuracy ComparePaired(const std::vector<bool>& original,
                                 const std::vector<bool>& optimized);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_JUDGING_MEASUREMENT_H_
