#include "engine/optimize/judging/measurement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/optimize/judging/confidence.h"
#include "engine/optimize/judging/detections.h"
#include "engine/optimize/layers/comparison.h"
#include "engine/optimize/samples/sample_runs.h"
#include "engine/runtime/session/session.h"

namespace optfarm::optimize {
namespace {

using runtime::Session;
using runtime::Tensor;
using Values = std::vector<Tensor>;

// One thread: samples run at once, not the parts of one.
absl::StatusOr<std::unique_ptr<Session>> MakeSession(
    const graph::Graph& graph, const OptimizerInput& in,
    absl::Span<const graph::TensorName> fetches) {
  runtime::SessionOptions options;
  // What a model prints is its own affair.
  options.print = [](absl::string_view) {};
  return Session::Create(graph, in.inputs, fetches, options);
}

// The outputs, and behind them a detector's raw tensors.
std::vector<graph::TensorName> WithRaw(const OptimizerInput& in) {
  std::vector<graph::TensorName> tensors = in.outputs;
  if (in.detector.has_value()) {
    tensors.insert(tensors.end(), in.detector->raw.begin(),
                   in.detector->raw.end());
  }
  return tensors;
}

// Which tensors are compared number by number, as places in WithRaw: a
// detector's raw ones where the graph has them all, else the outputs.
struct Compared {
  std::vector<graph::TensorName> fetches;
  size_t first = 0;

  std::vector<size_t> Places() const {
    std::vector<size_t> places;
    for (size_t k = first; k < fetches.size(); ++k) places.push_back(k);
    return places;
  }
};

Compared FindCompared(const graph::Graph& graph, const OptimizerInput& in) {
  Compared compared{in.outputs, 0};
  if (!in.detector.has_value()) return compared;
  const auto& raw = in.detector->raw;
  const bool has_all =
      std::all_of(raw.begin(), raw.end(), [&](const graph::TensorName& name) {
        const graph::NodeId before = in.original->Find(name.node);
        const graph::NodeId after = graph.Find(name.node);
        return before != graph::kNoNode && after != graph::kNoNode &&
               in.original->node(before).op() == graph.node(after).op();
      });
  return has_all ? Compared{WithRaw(in), in.outputs.size()} : compared;
}

// Signal and noise of one sample over all outputs.
class SamplePower {
 public:
  void Add(const Tensor& original, const Tensor& result) {
    const auto a = ToFloat(original), b = ToFloat(result);
    if (!a.ok() || !b.ok() || !(a->shape() == b->shape())) return;
    const absl::Span<const float> from = a->flat<float>();
    const absl::Span<const float> to = b->flat<float>();
    for (size_t i = 0; i < from.size(); ++i) {
      if (!std::isfinite(from[i])) continue;
      const double error = static_cast<double>(from[i]) - to[i];
      signal_ += static_cast<double>(from[i]) * from[i];
      noise_ += error * error;
    }
  }

  double SnrDb() const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (std::isnan(noise_) || std::isinf(noise_)) return -kInfinity;
    return noise_ == 0 ? kInfinity : 10 * std::log10(signal_ / noise_);
  }

 private:
  double signal_ = 0;
  double noise_ = 0;
};

// Whether the original gives this output in several shapes: it lists things
// that it found.
bool IsList(const Reference& reference, size_t k) {
  return std::any_of(
      reference.outputs.begin(), reference.outputs.end(),
      [&](const Values& outputs) {
        return !(outputs[k].shape() == reference.outputs[0][k].shape());
      });
}

v1::SampleComparison CompareSample(const OptimizerInput& in, int64_t index,
                                   const Compared& compared,
                                   const Values& expected,
                                   const Values& outputs) {
  SamplePower power;
  for (const size_t k : compared.Places()) power.Add(expected[k], outputs[k]);
  v1::SampleComparison sample;
  sample.set_sample(in.dataset->SampleName(index));
  sample.set_snr_db(power.SnrDb());
  sample.set_float_class(-1);
  sample.set_optimized_class(-1);
  sample.set_label(-1);
  if (const int scores = ScoresOutput(in, expected); scores >= 0) {
    const auto best = [&](const Values& values) {
      return LargestElements(values[scores].flat<float>(), 1)[0];
    };
    sample.set_float_class(best(expected));
    if (outputs[scores].dtype() == tensorflow::DT_FLOAT &&
        outputs[scores].num_elements() > 0) {
      sample.set_optimized_class(best(outputs));
    }
  }
  return sample;
}

}  // namespace

int ScoresOutput(const OptimizerInput& in, absl::Span<const Tensor> outputs) {
  if (in.detector.has_value()) return -1;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].dtype() == tensorflow::DT_FLOAT &&
        ClassesOf(outputs[i]) == outputs[i].num_elements()) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

absl::StatusOr<Reference> MakeReference(const OptimizerInput& in,
                                        absl::Span<const int64_t> samples) {
  OPTFARM_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           MakeSession(*in.original, in, WithRaw(in)));
  Reference reference;
  OPTFARM_RETURN_IF_ERROR(
      Annotate(RunSamples(*session, samples, in.threads, in.reader,
                          [&](size_t place, Values outputs) {
                            reference.samples.push_back(samples[place]);
                            reference.outputs.push_back(std::move(outputs));
                            return absl::OkStatus();
                          }),
               "While running the original model"));
  OPTFARM_RETURN_IF_ERROR(in.reader->CheckBad());
  return reference;
}

absl::StatusOr<OutputComparison> CompareWithReference(
    const graph::Graph& graph, const OptimizerInput& in,
    const Reference& reference) {
  const Compared compared = FindCompared(graph, in);
  OPTFARM_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           MakeSession(graph, in, compared.fetches));
  OutputComparison result;
  std::vector<TensorComparer> comparers(compared.fetches.size());
  DetectionComparer detections;
  // Samples for which the shape is another.
  std::vector<size_t> lost(comparers.size(), 0);
  std::vector<bool> is_list(comparers.size());
  for (const size_t k : compared.Places()) is_list[k] = IsList(reference, k);
  const auto take = [&](size_t place, const Values& outputs) {
    const Values& expected = reference.outputs[place];
    for (const size_t k : compared.Places()) {
      // A detector finds another number of things.
      absl::Status status = comparers[k].Add(expected[k], outputs[k]);
      if (!status.ok() && !(expected[k].shape() == outputs[k].shape())) {
        if (++lost[k] == reference.samples.size()) return status;
        if (is_list[k]) continue;
        status = comparers[k].AddLost(expected[k]);
      }
      OPTFARM_RETURN_IF_ERROR(
          Annotate(status, absl::StrCat("While comparing '",
                                        ToString(compared.fetches[k]), "'")));
    }
    if (in.detector.has_value()) {
      detections.Add(*in.detector, expected, outputs);
    }
    result.samples.push_back(CompareSample(in, reference.samples[place],
                                           compared, expected, outputs));
    return absl::OkStatus();
  };
  OPTFARM_RETURN_IF_ERROR(Annotate(
      RunSamples(*session, reference.samples, in.threads, in.reader, take),
      "While running the optimized model"));
  for (const size_t k : compared.Places()) {
    v1::TensorComparison comparison = comparers[k].Result();
    comparison.set_name(ToString(compared.fetches[k]));
    const graph::NodeId id = in.original->Find(compared.fetches[k].node);
    if (id != graph::kNoNode) {
      comparison.set_op(in.original->node(id).op());
    }
    if (is_list[k]) {
      comparison.set_top1_agreement(
          1 - static_cast<double>(lost[k]) /
                  static_cast<double>(reference.samples.size()));
    }
    result.outputs.push_back(std::move(comparison));
  }
  if (detections.Result().samples() > 0) {
    result.detections = detections.Result();
  }
  return result;
}

absl::StatusOr<Answers> AnswerLabelled(const graph::Graph& graph,
                                       const OptimizerInput& in, int scores,
                                       absl::Span<const int64_t> samples,
                                       absl::Span<const int64_t> labels) {
  OPTFARM_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           MakeSession(graph, in, in.outputs));
  Answers answers;
  const auto take = [&](size_t place, const Values& outputs) {
    AccuracyCounter counter;
    counter.Add(outputs[scores], labels[samples[place]]);
    answers.is_top1.push_back(counter.Result().top1() > 0);
    answers.is_top5.push_back(counter.Result().top5() > 0);
    return absl::OkStatus();
  };
  OPTFARM_RETURN_IF_ERROR(
      RunSamples(*session, samples, in.threads, in.reader, take));
  OPTFARM_RETURN_IF_ERROR(in.reader->CheckBad());
  return answers;
}

v1::Accuracy ToAccuracy(const Answers& answers) {
  const auto percent = [](const std::vector<bool>& right) {
    return right.empty() ? 0.0
                         : 100.0 *
                               static_cast<double>(std::count(
                                   right.begin(), right.end(), true)) /
                               static_cast<double>(right.size());
  };
  v1::Accuracy accuracy;
  accuracy.set_samples(static_cast<int64_t>(answers.is_top1.size()));
  accuracy.set_top1(percent(answers.is_top1));
  accuracy.set_top5(percent(answers.is_top5));
  return accuracy;
}

v1::PairedAccuracy ComparePaired(const std::vector<bool>& original,
                                 const std::vector<bool>& optimized) {
  PairedCounts counts;
  for (size_t i = 0; i < original.size(); ++i) {
    ++counts.samples;
    counts.only_first_right += original[i] && !optimized[i];
    counts.only_second_right += !original[i] && optimized[i];
  }
  v1::PairedAccuracy paired;
  paired.set_samples(counts.samples);
  paired.set_only_float_right(counts.only_first_right);
  paired.set_only_optimized_right(counts.only_second_right);
  if (counts.samples > 0) {
    paired.set_change(100.0 *
                      static_cast<double>(counts.only_second_right -
                                          counts.only_first_right) /
                      static_cast<double>(counts.samples));
  }
  const Interval interval = PairedInterval(counts);
  paired.set_change_low(100 * interval.low);
  paired.set_change_high(100 * interval.high);
  paired.set_p_value(McNemarProbability(counts));
  return paired;
}

}  // namespace optfarm::optimize
